"""The pending list as the record of work in progress: what it holds, how it is looked at, and how work is taken over.

usage: work_in_progress.py SERVER-BINARY
"""
from pathlib import Path
import sys
import time

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from checks import check, connect, equal, main, server          # noqa: E402


def jobs(path, count=3):
    """A stream of jobs 1-0, 2-0, … all delivered to worker w1."""
    client = connect(path, decode_responses=True)
    for number in range(1, count + 1):
        client.xadd("jobs", {"job": "j%d" % number}, id="%d-0" % number)
    client.xgroup_create("jobs", "crew", id="0")
    client.xreadgroup("crew", "w1", {"jobs": ">"})
    return client


def rows(client, **options):
    """The extended form without idle times, which depend on the clock."""
    found = client.xpending_range("jobs", "crew", "-", "+", 10, **options)
    return [(row["message_id"], row["consumer"], row["times_delivered"]) for row in found]


@check
def what_a_record_holds(binary):
    """each pending entry has its id, owner, idle time and number of deliveries"""
    with server(binary) as path:
        client = jobs(path, 1)
        time.sleep(0.03)
        row, = client.xpending_range("jobs", "crew", "-", "+", 10)
        idle = row.pop("time_since_delivered")
        equal(row, {"message_id": "1-0", "consumer": "w1", "times_delivered": 1})
        if not 25 <= idle < 5000:
            raise AssertionError("idle for %r ms" % idle)


@check
def acknowledging_counts_what_it_removed(binary):
    """XACK answers how many it removed: none the second time, none of what was never pending"""
    with server(binary) as path:
        client = jobs(path)
        equal(client.xack("jobs", "crew", "1-0", "2-0"), 2)
        equal(client.xack("jobs", "crew", "1-0"), 0)
        equal(client.xack("jobs", "crew", "9-0"), 0)
        equal(client.xlen("jobs"), 3)
        equal([row["name"] for row in client.xinfo_consumers("jobs", "crew")], ["w1"])


@check
def consumers_stay_until_removed(binary):
    """a consumer with nothing pending stays; DELCONSUMER removes it and answers what it still had"""
    with server(binary) as path:
        client = jobs(path)
        client.xack("jobs", "crew", "1-0")
        equal(client.xgroup_delconsumer("jobs", "crew", "w1"), 2)
        equal(client.xinfo_consumers("jobs", "crew"), [])
        equal(client.xpending("jobs", "crew")["pending"], 0)


@check
def trimmed_while_pending(binary):
    """trimming leaves pending records behind; XAUTOCLAIM takes them off and names them"""
    with server(binary) as path:
        client = jobs(path)
        equal(client.xtrim("jobs", maxlen=1, approximate=False), 2)
        equal(client.xpending("jobs", "crew")["pending"], 3)
        equal(client.xautoclaim("jobs", "crew", "w2", 0, "0-0"), ["0-0", [("3-0", {"job": "j3"})], ["1-0", "2-0"]])
        equal(rows(client), [("3-0", "w2", 2)])


@check
def noack_leaves_no_record(binary):
    """NOACK delivers without a record: nothing pending, nothing to lag"""
    with server(binary) as path:
        client = connect(path, decode_responses=True)
        client.xadd("jobs", {"job": "j1"}, id="1-0")
        client.xgroup_create("jobs", "crew", id="0")
        equal(len(client.xreadgroup("crew", "w1", {"jobs": ">"}, noack=True)[0][1]), 1)
        equal(client.xpending("jobs", "crew")["pending"], 0)
        equal(client.xinfo_groups("jobs")[0]["lag"], 0)


@check
def summary_and_extended_form(binary):
    """XPENDING: a summary with a count per consumer; rows by range, idle time and consumer"""
    with server(binary) as path:
        client = jobs(path)
        client.xadd("jobs", {"job": "j4"}, id="4-0")
        client.xreadgroup("crew", "w2", {"jobs": ">"})
        equal(client.xpending("jobs", "crew"), {
            "pending": 4, "min": "1-0", "max": "4-0",
            "consumers": [{"name": "w1", "pending": 3}, {"name": "w2", "pending": 1}]})
        equal(rows(client, consumername="w2"), [("4-0", "w2", 1)])
        equal(rows(client, idle=60000), [])
        time.sleep(0.03)
        equal(len(rows(client, idle=20)), 4)


