"""What the Python test programs share: named checks with a count at the end, and a server of one's own.

A program registers functions with @check and ends with main(); each check passes unless it raises. The last line is
"N passed, N failed", and the exit code is 0 only if none failed.
"""
from contextlib import contextmanager
from pathlib import Path
import subprocess
import sys
import tempfile
import time
import traceback

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

CHECKS = []


def check(function):
    """Register a check; its first line of documentation is its name."""
    CHECKS.append(function)
    return function


def main(*arguments):
    failed = 0
    for function in CHECKS:
        name = (function.__doc__ or function.__name__).strip().splitlines()[0]
        try:
            function(*arguments)
        except Exception:                      # every kind of failure counts, and the next check still runs
            failed += 1
            print("FAIL %s\n%s" % (name, traceback.format_exc()), flush=True)
        else:
            print("ok   %s" % name, flush=True)
    print("%d passed, %d failed" % (len(CHECKS) - failed, failed))
    sys.exit(1 if failed else 0)


def equal(got, want):
    if got != want:
        raise AssertionError("want %r, got %r" % (want, got))


@contextmanager
def server(binary):
    """The path of the unix socket of a server started as a redis-server; it must end with code 0 on SIGTERM."""
    with tempfile.TemporaryDirectory(prefix="impel-") as folder:
        path = str(Path(folder) / "server.sock")
        output = open(Path(folder) / "output", "wb+")
        process = subprocess.Popen(
            [binary, "--port", "0", "--unixsocket", path, "--unixsocketperm", "700", "--save", "",
             "--appendonly", "no", "--dir", folder, "--maxmemory-policy", "noeviction"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output)

        def words():
            output.seek(0)
            return output.read().decode("utf-8", "replace")[-3000:]

        try:
            deadline = time.monotonic() + 10
            while not answers(path):
                if process.poll() is not None:
                    raise AssertionError("the server ended during its start: " + words())
                if time.monotonic() > deadline:
                    raise AssertionError("the server does not answer PING: " + words())
                time.sleep(0.02)
            yield path
            process.terminate()
            code = process.wait(10)
            if code != 0:
                raise AssertionError("exit code %d after SIGTERM: %s" % (code, words()))
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            output.close()


def answers(path):
    client = connect(path)
    try:
        return client.ping()
    except redis.ConnectionError:
        return False
    finally:
        client.close()


def connect(path, **options):
    """A redis-py client that gives up at the first trouble, so that no retry hides one."""
    options.setdefault("socket_timeout", 5)
    return redis.Redis(unix_socket_path=path, retry=Retry(NoBackoff(), 0), **options)
