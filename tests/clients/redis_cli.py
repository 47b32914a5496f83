"""redis-cli and redis-benchmark as people call them.

usage: redis_cli.py PORT SOCKET
"""
import csv
import json
from pathlib import Path
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from checks import check, equal, main                           # noqa: E402


def run(*words, stdin=b"", timeout=60):
    done = subprocess.run(words, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
    if done.returncode != 0:
        raise AssertionError("%s: exit code %d: %s" % (" ".join(words), done.returncode,
                                                       (done.stdout + done.stderr).decode("utf-8", "replace")))
    return done.stdout.decode()


def cli(port, *words, **options):
    return run("redis-cli", "-p", port, *words, **options).rstrip("\n")


@check
def defaults(port, socket):
    """connects with defaults, over TCP and unix socket"""
    equal(cli(port, "PING"), "PONG")
    equal(run("redis-cli", "-s", socket, "PING").strip(), "PONG")


@check
def work_round(port, socket):
    """produce, read, acknowledge, claim"""
    cli(port, "FLUSHALL")
    equal(cli(port, "XADD", "s", "1-0", "a", "1"), "1-0")
    equal(cli(port, "XADD", "s", "2-0", "a", "2"), "2-0")
    equal(cli(port, "XGROUP", "CREATE", "s", "g", "0"), "OK")
    reply = cli(port, "XREADGROUP", "GROUP", "g", "c1", "STREAMS", "s", ">")
    equal(reply.split("\n"), ["s", "1-0", "a", "1", "2-0", "a", "2"])
    equal(cli(port, "XACK", "s", "g", "1-0"), "1")
    equal(cli(port, "XAUTOCLAIM", "s", "g", "c2", "0", "0").split("\n"), ["0-0", "2-0", "a", "2"])
    equal(cli(port, "XPENDING", "s", "g").split("\n"), ["1", "2-0", "2-0", "c2", "1"])


@check
def json_and_resp3(port, socket):
    """--json and -3 speak RESP3"""
    cli(port, "FLUSHALL")
    cli(port, "XADD", "s", "1-0", "a", "1")
    equal(json.loads(cli(port, "--json", "XREAD", "STREAMS", "s", "0")), {"s": [["1-0", ["a", "1"]]]})
    equal(json.loads(cli(port, "--json", "XINFO", "STREAM", "s"))["length"], 1)
    if "1#" not in run("redis-cli", "-p", port, "-3", "--no-raw", "XINFO", "STREAM", "s"):
        raise AssertionError("XINFO STREAM in RESP3 is no map")


@check
def errors(port, socket):
    """an error sets the exit code with -e and shows its text"""
    done = subprocess.run(["redis-cli", "-e", "-p", port, "XADD", "s"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
    if done.returncode == 0 or b"ERR wrong number of arguments for 'xadd' command" not in done.stdout:
        raise AssertionError("exit code %d: %r" % (done.returncode, done.stdout))


@check
def blocking(port, socket):
    """a blocking read ends when an entry comes"""
    cli(port, "FLUSHALL")
    timer = threading.Timer(0.3, lambda: cli(port, "XADD", "s", "1-0", "a", "b"))
    timer.start()
    started = time.monotonic()
    reply = cli(port, "XREAD", "BLOCK", "8000", "STREAMS", "s", "$")
    timer.join()
    equal(reply.split("\n"), ["s", "1-0", "a", "b"])
    if time.monotonic() - started > 4:
        raise AssertionError("woken after %.1f s" % (time.monotonic() - started))


@check
def pipe_mode(port, socket):
    """--pipe sends many commands and gets as many replies"""
    cli(port, "FLUSHALL")
    commands = b"".join(b"*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\na\r\n$1\r\nb\r\n" for _ in range(1000))
    if "errors: 0, replies: 1000" not in cli(port, "--pipe", stdin=commands):
        raise AssertionError("--pipe did not get 1000 good replies")
    equal(cli(port, "XLEN", "s"), "1000")


@check
def benchmark(port, socket):
    """redis-benchmark with a command of its own: every request arrives once"""
    for pipeline in ("1", "16"):
        cli(port, "FLUSHALL")
        output = run("redis-benchmark", "-p", port, "-n", "20000", "-c", "20", "-P", pipeline, "--csv",
                     "XADD", "s", "*", "f", "v" * 40)
        rows = list(csv.reader(line for line in output.splitlines() if line.startswith('"')))
        if not (len(rows) == 2 and float(rows[1][1]) > 0):
            raise AssertionError("not understood: %s" % output)
        equal(cli(port, "XLEN", "s"), "20000")


if __name__ == "__main__":
    main(*sys.argv[1:3])
