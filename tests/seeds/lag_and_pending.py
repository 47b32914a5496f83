"""Lag counts what was never delivered, pending what was delivered and not acknowledged; the two never mix.

usage: lag_and_pending.py SERVER-BINARY
"""
from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from checks import check, connect, equal, main, server          # noqa: E402


def row(client):
    """(pending, lag, entries-read, last delivered id) of the only group."""
    group, = client.xinfo_groups("tasks")
    return group["pending"], group["lag"], group["entries-read"], group["last-delivered-id"]


def two_entries(path):
    client = connect(path, decode_responses=True)
    equal(client.xadd("tasks", {"text": "one"}, id="1-0"), "1-0")
    equal(client.xadd("tasks", {"text": "two"}, id="2-0"), "2-0")
    equal(client.xgroup_create("tasks", "crew", id="0"), True)
    return client


@check
def before_delivery(binary):
    """before a delivery everything is lag and nothing is pending"""
    with server(binary) as path:
        pending, lag, _, last = row(two_entries(path))
        equal((pending, lag, last), (0, 2, "0-0"))


@check
def one_delivered(binary):
    """a delivery takes from lag and adds to pending"""
    with server(binary) as path:
        client = two_entries(path)
        (_, entries), = client.xreadgroup("crew", "c1", {"tasks": ">"}, count=1)
        equal(entries, [("1-0", {"text": "one"})])
        equal(row(client), (1, 1, 1, "1-0"))
        equal(client.xpending("tasks", "crew"),
              {"pending": 1, "min": "1-0", "max": "1-0", "consumers": [{"name": "c1", "pending": 1}]})


@check
def no_lag_but_pending(binary):
    """a group with nothing left to deliver can still have everything to finish"""
    with server(binary) as path:
        client = two_entries(path)
        client.xreadgroup("crew", "c1", {"tasks": ">"})
        equal(row(client), (2, 0, 2, "2-0"))
        equal(client.xack("tasks", "crew", "1-0", "2-0"), 2)
        equal(row(client), (0, 0, 2, "2-0"))


@check
def behind_though_all_is_acknowledged(binary):
    """a consumer that acknowledged everything and reads no more still falls behind"""
    with server(binary) as path:
        client = two_entries(path)
        client.xreadgroup("crew", "c1", {"tasks": ">"})
        client.xack("tasks", "crew", "1-0", "2-0")
        client.xadd("tasks", {"text": "three"}, id="3-0")
        equal(row(client), (0, 1, 2, "2-0"))


@check
def deletion_is_never_a_wrong_number(binary):
    """with an unread entry deleted, lag is the true number or unknown, never a wrong one"""
    with server(binary) as path:
        client = two_entries(path)
        client.xadd("tasks", {"text": "three"}, id="3-0")
        client.xreadgroup("crew", "c1", {"tasks": ">"}, count=1)
        client.xdel("tasks", "2-0")
        lag = row(client)[1]
        if lag not in (1, None):
            raise AssertionError("one entry is left to deliver, lag is %r" % lag)


@check
def entries_read_can_be_told(binary):
    """ENTRIESREAD and ENTRIESADDED restore counters with a position"""
    with server(binary) as path:
        client = connect(path, decode_responses=True)
        for number in range(1, 5):
            client.xadd("tasks", {"n": number}, id="%d-0" % number)
        equal(client.xgroup_create("tasks", "crew", id="3-0", entries_read=3), True)
        equal(row(client), (0, 1, 3, "3-0"))
        equal(client.execute_command("XSETID", "tasks", "9-0", "ENTRIESADDED", 9, "MAXDELETEDID", "0-0"), "OK")
        info = client.xinfo_stream("tasks")
        equal((info["entries-added"], info["last-generated-id"]), (9, "9-0"))


@check
def claiming_what_was_deleted(binary):
    """a claim passes over deleted entries, takes them off the pending list and names them"""
    with server(binary) as path:
        client = two_entries(path)
        client.xreadgroup("crew", "c1", {"tasks": ">"})
        client.xdel("tasks", "1-0")
        equal(client.xautoclaim("tasks", "crew", "c2", 0, "0-0"), ["0-0", [("2-0", {"text": "two"})], ["1-0"]])
        client.xdel("tasks", "2-0")
        equal(client.xclaim("tasks", "crew", "c3", 0, ["2-0"]), [])
        equal(row(client)[0], 0)


if __name__ == "__main__":
    main(sys.argv[1])
