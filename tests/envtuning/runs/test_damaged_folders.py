"""Damaged run folders: told in one sentence with the file's name and exit code 1, or without effect; never a traceback, never
other results that nobody was told of. Some corruptions of a scripted run here, five hundred of each kind under ``make prove``.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envtuning.loop import run as loop
from envtuning.runs import checked
from envtuning.runs.checked import Files
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, SuiteSpec, load_spec
from envtuning.runs.tasks import next_task
from tests.envtuning.commands import called

SMALL = SuiteSpec(validation_per_slice=4, test_per_slice=4, probe_per_slice=2, failure_cases=1)
Damage = Callable[[Path, random.Random], None]


@pytest.fixture(scope="module")
def spec() -> RunSpec:
    base = load_spec("scripted").with_rounds(3)
    short = tuple(stage.model_copy(update={"budget": 1500, "advance_when": None}) for stage in base.stages)
    return base.model_copy(update={"suites": SMALL, "stages": short})


@pytest.fixture(scope="module")
def whole(spec, tmp_path_factory) -> Path:
    return loop.start(spec, tmp_path_factory.mktemp("whole") / "run").path


@pytest.fixture(scope="module")
def half(spec, tmp_path_factory) -> Path:
    """Two of three stages."""
    run = RunLog.create(tmp_path_factory.mktemp("half") / "run", Plan.of(spec))
    loop.continue_run(run, stages=2)
    return run.path


def files(run: Path) -> list[Path]:
    return sorted(path.relative_to(run) for path in run.rglob("*") if path.is_file() and not path.name.startswith("."))


# What may happen to a file


def other_digit(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    digits = [place for place, byte in enumerate(data) if chr(byte).isdigit()]
    place = rng.choice(digits) if digits else rng.randrange(len(data))
    data[place] = ord(str((data[place] + 1 + rng.randrange(8)) % 10)) if digits else data[place] ^ 0xFF
    path.write_bytes(data)


def other_byte(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def cut_off(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size))


def emptied(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def no_text(path: Path, rng: random.Random) -> None:
    path.write_bytes(b'{"a": "\xff\xfe"}\n')


def another_value(path: Path, rng: random.Random) -> None:
    path.write_text(
        rng.choice(["[]", "{}", "null", "1e400", "[" * 5000, "7" * 5000, '{"kind": 1e400}', "[NaN]"]) + "\n"
    )


def gone(path: Path, rng: random.Random) -> None:
    path.unlink()


def a_folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def a_link_to_itself(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.symlink_to(path.name)


def a_neighbour(path: Path, rng: random.Random) -> None:
    """Another file of the run, of the same kind where there is one."""
    run = next(parent for parent in path.parents if (parent / "run.json").is_file())
    others = [run / other for other in files(run) if (run / other).suffix == path.suffix and run / other != path]
    shutil.copyfile(rng.choice(others or [run / "run.json"]), path)


DAMAGES: list[Damage] = [
    other_digit, other_digit, other_byte, cut_off, emptied, no_text, another_value, gone, a_folder, a_pipe, a_link_to_itself,
    a_neighbour,
]  # fmt: skip


def outcome(run: Path) -> dict[str, object]:
    """All that a run decided and found; wall-clock times left out."""
    one = RunLog.open(run)
    found: dict[str, object] = {
        "test": one.state.test and one.state.test.model_dump(),
        "next": next_task(one.plan, one.state),
    }
    for stage in one.state.stages:
        found[f"{stage.number}"] = (
            stage.chosen, stage.report, stage.metrics(), stage.episodes(), stage.trained_on,
            stage.done and stage.done.model_dump(exclude={"seconds"}),
            {file.name: file.read_bytes() for file in sorted(stage.checkpoint.iterdir())},
        )  # fmt: skip
    return found


def told(command: list[str]) -> tuple[int, str]:
    """The command's exit code and output. A traceback or a pipe that hangs fails the test."""
    code, output = called(*command)
    return code, " ".join(output.split())


def sealed(run: Path, victim: Path) -> None:
    """Make the checksum agree with what is there, as somebody can who hands a folder on."""
    table = run / checked.NAME
    if victim != table and not victim.is_symlink() and (victim.is_file() or not victim.exists()):
        name = str(victim.relative_to(run)).partition("/checkpoint/")
        Files(run).note(run / name[0] / "checkpoint" if name[1] else victim)


