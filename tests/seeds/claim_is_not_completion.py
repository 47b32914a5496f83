"""Eight cases, C01 to C08: a claim moves ownership and proves no work done. Spoken with plain `redis-cli --json`.

The work itself is a folder outside the server: making it succeeds once, so it tells a first effect from a repeated
one without asking the server.

usage: claim_is_not_completion.py SERVER-BINARY
"""
import json
from pathlib import Path
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from checks import check, equal, main, server                   # noqa: E402

IDLE_MS = 150                      # long enough to be told from "just delivered" on a busy machine


class Laboratory:
    """A server, its command line, and what the workers did."""

    def __init__(self, path, folder):
        self.path, self.folder = path, Path(folder)
        self.attempts, self.completions, self.duplicates = [], [], []

    def cli(self, *words):
        done = subprocess.run(["redis-cli", "-s", self.path, "--json", *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20)
        if done.returncode != 0 or done.stderr:
            raise AssertionError("%s: exit code %d, %s" % (" ".join(words), done.returncode, done.stderr.decode()))
        return json.loads(done.stdout)

    def deliver(self, stream, entry_id, job):
        """A job in a stream of its own, delivered to c1."""
        equal(self.cli("XADD", stream, entry_id, "job_id", job, "payload", "x"), entry_id)
        equal(self.cli("XGROUP", "CREATE", stream, "g", "0"), "OK")
        reply = self.cli("XREADGROUP", "GROUP", "g", "c1", "COUNT", "1", "STREAMS", stream, ">")
        equal(reply, {stream: [[entry_id, ["job_id", job, "payload", "x"]]]})

    def claim(self, stream, consumer, idle_ms):
        return self.cli("XAUTOCLAIM", stream, "g", consumer, str(idle_ms), "0-0", "COUNT", "10")

    def pending(self, stream):
        """[(id, owner, deliveries)]; the idle time between them depends on the clock."""
        rows = self.cli("XPENDING", stream, "g", "-", "+", "100")
        if not all(isinstance(row[2], int) and row[2] >= 0 for row in rows):
            raise AssertionError("idle times: %r" % rows)
        return [(row[0], row[1], row[3]) for row in rows]

    def work(self, job, worker):
        """Do the job unless it is done: whether this was the first time."""
        self.attempts.append((job, worker))
        try:
            (self.folder / job).mkdir()
        except FileExistsError:
            self.duplicates.append((job, worker))
            return False
        self.completions.append((job, worker))
        return True


def laboratory(function):
    """A check with a laboratory of its own."""
    def run(binary):
        with server(binary) as path, tempfile.TemporaryDirectory(prefix="impel-") as folder:
            function(Laboratory(path, folder))
    run.__doc__ = function.__doc__
    return check(run)


def wait_idle():
    time.sleep((IDLE_MS + 50) / 1000)


@laboratory
def c01(lab):
    """C01 read and not acknowledged: pending with its reader, no work done"""
    lab.deliver("lab:a", "1000-0", "job-A")
    equal(lab.pending("lab:a"), [("1000-0", "c1", 1)])
    equal(lab.completions, [])


@laboratory
def c02(lab):
    """C02 a claim before the idle threshold takes nothing"""
    lab.deliver("lab:a", "1000-0", "job-A")
    equal(lab.claim("lab:a", "c2", 60000), ["0-0", [], []])
    equal(lab.pending("lab:a"), [("1000-0", "c1", 1)])
    equal(lab.cli("XPENDING", "lab:a", "g", "IDLE", "60000", "-", "+", "10"), [])


@laboratory
def c03(lab):
    """C03 a claim after the threshold moves ownership, and still no work is done"""
    lab.deliver("lab:a", "1000-0", "job-A")
    wait_idle()
    equal(lab.claim("lab:a", "c2", IDLE_MS), ["0-0", [["1000-0", ["job_id", "job-A", "payload", "x"]]], []])
    equal(lab.pending("lab:a"), [("1000-0", "c2", 2)])
    equal(lab.claim("lab:a", "c3", 60000), ["0-0", [], []])          # the claim set the idle time back
    equal(lab.completions, [])


@laboratory
def c04(lab):
    """C04 the first consumer resumes: it does not get the entry back, but may still act on what it holds"""
    lab.deliver("lab:a", "1000-0", "job-A")
    wait_idle()
    lab.claim("lab:a", "c2", IDLE_MS)
    equal(lab.cli("XREADGROUP", "GROUP", "g", "c1", "STREAMS", "lab:a", "0"), {"lab:a": []})
    equal(lab.pending("lab:a"), [("1000-0", "c2", 2)])
    equal((lab.work("job-A", "c2"), lab.work("job-A", "c1")), (True, False))
    equal(lab.duplicates, [("job-A", "c1")])


@laboratory
def c05(lab):
    """C05 done but not acknowledged: it is claimed again, and the guard keeps the effect single"""
    lab.deliver("lab:b", "3000-0", "job-B")
    wait_idle()
    lab.claim("lab:b", "c2", IDLE_MS)
    equal(lab.work("job-B", "c2"), True)
    wait_idle()
    equal(lab.claim("lab:b", "c3", IDLE_MS), ["0-0", [["3000-0", ["job_id", "job-B", "payload", "x"]]], []])
    equal(lab.pending("lab:b"), [("3000-0", "c3", 3)])
    equal(lab.work("job-B", "c3"), False)
    equal(lab.cli("XACK", "lab:b", "g", "3000-0"), 1)
    equal((len(lab.attempts), len(lab.completions), len(lab.duplicates)), (2, 1, 1))
    equal(lab.pending("lab:b"), [])


@laboratory
def c06(lab):
    """C06 deleted while pending: the claim names it, hands out nothing and takes it off the list"""
    lab.deliver("lab:c", "4000-0", "job-C")
    equal(lab.cli("XDEL", "lab:c", "4000-0"), 1)
    wait_idle()
    equal(lab.claim("lab:c", "c2", IDLE_MS), ["0-0", [], ["4000-0"]])
    equal(lab.cli("XPENDING", "lab:c", "g"), [0, None, None, None])


@laboratory
def c07(lab):
    """C07 the new owner works, then acknowledges: nothing pending, done once"""
    lab.deliver("lab:d", "2000-0", "job-D")
    wait_idle()
    lab.claim("lab:d", "c2", IDLE_MS)
    equal(lab.work("job-D", "c2"), True)
    equal(lab.cli("XACK", "lab:d", "g", "2000-0"), 1)
    equal(lab.cli("XACK", "lab:d", "g", "2000-0"), 0)
    equal(lab.cli("XPENDING", "lab:d", "g"), [0, None, None, None])
    equal(lab.completions, [("job-D", "c2")])


@laboratory
def c08(lab):
    """C08 all at once on one server: done is exactly what was to be done, and only the negative control is pending"""
    jobs = {"lab:a": ("1000-0", "job-A"), "lab:b": ("3000-0", "job-B"), "lab:c": ("4000-0", "job-C"),
            "lab:d": ("2000-0", "job-D")}
    for stream, (entry_id, job) in jobs.items():
        lab.deliver(stream, entry_id, job)
    lab.cli("XDEL", "lab:c", "4000-0")
    wait_idle()
    for stream in jobs:
        lab.claim(stream, "c2", IDLE_MS)
    for stream in ("lab:b", "lab:d"):
        entry_id, job = jobs[stream]
        lab.work(job, "c2")
        equal(lab.cli("XACK", stream, "g", entry_id), 1)
    equal(sorted(job for job, _ in lab.completions), ["job-B", "job-D"])
    equal({stream: lab.pending(stream) for stream in jobs},
          {"lab:a": [("1000-0", "c2", 2)], "lab:b": [], "lab:c": [], "lab:d": []})


if __name__ == "__main__":
    main(sys.argv[1])
