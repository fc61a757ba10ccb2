"""The menu as an engineer sees it: a pydantic config with one choice, so that every engineer and every backend works unchanged.

Entries have letters, dealt anew for each seed, so that neither a name nor a place gives one away; what a letter stands for is in
the description of the choice, which every prompt shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from engineers.report import StageReport
from envtuning.atlas.spec import FIRST, TARGET, UNIFORM, Path_
from envtuning.atlas.store import Tree
from envtuning.worlds.world import summary_of

KNOB = "choice"


@dataclass(frozen=True)
class Menu:
    """One node's menu: what each letter stands for, and the config model in which a letter is chosen."""

    letters: dict[str, str]  # by entry
    model: type[BaseModel]
    knob: str = KNOB

    def config(self, entry: str) -> BaseModel:
        return self.model.model_validate(self.json(entry))

    def json(self, entry: str) -> dict[str, str]:
        return {self.knob: self.letters[entry]}

    def entry(self, config: BaseModel) -> str:
        """The entry that was chosen."""
        chosen = getattr(config, self.knob)
        return next(name for name, letter in self.letters.items() if letter == chosen)


def deal(names: list[str], deal_of: str) -> dict[str, str]:
    """A letter for each entry."""
    letters = list(ascii_uppercase[: len(names)])
    random.Random(f"letters:{deal_of}").shuffle(letters)
    return dict(zip(names, letters, strict=True))


def menu_at(tree: Tree, path: Path_, *, deal_of: str | None = None, knob: str = KNOB) -> Menu:
    """A node's menu. Along a way the letters stay; another ``deal_of`` deals others."""
    world = tree.spec.run.world.made
    letters = deal(list(tree.spec.menu), str(tree.seed) if deal_of is None else deal_of)
    summaries = {name: "; ".join(summary_of(config, world.about)) for name, config in tree.entries(path).items()}
    anew = {name: " (drawn anew for every stage)" for name, said in tree.spec.menu.items() if said == UNIFORM}
    return menu_of(letters, {name: said + anew.get(name, "") for name, said in summaries.items()}, knob)


def menu_of(letters: dict[str, str], summaries: dict[str, str], knob: str = KNOB) -> Menu:
    """The menu of entries that are described so."""
    legend = " ".join(
        f"{letter}: {summaries[name]}." for name, letter in sorted(letters.items(), key=lambda pair: pair[1])
    )
    said = f"Which of these configs the next stage trains on, as it stands. {legend}"
    options: Any = Literal[tuple(sorted(letters.values()))]
    fields: Any = {knob: (options, Field(description=said))}
    model = create_model("Menu", __config__=ConfigDict(frozen=True, extra="forbid"), **fields)
    return Menu(letters, model, knob)


def as_menu(report: StageReport, menu: Menu, tree: Tree, path: Path_) -> StageReport:
    """The report with every config told as the choice that it was."""
    took = [tree.spec.named(FIRST), *path]
    history = [
        record.model_copy(update={"config": menu.json(entry)})
        for record, entry in zip(report.history, took, strict=False)
    ]
    changes = {"config": menu.json(took[-1]), "target": menu.json(tree.spec.named(TARGET)), "history": history}
    return report.model_copy(update=changes)
