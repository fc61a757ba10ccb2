"""Prompts about three stored reports, in today's version and in the first: ``python -m benchmarks.prompts``.

The reports: a run on lakes (in closed form), one where a config is an entry of a menu, and a run on text tasks.
Their prompts of version 1 are stored as texts; those of today are rendered. ``--write`` renders the page docs/prompt.md anew.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from engineers.knobs import validated
from engineers.model.answer_format import AnswerFormat
from engineers.model.context import context_named
from engineers.model.meter import estimate_tokens
from engineers.model.prompt import PROMPT_VERSION, build_prompt
from engineers.report import StageReport
from examples.five_tasks import world as five_tasks
from mapf_frozenlake import LakeConfig

STORED = Path(__file__).parent / "prompts"
PAGE = Path(__file__).parents[1] / "docs" / "prompt.md"
CONTEXT = "informed"
MOST = 1.15  # times the tokens of version 1
TITLES = {"lakes": "A run on lakes", "menu": "A menu of configs", "tasks": "A run on text tasks"}


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
    """The three reports with the formats of their answers."""
    lakes, menu, tasks = (stored(name) for name in TITLES)
    return {
        "lakes": (lakes, AnswerFormat(validated(LakeConfig, lakes.config))),
        "menu": (menu, AnswerFormat(menu_model().model_validate(menu.config))),
        "tasks": (tasks, AnswerFormat(validated(five_tasks.config_type, tasks.config))),
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
    """As version 1 had them."""
    counts = json.loads((STORED / "before.json").read_bytes())
    return {name: Told((STORED / f"{name}.before.md").read_text(encoding="utf-8"), counts[name]) for name in TITLES}


def page(today: Mapping[str, Told], then: Mapping[str, Told]) -> str:
    intro = (PAGE.read_text(encoding="utf-8")).partition("\n## ")[0]
    table = ["| report | tokens of version 1 | now | times |", "| --- | ---: | ---: | ---: |"]
    table += [
        f"| {title} | {then[name].tokens:,} | {today[name].tokens:,} | {today[name].tokens / then[name].tokens:.2f} |"
        for name, title in TITLES.items()
    ]
    parts = [intro.rstrip(), "## Tokens", "\n".join(table)]
    for name, title in TITLES.items():
        parts += [f"## {title}", "Now:", _block(today[name].text), "Version 1:", _block(then[name].text)]
    return "\n\n".join(parts) + "\n"


def _block(text: str) -> str:
    return f"````text\n{text}\n````"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prompts", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="render the page anew")
    arguments = parser.parse_args()
    today, then = now(), before()
    for name in TITLES:
        print(f"{name}: {then[name].tokens} tokens in version 1, {today[name].tokens} in version {PROMPT_VERSION}")
    if arguments.write:
        PAGE.write_text(page(today, then), encoding="utf-8")


if __name__ == "__main__":
    main()
