"""What surrounds a command: limits, names, links, and an output that takes little or nothing. Each is told in a sentence, without a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.envtuning.commands import called

pytestmark = pytest.mark.skipif(os.name == "nt", reason="limits and devices as POSIX has them")

LONG = "x" * 300
SHORT = ["run", "scripted", "--stages", "1"]


def ended(at: Path, command: list[str], before: str = "", after: str = "", **environment: str):
    """The command in a shell that does something before it, or something with its output."""
    return subprocess.run(
        ["bash", "-c", f'{before} exec "$@" {after}', "bash", sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=at,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])} | environment,
    )


def told(arguments: list[str]) -> str:
    """What is said of a command that fails. Anything but a sentence fails the test."""
    code, output = called(*arguments)
    assert (code, output.count("error: ")) == (1, 1), output
    return output


@pytest.mark.slow
def test_comparisons_of_one_folder_wait_for_each_other(tmp_path):
    """Whoever comes second continues what the first has done, and all draw up the same table."""
    command = [
        sys.executable,
        "-m",
        "envtuning",
        "compare",
        "scripted",
        "--engineers",
        "fixed,rules",
        "--seeds",
        "2",
        "--stages",
        "2",
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}

    def begun(out: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*command, "--out", out],
            cwd=tmp_path,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    together, alone = [begun("together") for _ in range(3)], begun("alone")
    for each in (*together, alone):
        _, said = each.communicate(timeout=240)
        assert (each.returncode, said) == (0, "")
    figures = [(tmp_path / out / "comparison.json").read_text() for out in ("together", "alone")]
    assert figures[0] == figures[1]


def test_a_file_that_may_not_grow_is_told(tmp_path):
    done = ended(tmp_path, ["envtuning", *SHORT, "--out", "run"], before="ulimit -f 1;")
    assert done.returncode == 1
    assert "ulimit -f" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [[*SHORT, "--out", LONG], ["run", LONG], ["show", LONG], ["report", LONG], ["resume", LONG], ["compare", LONG],
     ["compare", "scripted", "--engineers", "fixed", "--seeds", "1", "--out", LONG]],
)  # fmt: skip
def test_a_name_that_is_too_long_is_told(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    assert "too long" in told(arguments)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("key", ["stages.²", "stages.².budget", "stages.9"])
def test_a_place_in_a_list_is_a_number(tmp_path, key):
    assert key in told([*SHORT, "--set", f"{key}=1", "--out", str(tmp_path / "run")])


@pytest.mark.parametrize("place", ["file", "folder", "loop", "loop/below", "file/below"])
@pytest.mark.parametrize(
    "arguments", [SHORT, ["compare", "scripted", "--engineers", "fixed", "--seeds", "1"]], ids=["run", "compare"]
)
def test_a_place_that_cannot_be_written_is_told(tmp_path, place, arguments):
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "fixed" / "seed0").mkdir(parents=True)
    (tmp_path / "folder" / "fixed" / "seed0" / "theirs").touch()
    (tmp_path / "loop").symlink_to("loop")
    assert str(tmp_path / place) in told([*arguments, "--out", str(tmp_path / place)])


@pytest.mark.parametrize(
    "command", [["envtuning", "presets"], ["engineers", "propose", "--report", "example", "--engineer", "rules"]]
)
def test_letters_that_the_output_lacks_are_written_out(tmp_path, command):
    done = ended(tmp_path, command, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "\\u" in done.stdout or "\\x" in done.stdout


@pytest.mark.parametrize("command", [["envtuning", "presets"], ["envtuning", "--help"], ["engineers", "list"]])
def test_an_output_that_is_full_is_told(tmp_path, command):
    done = ended(tmp_path, command, after="> /dev/full")
    assert done.returncode != 0
    assert done.stderr.startswith("error: ")
    assert "No space left" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_output_that_is_closed_or_that_nobody_reads_is_no_error(tmp_path):
    closed = ended(tmp_path, ["envtuning", "presets"], after=">&-")
    assert (closed.returncode, closed.stderr) == (0, "")
    assert ended(tmp_path, ["envtuning", "presets"], after="| true").stderr == ""


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("name", "theirs"), [("notes", b"of mine"), ("notes", b"of\nmine\n"), ("notes.spent", b"of mine\n")]
)
def test_an_evaluation_leaves_somebodys_file_alone(tmp_path, name, theirs):
    pytest.importorskip("openai")
    (tmp_path / name).write_bytes(theirs)
    asked = [
        "evaluate",
        "--model",
        "server/http://127.0.0.1:9/v1#none",
        "--suite",
        "quick",
        "--out",
        str(tmp_path / "notes"),
    ]
    assert name in told(asked)
    assert (tmp_path / name).read_bytes() == theirs
