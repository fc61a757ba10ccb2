"""Reads the files of run format 2 that differ from today's, and rewrites them when such a run continues.

In format 2 an engineer's answer was a file of its own, ``proposal.json``, in the folder of the stage that it was asked about. A
``config.json`` had the stage's name, which is also in the run's spec. The first such folders had no count of validations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from envtuning import atomic
from envtuning.runs.checked import Files, damaged, parsed
from envtuning.runs.plan import Plan
from envtuning.runs.state import Choice, Measured, Said, Stage, StageResult

FORMAT = 2
Json = dict[str, Any]


def choice(files: Files, path: Path, plan: Plan) -> Choice | None:
    """What the stage in this folder trains on; None if that is not chosen yet. A config.json of today's format is read, too."""
    number = int(path.name)
    answered = path.with_name(f"{number - 1:02d}") / "proposal.json"
    chosen = files.value(path / "config.json", Json)
    if chosen is None or "name" in chosen:
        answer = files.value(answered, Json) if number else None
        if chosen is None and answer is None:
            return None
        if answer is None and number and plan.spec.stage(number).asks:
            raise damaged(answered, f"is missing, and stage {number} depends on it")
        chosen = chosen or _by_the_engineer(answer or {}, plan)
        chosen = {key: value for key, value in chosen.items() if key != "name"}
        chosen |= {key: value for key, value in (answer or {}).items() if key != "config"}
    return parsed(path / "config.json", json.dumps(chosen).encode(), Choice, plan.world.config_type)


def _by_the_engineer(answer: Json, plan: Plan) -> Json:
    """The config.json that would have been written next."""
    proposal = answer.get("proposal")
    by = proposal.get("engineer") if isinstance(proposal, dict) else None
    return {"config": answer.get("config"), "engineer": by or plan.spec.engineer.name}


def result(files: Files, path: Path) -> StageResult | None:
    """The result of the stage in this folder; None if it is not done."""
    written = files.value(path / "done.json", Json)
    if written is None:
        return None
    if not written.get("validations"):
        lines = files.lines(path / "metrics.jsonl", Measured | Said)
        written["validations"] = sum(line["kind"] == "validation" for line in lines)
    return parsed(path / "done.json", json.dumps(written).encode(), StageResult)


def attempt(state: Json) -> Json:
    """The state in a checkpoint inside a stage, in today's format."""
    renamed = {"number" if key == "attempt" else key: value for key, value in state.items()}
    renamed.pop("history_spent", None)  # the sum of two other values
    return renamed


def rewrite(files: Files, stages: Iterable[Stage]) -> None:
    """Write these stages of a run of format 2 in today's format. Each file can be read by this module before and after."""
    for stage in stages:
        if (stage.path / "config.json").exists():
            files.replace_record(stage.path / "config.json", stage.chosen)
        else:
            files.write_record(atomic.make_folder(stage.path) / "config.json", stage.chosen)
        if stage.done is not None:
            files.replace_record(stage.path / "done.json", stage.done)
        for state in stage.path.glob("inside-*/state.json"):
            with files.changing(state.parent):
                atomic.write_text(state, json.dumps(attempt(json.loads(state.read_bytes()))))


def remove_the_rest(stages: Iterable[Stage]) -> None:
    """Remove the files that today's format does not have."""
    for stage in stages:
        (stage.path / "proposal.json").unlink(missing_ok=True)
