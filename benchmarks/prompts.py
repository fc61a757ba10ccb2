"""Prompts about four stored reports, in today's version and in an earlier one: ``python -m benchmarks.prompts``.

The reports: a run on lakes (in closed form), one where a config is an entry of a menu, a run on text tasks, and one on text tasks
with what training showed. Their prompts of version 1 (the last one: of version 3) are stored as texts, ``….before.txt``. Those of today
are rendered: ``--write`` stores them as ``….now.txt``, and puts one of them on the page docs/prompt.md. ``--slices`` counts the tokens of a question and an answer for more and more slices.
``slices_of_configs.json`` has these counts, and ``answer_forms.json`` four sittings of an exam, from when an answer could also be the
whole next config.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from benchmarks._record import record
from engineers.knobs import dump, validated
from engineers.model.answer_format import AnswerFormat
from engineers.model.context import context_named
from engineers.model.meter import estimate_tokens
from engineers.model.prompt import PROMPT_VERSION, build_prompt
from engineers.report import SliceResult, Split, StageRecord, StageReport
from examples.five_tasks import world as five_tasks
from examples.six_tasks import world as six_tasks
from mapf_frozenlake import LakeConfig

STORED = Path(__file__).parent / "prompts"
PAGE = Path(__file__).parents[1] / "docs" / "prompt.md"
CONTEXT = "informed"
MOST = {"outcomes": 1.05}  # times the tokens of the earlier version; 1.15 for the others
TITLES = {
    "lakes": "A run on lakes",
    "menu": "A menu of configs",
    "tasks": "A run on text tasks",
    "outcomes": "Text tasks, with what training showed",
}
BEFORE = {"outcomes": 3}  # the earlier version, where it is not 1
SHOWN = "outcomes"  # the report whose prompt stands on the page
GENERATED = (
    "\n## Prompts of four reports\n",
    "\n## What the versions changed\n",
)  # the headings that enclose what is rendered
SLICES = (4, 24, 48)
STAGES = 4  # of the run whose last stage such a question reports
CHANGED = 4  # shares that an answer changes


@dataclass(frozen=True)
class Told:
    """A question: its two messages as one text, and the tokens of these and of the schema beside them."""

    text: str
    tokens: int


def told(report: StageReport, answer_format: AnswerFormat) -> Told:
    messages = build_prompt(report, answer_format, context_named(CONTEXT)).messages
    text = "\n\n".join(message["content"] for message in messages)
    return Told(text, estimate_tokens(text) + estimate_tokens(json.dumps(answer_format.schema)))


def stored(name: str) -> StageReport:
    return StageReport.model_validate_json((STORED / f"{name}.json").read_bytes())


def questions() -> dict[str, tuple[StageReport, AnswerFormat]]:
    """The reports with the formats of their answers."""
    lakes, menu, tasks, outcomes = (stored(name) for name in TITLES)
    return {
        "lakes": (lakes, AnswerFormat(validated(LakeConfig, lakes.config))),
        "menu": (menu, AnswerFormat(menu_model().model_validate(menu.config))),
        "tasks": (tasks, AnswerFormat(validated(five_tasks.config_type, tasks.config))),
        "outcomes": (outcomes, AnswerFormat(validated(six_tasks.config_type, outcomes.config), ["tasks.*.share"])),
    }


def menu_model() -> type[BaseModel]:
    """The config of the stored menu: one choice, whose options have meanings."""
    meanings = json.loads((STORED / "menu.meanings.json").read_bytes())
    said = "Which of these configs the next stage trains on, as it stands."
    field = Field(description=said, json_schema_extra={"meanings": meanings})
    options: Any = Literal[tuple(meanings)]
    return create_model("Menu", choice=(options, field))


def now() -> dict[str, Told]:
    return {name: told(*question) for name, question in questions().items()}


def before() -> dict[str, Told]:
    """As the earlier version had them."""
    counts = json.loads((STORED / "before.json").read_bytes())
    return {name: Told((STORED / f"{name}.before.txt").read_text(encoding="utf-8"), counts[name]) for name in TITLES}


def text_of_now(name: str) -> Path:
    return STORED / f"{name}.now.txt"


def page(today: Mapping[str, Told], then: Mapping[str, Told]) -> str:
    """docs/prompt.md with the section between the headings ``GENERATED`` rendered anew."""
    begins, ends = GENERATED
    written = PAGE.read_text(encoding="utf-8")
    intro, outro = written.partition(begins)[0], written.partition(ends)[2]
    table = ["| report | today, its tokens | before, its tokens | times |", "| --- | ---: | ---: | ---: |"]
    for name, title in TITLES.items():
        links = f"../{STORED.relative_to(PAGE.parents[1]).as_posix()}/{name}"
        table.append(
            f"| {title} | [version {PROMPT_VERSION}]({links}.now.txt), {today[name].tokens:,} "
            f"| [version {BEFORE.get(name, 1)}]({links}.before.txt), {then[name].tokens:,} "
            f"| {today[name].tokens / then[name].tokens:.2f} |"
        )
    said = [
        "Each link is a whole prompt. `python -m benchmarks.prompts --write` renders those of today from stored reports.",
        "\n".join(table),
        f"The last one, “{TITLES[SHOWN]}”, as it is told today:",
        f"```text\n{today[SHOWN].text}\n```",
    ]
    return f"{intro}{begins}\n" + "\n\n".join(said) + f"\n{ends}{outro}"


def about_slices(count: int) -> tuple[StageReport, AnswerFormat]:
    """A question about so many slices, at the end of the run's stage ``STAGES``."""
    names = [f"task-{number}" for number in range(count)]
    field = Field(1.0, ge=0, le=1, description="Part of the data.")
    slice_type = create_model("Slice", share=(float, field))
    config_type = create_model("Config", tasks=(dict[str, slice_type], ...))  # type: ignore[valid-type]
    config = config_type.model_validate({"tasks": {name: {} for name in names}})

    def row(name: str, stage: int, episodes: int) -> SliceResult:
        won, score = 0.1 + 0.2 * stage, 0.3 + 0.2 * stage
        half = Split(episodes=episodes // 2, succeeded=round(won * episodes / 2), score=score)
        return SliceResult(
            name=name, episodes=episodes, metrics={"success_rate": won, "score": score}, halves=[half, half]
        )

    records = [
        StageRecord(
            stage=stage,
            config=dump(config),
            results=[],
            training_results=[row(name, stage, 400) for name in names],
            engineer="default",
        )
        for stage in range(STAGES)
    ]
    *history, now = records
    report = StageReport(
        stage=now.stage,
        config=now.config,
        target=now.config,
        training_results=now.training_results,
        score_in_words="the part of the signs that stand in their places",
        blind_scores=dict.fromkeys(names, 0.1),
        history=history,
        rounds_left=2,
    )
    return report, AnswerFormat(config)


def with_slices(count: int) -> dict[str, int]:
    """The estimated tokens of such a question, and of an answer that changes ``CHANGED`` shares."""
    report, answer_format = about_slices(count)
    reason = "its score rose from 0.70 to 0.90 while nothing succeeded, so it is being learnt"
    entries = [{"path": knob.name, "reason": reason, "value": 0.25} for knob in answer_format.knobs[:CHANGED]]
    return {
        "question": told(report, answer_format).tokens,
        "answer": estimate_tokens(json.dumps({"changes": entries})),
    }


def with_slices_then() -> dict[str, dict[str, int]]:
    """The same by number of slices, when an answer was the whole next config."""
    return json.loads((STORED / "slices_of_configs.json").read_bytes())["figures"]


@dataclass(frozen=True)
class Sat:
    """A language model's sitting of the exam: mean success at the end, and the tokens of all its answers."""

    success: float
    tokens: int


def by_form() -> dict[str, list[Sat]]:
    """By root, when the model was asked for the whole config ("config") and for its changes alone ("changes")."""
    found: dict[str, list[Sat]] = {"config": [], "changes": []}
    for one in json.loads((STORED / "answer_forms.json").read_bytes())["sittings"]:
        if one["paper"]["engineer"].startswith("server/"):
            sat = Sat(fmean(one["success"]), one["usage"]["completion_tokens"])
            found[one["paper"]["options"].get("answer", "config")].append(sat)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prompts", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="render the texts and the page anew")
    parser.add_argument("--slices", action="store_true", help="count the tokens by number of slices, and store them")
    arguments = parser.parse_args()
    if arguments.slices:
        record("prompt_slices", {str(count): with_slices(count) for count in SLICES})
        return
    today, then = now(), before()
    for name in TITLES:
        print(
            f"{name}: {then[name].tokens} tokens in version {BEFORE.get(name, 1)}, {today[name].tokens} in version {PROMPT_VERSION}"
        )
    if arguments.write:
        for name in TITLES:
            text_of_now(name).write_text(today[name].text, encoding="utf-8")
        PAGE.write_text(page(today, then), encoding="utf-8")


if __name__ == "__main__":
    main()