@check
def group_and_consumer_views(binary):
    """XINFO tells a stuck consumer from a group that is behind"""
    with server(binary) as path:
        client = jobs(path)
        client.xadd("jobs", {"job": "j4"}, id="4-0")
        group, = client.xinfo_groups("jobs")
        equal((group["pending"], group["lag"], group["last-delivered-id"]), (3, 1, "3-0"))
        consumer, = client.xinfo_consumers("jobs", "crew")
        equal((consumer["name"], consumer["pending"]), ("w1", 3))
        if not 0 <= consumer["idle"] < 5000:
            raise AssertionError("idle for %r ms" % consumer["idle"])


@check
def a_restarted_worker_drains_its_own(binary):
    """an explicit id answers one's own pending entries without moving the group; then nothing"""
    with server(binary) as path:
        client = jobs(path)
        client.xadd("jobs", {"job": "j4"}, id="4-0")
        (_, entries), = client.xreadgroup("crew", "w1", {"jobs": "0"}, count=10)
        equal([entry_id for entry_id, _ in entries], ["1-0", "2-0", "3-0"])
        (_, entries), = client.xreadgroup("crew", "w1", {"jobs": "2-0"}, block=1000)
        equal([entry_id for entry_id, _ in entries], ["3-0"])
        equal(client.xinfo_groups("jobs")[0]["last-delivered-id"], "3-0")
        client.xack("jobs", "crew", "1-0", "2-0", "3-0")
        equal(client.xreadgroup("crew", "w1", {"jobs": "0"}), [["jobs", []]])
        (_, entries), = client.xreadgroup("crew", "w1", {"jobs": ">"})
        equal([entry_id for entry_id, _ in entries], ["4-0"])


@check
def delivered_once_within_a_group(binary):
    """workers of one group share the entries: no entry goes to two of them"""
    with server(binary) as path:
        client = connect(path, decode_responses=True)
        for number in range(1, 7):
            client.xadd("jobs", {"job": number}, id="%d-0" % number)
        client.xgroup_create("jobs", "crew", id="0")
        seen = []
        for worker in ("w1", "w2", "w3"):
            seen += [i for i, _ in client.xreadgroup("crew", worker, {"jobs": ">"}, count=2)[0][1]]
        equal(seen, ["%d-0" % number for number in range(1, 7)])


@check
def a_dead_workers_job_is_taken_over(binary):
    """idle work moves to another worker and counts one more delivery; the effect may happen twice"""
    with server(binary) as path:
        client = jobs(path, 1)
        equal(client.xautoclaim("jobs", "crew", "w2", 60000, "0-0"), ["0-0", [], []])
        time.sleep(0.03)
        equal(client.xautoclaim("jobs", "crew", "w2", 20, "0-0"), ["0-0", [("1-0", {"job": "j1"})], []])
        equal(rows(client), [("1-0", "w2", 2)])
        # The first worker was only slow: it acknowledges all the same, and the record is gone for both.
        equal(client.xack("jobs", "crew", "1-0"), 1)
        equal(client.xack("jobs", "crew", "1-0"), 0)


@check
def poison_shows_in_the_delivery_count(binary):
    """an entry that fails again and again shows in its number of deliveries"""
    with server(binary) as path:
        client = jobs(path, 1)
        for worker in ("w2", "w3", "w4"):
            client.xautoclaim("jobs", "crew", worker, 0, "0-0")
        equal(rows(client), [("1-0", "w4", 4)])
        client.xautoclaim("jobs", "crew", "w5", 0, "0-0", justid=True)
        equal(rows(client), [("1-0", "w5", 4)])


if __name__ == "__main__":
    main(sys.argv[1])