def attack(source: Path, expected: dict[str, object], place: Path, rng: random.Random, *, seal: bool = False) -> str:
    """Damage one file of a copy and go on with it; how that ended. Fails the test where nobody was told of another end.

    Where the damage was sealed, another end is what the folder says, and a sentence is enough that names a file of the run.
    """
    copy = place / "run"
    shutil.copytree(source, copy)
    victim = copy / rng.choice(files(copy))
    damage = rng.choice(DAMAGES)
    if victim.stat().st_size == 0 and damage in (other_digit, other_byte, cut_off):
        damage = emptied
    what = f"{damage.__name__} {victim.relative_to(copy)}"
    damage(victim, rng)
    if seal:
        sealed(copy, victim)
    try:
        for command in ("show", "report", "tensorboard", "replay"):
            code, said = told([command, str(copy)])
            assert code in (0, 1), f"{what}: {command} ended with {code}"
            if code == 1:
                assert "error: " in said, what
        code, said = told(["resume", str(copy)])
        if code == 1:
            assert said.count("error: ") == 1, f"{what}: {said}"
            named = (str(copy),) if seal else (victim.name, victim.parent.name)
            assert any(name in said.partition("error: ")[2] for name in named), f"{what} is not named: {said}"
            return "told"
        assert code == 0, f"{what}: resume ended with {code}"
        assert seal or outcome(copy) == expected, f"{what}: another end, and nobody was told"
        return "went on"
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    finally:
        shutil.rmtree(place)


def attacks(count: int, seed: int, whole: Path, half: Path, place: Path, *, seal: bool = False) -> dict[str, int]:
    expected, ended = outcome(whole), {"told": 0, "went on": 0}
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        ended[attack(whole if number % 2 else half, expected, place / str(number), rng, seal=seal)] += 1
    return ended


@pytest.fixture(scope="module", autouse=True)
def _the_half_run_ends_as_the_whole(whole, half, tmp_path_factory):
    copy = tmp_path_factory.mktemp("resumed") / "run"
    shutil.copytree(half, copy)
    assert told(["resume", str(copy)])[0] == 0
    assert outcome(copy) == outcome(whole)


@pytest.mark.slow
def test_sixty_corruptions(whole, half, tmp_path):
    ended = attacks(60, 0, whole, half, tmp_path)
    assert ended["told"] > 36


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_five_hundred_corruptions(whole, half, tmp_path):
    ended = attacks(500, 1, whole, half, tmp_path)
    assert ended["told"] > 300


@pytest.mark.slow
def test_twenty_four_corruptions_whose_checksums_agree(whole, half, tmp_path):
    ended = attacks(24, 2, whole, half, tmp_path, seal=True)
    assert ended["told"] > 9


@pytest.mark.prove
@pytest.mark.timeout(3600)
def test_five_hundred_corruptions_whose_checksums_agree(whole, half, tmp_path):
    ended = attacks(500, 3, whole, half, tmp_path, seal=True)
    assert ended["told"] > 200


# What was accepted once, by name


@pytest.mark.parametrize(
    ("file", "damage", "says"),
    [
        ("validation.cases", lambda run, path: shutil.copyfile(run / "test.cases", path), "validation.cases has changed"),
        ("stages/00/done.json", lambda run, path: path.write_text(path.read_text().replace("1", "2")), "done.json has changed"),
        ("stages/01/checkpoint/skill.json", lambda run, path: path.write_text("[9, 9, 9, 9, 9, 9]"), "01/checkpoint has changed"),
        ("stages/00/report.json", lambda run, path: path.unlink(), "report.json is missing, though its stage is complete"),
        ("stages/00/done.json", lambda run, path: path.unlink(), "done.json is missing, and stage 1 depends on it"),
        ("stages/01/checkpoint/skill.json", lambda run, path: path.unlink(), "01/checkpoint has changed"),
        ("checksums.json", lambda run, path: path.write_text("{}"), "is not in"),
        ("checksums.json", lambda run, path: path.write_text("[1"), "checksums.json is damaged"),
    ],
)  # fmt: skip
def test_what_used_to_be_accepted_is_told_with_the_files_name(half, tmp_path, file, damage, says):
    run = tmp_path / "run"
    shutil.copytree(half, run)
    damage(run, run / file)
    code, said = told(["resume", str(run)])
    assert code == 1
    assert says in said
    assert "a copy" in said  # the remedy


def test_a_file_that_may_not_be_read_is_told_with_its_name(half, monkeypatch):
    real = os.open

    def forbidden(path: Path, *given: Any, **named: Any) -> int:
        if Path(path).name == "report.json":  # whoever runs the tests as root may read everything
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *given, **named)

    monkeypatch.setattr(os, "open", forbidden)
    for command in ("show", "report", "resume"):
        code, said = told([command, str(half)])
        assert code == 1
        assert "report.json cannot be read (Permission denied): " in said


@pytest.mark.parametrize("command", ["show", "report", "resume", "replay", "tensorboard"])
@pytest.mark.parametrize("which", ["whole", "half"])
def test_without_its_checksums_a_run_is_damaged(request, tmp_path, command, which):
    run = tmp_path / "run"
    shutil.copytree(request.getfixturevalue(which), run)
    (run / checked.NAME).unlink()
    code, said = told([command, str(run)])
    assert code == 1
    assert f"{run / checked.NAME} is missing" in said
    assert "restore it from a copy" in said


def test_every_file_that_is_read_again_has_a_checksum(whole):
    listed = json.loads((whole / checked.NAME).read_text())
    covered = {
        file for file in map(str, files(whole)) if file in listed or any(file.startswith(f"{name}/") for name in listed)
    }
    assert set(map(str, files(whole))) - covered <= {checked.NAME, "report.html"}
