"""redis-py with its defaults: produce, read, acknowledge, claim; blocking reads, pipelines, transactions, RESP3.

usage: redis_py.py PORT SOCKET
"""
from pathlib import Path
import sys
import threading
import time

import redis

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from checks import check, equal, main                           # noqa: E402


def fresh(port, **options):
    client = redis.Redis(port=int(port), decode_responses=True, **options)
    client.flushall()
    return client


def work_round(client):
    """Produce two, read both, acknowledge one, claim and acknowledge the other."""
    ids = [client.xadd("s", {"n": number}) for number in range(2)]
    equal(client.xgroup_create("s", "g", id="0"), True)
    reply = client.xreadgroup("g", "c1", {"s": ">"}, count=10)
    want = [(ids[0], {"n": "0"}), (ids[1], {"n": "1"})]
    equal(list(reply.items())[0][1][0] if isinstance(reply, dict) else reply[0][1], want)
    equal(client.xack("s", "g", ids[0]), 1)
    equal(client.xautoclaim("s", "g", "c2", 0, "0-0"), ["0-0", [(ids[1], {"n": "1"})], []])
    equal(client.xclaim("s", "g", "c3", 0, [ids[1]]), [(ids[1], {"n": "1"})])
    equal(client.xack("s", "g", ids[1]), 1)
    equal(client.xpending("s", "g"), {"pending": 0, "min": None, "max": None, "consumers": []})
    equal(client.xlen("s"), 2)
    equal(client.xinfo_stream("s")["length"], 2)


@check
def defaults(port, socket):
    """connects with defaults and says hello"""
    client = redis.Redis(port=int(port))
    equal(client.ping(), True)
    if not client.info("server").get("redis_version"):
        raise AssertionError("INFO server names no redis_version")
    equal(client.client_setname("tester"), True)
    equal(client.client_getname(), "tester" if isinstance(client.client_getname(), str) else b"tester")


@check
def round_default(port, socket):
    """produce, read, acknowledge, claim: the default protocol"""
    work_round(fresh(port))


@check
def round_resp2(port, socket):
    """produce, read, acknowledge, claim: RESP2"""
    work_round(fresh(port, protocol=2))


@check
def round_resp3(port, socket):
    """produce, read, acknowledge, claim: RESP3"""
    work_round(fresh(port, protocol=3))


@check
def round_unix(port, socket):
    """produce, read, acknowledge, claim: unix socket"""
    client = redis.Redis(unix_socket_path=socket, decode_responses=True)
    client.flushall()
    work_round(client)


@check
def blocking(port, socket):
    """a blocking read ends at once when an entry comes, with nothing when none does"""
    client = fresh(port)
    client.xgroup_create("s", "g", mkstream=True)
    started = time.monotonic()
    if client.xreadgroup("g", "c", {"s": ">"}, block=100):
        raise AssertionError("a reply where there was nothing to read")
    if not 0.09 <= time.monotonic() - started < 1:
        raise AssertionError("BLOCK 100 took %.3f s" % (time.monotonic() - started))
    timer = threading.Timer(0.1, lambda: redis.Redis(port=int(port)).xadd("s", {"a": "b"}, id="1-0"))
    timer.start()
    started = time.monotonic()
    reply = client.xreadgroup("g", "c", {"s": ">"}, block=4000)
    took = time.monotonic() - started
    timer.join()
    if "1-0" not in repr(reply) or took > 2:
        raise AssertionError("%r after %.3f s" % (reply, took))


@check
def pipeline(port, socket):
    """a pipeline answers in order, errors in their places"""
    pipe = fresh(port).pipeline(transaction=False)
    for number in range(1, 101):
        pipe.xadd("s", {"n": number}, id="%d-0" % number)
    pipe.xadd("s", {"n": 0}, id="1-0")
    pipe.xlen("s")
    replies = pipe.execute(raise_on_error=False)
    equal(replies[:100], ["%d-0" % number for number in range(1, 101)])
    if not isinstance(replies[100], redis.ResponseError) or "equal or smaller" not in str(replies[100]):
        raise AssertionError("an id that goes back: %r" % replies[100])
    equal(replies[101], 100)


@check
def transaction(port, socket):
    """MULTI and EXEC: all at once, and nothing when a watched key changed"""
    client = fresh(port)
    with client.pipeline() as pipe:
        equal(pipe.xadd("s", {"a": 1}, id="1-0").xlen("s").execute(), ["1-0", 1])
    with client.pipeline() as pipe:
        pipe.watch("s")
        client.xadd("s", {"a": 2}, id="2-0")
        pipe.multi()
        pipe.xadd("s", {"a": 3}, id="3-0")
        try:
            pipe.execute()
        except redis.WatchError:
            equal(client.xlen("s"), 2)
            return
    raise AssertionError("a transaction went through though its key had changed")


def next_message(subscriber):
    """The next message that is no confirmation."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        message = subscriber.get_message(ignore_subscribe_messages=True, timeout=0.2)
        if message:
            return message["type"], message["pattern"], message["channel"], message["data"]
    raise AssertionError("no message within 5 s")


def messages(port, protocol):
    client = fresh(port, protocol=protocol)
    with client.pubsub() as subscriber:
        subscriber.subscribe("news", "other")
        subscriber.psubscribe("n*")
        while len(client.pubsub_channels()) < 2 or client.pubsub_numpat() < 1:
            subscriber.get_message(timeout=0.01)
        equal(client.pubsub_numsub("news", "none"), [("news", 1), ("none", 0)])
        equal(client.publish("news", "hello"), 2)
        equal(next_message(subscriber), ("message", None, "news", "hello"))
        equal(next_message(subscriber), ("pmessage", "n*", "news", "hello"))
        subscriber.ping()
        subscriber.unsubscribe()
        subscriber.punsubscribe()
        deadline = time.monotonic() + 5
        while client.pubsub_numpat() and time.monotonic() < deadline:
            subscriber.get_message(timeout=0.01)
        equal((client.pubsub_channels(), client.pubsub_numpat()), ([], 0))


@check
def pubsub_resp2(port, socket):
    """publish and subscribe: RESP2"""
    messages(port, 2)


@check
def pubsub_resp3(port, socket):
    """publish and subscribe: RESP3"""
    messages(port, 3)


@check
def pubsub_shard(port, socket):
    """shard channels"""
    client = fresh(port)
    with client.pubsub() as subscriber:
        subscriber.ssubscribe("shard")
        while not client.pubsub_shardchannels():
            subscriber.get_message(timeout=0.01)
        equal(client.spublish("shard", "x"), 1)
        equal(next_message(subscriber), ("smessage", None, "shard", "x"))


@check
def keyspace_events(port, socket):
    """keyspace events, in the order of what happened"""
    client = fresh(port)
    client.config_set("notify-keyspace-events", "EAn")
    try:
        with client.pubsub() as subscriber:
            subscriber.psubscribe("__keyevent@0__:*")
            while not client.pubsub_numpat():
                subscriber.get_message(timeout=0.01)
            client.xadd("s", {"a": "b"}, maxlen=1, approximate=False)
            client.xadd("s", {"a": "b"}, maxlen=1, approximate=False)
            client.delete("s")
            events = [next_message(subscriber)[2].split(":")[1] for _ in range(5)]
            equal(events, ["new", "xadd", "xadd", "xtrim", "del"])
    finally:
        client.config_set("notify-keyspace-events", "")


if __name__ == "__main__":
    main(*sys.argv[1:3])
