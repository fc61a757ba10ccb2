"""Runs that can be killed at any write: a process that has everything imported and forks a child for each run.

Reads jobs from standard input, a JSON object a line: ``spec`` and ``folder``; ``kill_at``, the storage operation at which
the child kills itself with SIGKILL, the file it was writing cut short; ``kill_after``, seconds until the parent kills it;
``log``, a file for the labels of all storage operations. Answers each with a line: how the child ended. With ``here`` the run is done
in this process instead: what it imports and compiles, later children have.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

from engineers.shared import own
from envtuning.loop import run as loop
from envtuning.runs.spec import RunSpec

AUDITED = {"os.rename", "os.remove", "os.mkdir", "os.rmdir"}


def watch_storage(folder: Path, kill_at: int | None, log: Path | None) -> None:
    """Count every operation that changes the folder's files; die at the one with number ``kill_at``."""
    count = 0
    labels = None if log is None else open(log, "w", buffering=1)  # noqa: SIM115 (open until the process ends)

    def operation(kind: str, path: str) -> bool:
        nonlocal count
        if not path.startswith(str(folder)):
            return False
        if labels is not None:
            labels.write(f"{kind} {path[len(str(folder)) + 1 :]}\n")
        count += 1
        return count - 1 == kill_at

    def audit(event: str, arguments: tuple) -> None:
        if event in AUDITED and operation(event, os.fspath(arguments[0])):
            os.kill(os.getpid(), signal.SIGKILL)

    def fsync(handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        if operation("fsync", path):
            cut_short(handle, draft=any(part.startswith(".") for part in Path(path).relative_to(folder).parts))
            os.kill(os.getpid(), signal.SIGKILL)
        # Nothing is forced to the disk: what a killed process has written stays with the system.

    os.fsync = fsync
    sys.addaudithook(audit)


def cut_short(handle: int, draft: bool) -> None:
    """Leave the file as a process leaves it that dies between two writes: a draft half, a log without its last bytes."""
    if os.path.isfile(f"/proc/self/fd/{handle}"):
        size = os.fstat(handle).st_size
        os.truncate(f"/proc/self/fd/{handle}", size // 2 if draft else max(0, size - 3))


def child(job: dict) -> None:
    folder = Path(job["folder"])
    watch_storage(folder, job.get("kill_at"), Path(job["log"]) if "log" in job else None)
    loop.start(RunSpec.model_validate(job["spec"]), folder)


def main() -> None:
    own.trust(("tests", "examples", *sys.argv[1:]))
    for module in sys.argv[1:]:  # slow to import: once, before the children are forked
        import_module(module)
    for line in sys.stdin:
        job = json.loads(line)
        begin = time.monotonic()
        if job.get("here"):
            loop.start(RunSpec.model_validate(job["spec"]), Path(job["folder"]))
            print(json.dumps({"code": 0, "seconds": time.monotonic() - begin}), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            try:
                child(job)
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        if "kill_after" in job:
            time.sleep(job["kill_after"])
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps({"code": code, "seconds": time.monotonic() - begin}), flush=True)


if __name__ == "__main__":
    main()
