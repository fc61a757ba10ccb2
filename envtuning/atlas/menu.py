"""The menu as a pydantic config with one choice, so that every engineer and every backend works unchanged.

Entries have letters, assigned again for each seed, so that neither name nor place reveals an entry. The choice's
``meanings``, which every prompt shows, explain each letter.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from engineers.report import StageReport
from envtuning.atlas.spec import Path_
from envtuning.atlas.store import Tree

KNOB = "choice"
REPEAT = "what the stage reported here trained on, once more"


@dataclass(frozen=True)
class Menu:
    """One node's menu: the meaning of each letter, and the config model of the choice."""

    letters: dict[str, str]  # by entry
    model: type[BaseModel]
    knob: str = KNOB

    def config(self, entry: str) -> BaseModel:
        return self.model.model_validate(self.json(entry))

    def json(self, entry: str) -> dict[str, str]:
        return {self.knob: self.letters[entry]}

    def entry(self, config: BaseModel) -> str:
        """The chosen entry. Raises ``ValueError`` for a value that is not a letter of the menu."""
        chosen = getattr(config, self.knob, None)
        for name, letter in self.letters.items():
            if letter == chosen:
                return name
        raise ValueError(f"{self.knob}={chosen!r} is not on the menu: {', '.join(sorted(self.letters.values()))}")


def deal(names: list[str], seed: int, shift: int = 0) -> dict[str, str]:
    """A letter for each entry; another ``shift``, below the number of entries, gives every entry another letter."""
    letters = list(ascii_uppercase[: len(names)])
    random.Random(f"letters:{seed}").shuffle(letters)
    return dict(zip(names, letters[shift:] + letters[:shift], strict=True))


def menu_at(tree: Tree, path: Path_, *, shift: int = 0, knob: str = KNOB, hide_current: bool = False) -> Menu:
    """A node's menu. Along a way the letters stay; another ``shift`` deals others.

    ``hide_current``: does not describe the node's own config, so that only its results show what it lacks.
    """
    letters = deal(list(tree.spec.menu), tree.seed, shift)
    described, now = dict(tree.words[path].entries), path[-1] if path else tree.spec.first_entry
    described[now] = f"{REPEAT}, not described here" if hide_current else f"{described[now]} ({REPEAT})"
    return menu_of(letters, described, knob)


def menu_of(letters: dict[str, str], summaries: dict[str, str], knob: str = KNOB) -> Menu:
    """The menu of entries that are described so."""
    said = "Which of these configs the next stage trains on, as it stands."
    meanings: Any = {letter: summaries[name] for name, letter in sorted(letters.items(), key=lambda pair: pair[1])}
    options: Any = Literal[tuple(meanings)]
    fields: Any = {knob: (options, Field(description=said, json_schema_extra={"meanings": meanings}))}
    model = create_model("Menu", __config__=ConfigDict(frozen=True, extra="forbid"), **fields)
    return Menu(letters, model, knob)


def as_menu(report: StageReport, menu: Menu, tree: Tree, path: Path_) -> StageReport:
    """The report with every config replaced by its choice."""
    took = [tree.spec.first_entry, *path]
    history = [
        record.model_copy(update={"config": menu.json(entry)})
        for record, entry in zip(report.history, took, strict=False)
    ]
    entry = tree.spec.target_entry
    target = {} if entry is None else menu.json(entry)
    changes = {
        "config": menu.json(took[-1]),
        "target": target,
        "target_words": tree.words[path].target,
        "history": history,
        "aside": tree.aside,  # the last two may be newer than the tree
        "trainee": tree.trainee,
    }
    return report.model_copy(update=changes)
