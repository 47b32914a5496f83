"""Two groups over one stream: each has its own position and its own pending entries, and SETID moves only the one.

usage: delivery_positions.py SERVER-BINARY
"""
from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from checks import check, connect, equal, main, server          # noqa: E402

IDS = [b"1-0", b"2-0", b"3-0"]


def ids(reply):
    """The entry ids of a reply for one stream."""
    (_, entries), = reply
    return [entry_id for entry_id, _ in entries]


def facts(client, group):
    """(last delivered id, pending, lag) of a group."""
    row, = [row for row in client.xinfo_groups("orders") if row["name"] == group]
    return row["last-delivered-id"], row["pending"], row["lag"]


def delivered(path):
    """A stream of three; two of them delivered to `ship`, one to `audit`."""
    client = connect(path)
    for entry_id in IDS:
        client.xadd("orders", {"n": entry_id}, id=entry_id)
    client.xgroup_create("orders", "ship", id="0-0")
    client.xgroup_create("orders", "audit", id="0-0")
    equal(ids(client.xreadgroup("ship", "s1", {"orders": ">"}, count=2)), IDS[:2])
    equal(ids(client.xreadgroup("audit", "a1", {"orders": ">"}, count=1)), IDS[:1])
    return client


@check
def independent_positions(binary):
    """groups that read the same entries keep positions, pending counts and lag of their own"""
    with server(binary) as path:
        client = delivered(path)
        equal(facts(client, b"ship"), (b"2-0", 2, 1))
        equal(facts(client, b"audit"), (b"1-0", 1, 2))


@check
def acknowledgement(binary):
    """an acknowledgement lowers one group's pending count and moves no position"""
    with server(binary) as path:
        client = delivered(path)
        equal(client.xack("orders", "ship", "2-0"), 1)
        equal(facts(client, b"ship"), (b"2-0", 1, 1))
        equal(facts(client, b"audit")[1], 1)
        equal(client.xlen("orders"), 3)


@check
def history_is_the_consumers_own(binary):
    """a new consumer sees nobody else's pending entries, only new ones"""
    with server(binary) as path:
        client = delivered(path)
        client.xack("orders", "ship", "2-0")
        equal(client.xreadgroup("ship", "s2", {"orders": "0-0"}), [[b"orders", []]])
        equal(ids(client.xreadgroup("ship", "s1", {"orders": "0-0"})), [b"1-0"])
        equal(ids(client.xreadgroup("ship", "s2", {"orders": ">"})), [b"3-0"])
        equal(facts(client, b"ship"), (b"3-0", 2, 0))
        equal(client.xack("orders", "ship", "1-0", "3-0"), 2)
        equal(facts(client, b"ship"), (b"3-0", 0, 0))
        equal(client.xpending("orders", "audit")["pending"], 1)


@check
def rewinding(binary):
    """SETID to the start makes acknowledged entries deliverable again, for that group alone"""
    with server(binary) as path:
        client = delivered(path)
        client.xreadgroup("ship", "s1", {"orders": ">"})
        equal(client.xack("orders", "ship", *IDS), 3)
        client.xgroup_setid("orders", "ship", "0-0")
        equal(ids(client.xreadgroup("ship", "s3", {"orders": ">"}, count=1)), [b"1-0"])
        equal(facts(client, b"audit"), (b"1-0", 1, 2))
        equal(client.xack("orders", "ship", "1-0"), 1)


@check
def skipping(binary):
    """SETID to the end skips unread entries and keeps the pending ones, which stay readable"""
    with server(binary) as path:
        client = delivered(path)
        client.xgroup_setid("orders", "audit", "$")
        equal(facts(client, b"audit"), (b"3-0", 1, 0))
        equal(client.xreadgroup("audit", "a1", {"orders": ">"}), [])
        equal(ids(client.xreadgroup("audit", "a1", {"orders": "0-0"})), [b"1-0"])
        equal(client.xack("orders", "audit", "1-0"), 1)


if __name__ == "__main__":
    main(sys.argv[1])
