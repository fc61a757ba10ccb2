"""Every command that is asked to end does so soon, with a line and without a traceback, whatever it is at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engineers.shared.ending import ENDED, STILL_ENDING
from envtuning.runs.log import RunLog
from envtuning.runs.tasks import next_task

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

# Runs a command as `python -m` does, and sends itself the signal at the first event that it is told to wait for.
SIGNALLED = """
import os, runpy, signal, sys
number, event, about, command, *arguments = sys.argv[1:]
def hook(name, given):
    global number
    if number and name == event and about in str(given[0]):
        signalled, number = int(number), ""
        os.kill(os.getpid(), signalled)
sys.addaudithook(hook)
sys.argv = [command, *arguments]
runpy.run_module(command, run_name="__main__", alter_sys=True)
"""


def ended(script: str, *words: object, at: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=at,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.default_int_handler
        ),  # a background shell's ignore Ctrl-C
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("command", "arguments", "imported"),
    [
        ("envtuning", ["presets"], "pydantic"),
        ("engineers", ["list"], "pydantic"),
        ("envtuning.worlds.bfcl", ["verify"], "envtuning.worlds.bfcl.package"),
    ],
)
def test_a_command_ends_while_it_imports(tmp_path, number, command, arguments, imported):
    done = ended(SIGNALLED, int(number), "import", imported, command, *arguments, at=tmp_path)
    assert done.returncode == ENDED, done.stderr
    assert done.stderr.startswith("interrupted")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["engineers", "envtuning.worlds.bfcl"])
def test_a_command_imports_nothing_large_before_it_can_answer(command):
    """What Python prints of its imports, in their order, up to the module that the answer needs."""
    started = [sys.executable, "-m", command, "--help"]
    timed = os.environ | {"PYTHONPROFILEIMPORTTIME": "1"}
    said = subprocess.run(started, capture_output=True, text=True, check=True, env=timed, timeout=120).stderr
    imported = [line.rpartition("|")[2].strip() for line in said.splitlines() if line.startswith("import time:")]
    before = imported[: imported.index("engineers.shared.ending")]
    assert "engineers" in before
    assert not {"numpy", "gymnasium", "pydantic", "typer"} & set(before)


EARLY = """
import os, signal, sys
def hook(name, given):
    if name == "import" and given[0] == os.environ["SIGNALLED_AT"] and "engineers" in sys.modules:
        os.kill(os.getpid(), int(os.environ["SIGNAL"]))
sys.addaudithook(hook)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("imported", ["engineers.shared.ending", "socket", "selectors"])
@pytest.mark.parametrize("command", [["-m", "envtuning"], ["-m", "engineers"], ["envtuning"]])
def test_a_command_has_no_traceback_before_it_can_answer_either(tmp_path, number, imported, command):
    (tmp_path / "sitecustomize.py").write_text(EARLY)
    script = tmp_path / "envtuning"
    script.write_text("import sys\nfrom envtuning.__main__ import main\nsys.exit(main())")
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])])
    done = subprocess.run(
        [sys.executable, *(command if "-m" in command else [script]), "presets"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path, "SIGNALLED_AT": imported, "SIGNAL": str(int(number))},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert done.returncode in (-number, ENDED)
    assert done.stdout == ""
    assert done.stderr == "" if done.returncode == -number else done.stderr.startswith("interrupted")


RUDE = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1_000_000):
        pass
except BaseException:
    pass
"""


def test_a_library_that_swallows_what_is_raised_while_it_is_imported_cannot_keep_the_command(tmp_path):
    (tmp_path / "rude.py").write_text(RUDE)
    script = "from engineers.shared.ending import ends_when_asked\nwith ends_when_asked('bye'):\n print('begun'); import rude; print('on')"
    done = ended(script, at=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (ENDED, "begun\n", "bye\n")


HEARD = """
import os, signal, sys
from engineers.shared.ending import ends_when_asked
if sys.argv[2] == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
with ends_when_asked("bye"):
    os.kill(os.getpid(), int(sys.argv[1]))
    print("went on")
"""


def test_between_imports_a_command_hears_sigterm_as_it_hears_ctrl_c(tmp_path):
    for number in (signal.SIGTERM, signal.SIGINT):
        done = ended(HEARD, int(number), "heard", at=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (ENDED, "", "bye\n")


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it(tmp_path):
    assert ended(HEARD, int(signal.SIGINT), "ignored", at=tmp_path).stdout == "went on\n"


BUSY = """
import hashlib, os, signal, threading, time
from engineers.shared import ending
ending.PATIENCE = 0.05
threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
with ending.ends_when_asked("bye"):
    while True:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000)  # no step of Python's in between
"""


def test_what_cannot_be_left_at_once_is_said(tmp_path):
    done = ended(BUSY, at=tmp_path)
    assert done.stderr.encode() == STILL_ENDING + b"bye\n"


@pytest.mark.slow
def test_a_run_ends_where_it_is_and_goes_on_from_there(tmp_path):
    run = ("envtuning", "run", "scripted", "--stages", 1, "--out", tmp_path / "run")
    done = ended(SIGNALLED, int(signal.SIGTERM), "os.rename", ".checkpoint.draft", *run, at=tmp_path)
    assert done.returncode == ENDED, done.stderr
    assert "interrupted" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr + done.stdout
    killed = RunLog.open(tmp_path / "run")
    assert next_task(killed.plan, killed.state) is not None
    assert ended(SIGNALLED, "", "", "", "envtuning", "resume", tmp_path / "run", at=tmp_path).returncode == 0
    run = RunLog.open(tmp_path / "run")
    assert next_task(run.plan, run.state) is None
