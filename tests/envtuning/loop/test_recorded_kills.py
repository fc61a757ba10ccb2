"""Folders of a run that an earlier version was killed at, in each kind of task: today's ends them as that version did."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest

from engineers import Engineer, Proposal
from engineers.report import StageReport
from envtuning import loop
from envtuning.runs.log import RunLog
from envtuning.runs.state import FORMAT
from mapf_frozenlake import LakeConfig

RECORDED = json.loads(gzip.decompress((Path(__file__).parents[1] / "fixtures" / "killed.json.gz").read_bytes()))
WORDS = (
    "aside",
    "behaviour",
    "failure_meanings",
    "splits",
    "target_words",
    "trainee",
)  # of a report, which worlds reword
OUTCOMES = (
    "outcomes_in_words",
    "score_in_words",
    "training_results",
    "environment_stats",
)  # the trainee gave none then
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
                    record["cost"] = {
                        record["unit"]: record["cost"][record["unit"]]
                    }  # then with units of validation alone
                for name in (
                    "seconds",
                    "validations",
                    "history",
                    *WORDS,
                    *OUTCOMES,
                ):  # the history is the reports before it
                    record.pop(name, None)
                if record.get("proposal"):
                    record["proposal"].pop("usage")
                found[str(path.relative_to(run))] = record
            if path.name == "metrics.jsonl":
                lines = [json.loads(line) for line in path.read_bytes().splitlines()]
                found[str(path.relative_to(run))] = [line | {"outcomes": None} for line in lines]
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


class AsThen(Engineer):
    """Answers what was answered then: the trainee gives outcomes now, and an engineer reads them."""

    name = "as then"

    def propose(self, report, current, editable=None):
        asked = json.loads(base64.b64decode(RECORDED["ended"][f"stages/{report.stage:02d}/proposal.json"]))
        return Proposal[LakeConfig].model_validate(asked["proposal"])


@pytest.mark.parametrize("moment", sorted(RECORDED["killed"]))
def test_a_run_killed_then_ends_now_as_it_would_have(moment, ended, tmp_path, monkeypatch):
    monkeypatch.setattr("envtuning.loop.ask.make_engineer", lambda *_: AsThen())
    run = laid_out(RECORDED["killed"][moment], tmp_path / "run")
    loop.resume(run)
    assert compared(run) == ended
    assert RunLog.open(run).record.format == FORMAT
