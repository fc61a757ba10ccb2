"""Folders of a run that an earlier version was killed at, in each kind of task: today's ends them as that version did."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest

from engineers.report import StageReport
from envtuning import loop
from envtuning.runs.log import RunLog
from envtuning.runs.state import FORMAT

RECORDED = json.loads(gzip.decompress((Path(__file__).parents[1] / "fixtures" / "killed.json.gz").read_bytes()))
WORDS = (
    "aside",
    "behaviour",
    "failure_meanings",
    "splits",
    "target_words",
    "trainee",
)  # of a report, which worlds reword
NOT_THE_RUNS = ("run.json", "checksums.json")  # which say when it was made, and what a file's bytes are


def compared(run: Path) -> dict[str, object]:
    """All that the run found, file by file; what the wall clock said is left out."""
    found: dict[str, object] = {}
    for path in sorted(run.rglob("*")):
        if path.is_file() and path.name not in NOT_THE_RUNS and not path.name.startswith("."):
            found[str(path.relative_to(run))] = path.read_bytes()
            if path.name in ("config.json", "done.json", "report.json"):
                record = json.loads(path.read_bytes())
                if path.name == "report.json":
                    record = StageReport.model_validate(record).model_dump(mode="json")  # in today's version
                for name in ("seconds", "validations", "history", *WORDS):  # the history is the reports before it
                    record.pop(name, None)
                if record.get("proposal"):
                    record["proposal"].pop("usage")
                found[str(path.relative_to(run))] = record
    return found


def as_today(files: dict[str, str]) -> dict[str, str]:
    """The folder in today's format: a proposal stands with the config that followed from it."""
    found = {}
    for name, text in files.items():
        if name.endswith("/config.json"):
            stage = int(name.split("/")[1])
            asked = files.get(f"stages/{stage - 1:02d}/proposal.json")
            answer = json.loads(base64.b64decode(asked)) if asked else {"proposal": None, "incidents": []}
            chosen = json.loads(base64.b64decode(text)) | answer
            del chosen["name"]
            text = base64.b64encode(json.dumps(chosen).encode()).decode()
        if not name.endswith("/proposal.json"):
            found[name] = text
    return found


def laid_out(files: dict[str, str], run: Path) -> Path:
    for name, text in files.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(base64.b64decode(text))
    return run


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> dict[str, object]:
    return compared(laid_out(as_today(RECORDED["ended"]), tmp_path_factory.mktemp("ended") / "run"))


@pytest.mark.parametrize("moment", sorted(RECORDED["killed"]))
def test_a_run_killed_then_ends_now_as_it_would_have(moment, ended, tmp_path):
    run = laid_out(RECORDED["killed"][moment], tmp_path / "run")
    loop.resume(run)
    assert compared(run) == ended
    assert RunLog.open(run).record.format == FORMAT
