"""The menu as an engineer sees it: a pydantic config with one choice, so that every engineer and every backend works unchanged.

Entries have letters, assigned again for each seed, so that neither its name nor its place reveals an entry; the choice's
``meanings``, which every prompt shows, say what each letter stands for.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_uppercase
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from engineers.knobs import dump, find_knobs
from engineers.model.shown import ShownConfigs
from engineers.model.wire import WireForm
from engineers.report import StageReport
from engineers.roles import SliceKnobs, find_slices
from engineers.space import range_of
from envtuning.atlas.spec import UNIFORM, Path_
from envtuning.atlas.store import Tree
from envtuning.loop.report import trainee_in_words
from envtuning.worlds.world import summary_of

KNOB = "choice"
REPEAT = "what the stage reported here trained on, once more"


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
        """The entry that was chosen. Raises ``ValueError`` for what is no letter of the menu."""
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

    ``hide_current``: what the node was trained on is not described, so that what it lacks shows in its results alone.
    """
    letters = deal(list(tree.spec.menu), tree.seed, shift)
    entries, now = tree.entries(path), path[-1] if path else tree.spec.first_entry
    described = {name: described_as(tree, name, config) for name, config in entries.items()}
    for name, more in rules_of(entries).items():
        described[name] = "; ".join([*more, described[name]])
    described[now] = f"{REPEAT}, not described here" if hide_current else f"{described[now]} ({REPEAT})"
    return menu_of(letters, described, knob)


def described_as(tree: Tree, entry: str, config: BaseModel) -> str:
    """What an entry is, with its numbers as they are dealt; of one that is drawn anew for every stage, what it is drawn from."""
    if tree.spec.menu[entry] == UNIFORM:
        return spread_over(config, tree)
    return in_words(config, tree)


def in_words(config: BaseModel, tree: Tree) -> str:
    """Slices that differ in nothing but their names are told together."""
    world = tree.spec.plan.world
    together: dict[str, list[str]] = {}
    for line in summary_of(world.as_dealt(config), world.about):
        label, _, rest = line.partition(", ")
        together.setdefault(rest, []).append(label)
    return "; ".join(", ".join([" and ".join(labels), rest] if rest else labels) for rest, labels in together.items())


def spread_over(config: BaseModel, tree: Tree) -> str:
    """The slices in use and the ranges that their numbers come from."""
    world, space = tree.spec.plan.world, tree.spec.run.engineer.options.get("space") or {}
    slices = [piece for piece in shared_slices(config) if piece.share is not None and piece.share.value]
    ranges: dict[str, list[float]] = {}
    for knob in (knob for piece in slices for knob in piece.difficulties):
        ranges.setdefault(knob.field, []).extend(range_of(knob, space) or (knob.value, knob.value))
    numbers = [f"{field.replace('_', ' ')} {min(ends):g} to {max(ends):g}" for field, ends in ranges.items()]
    names = ", ".join(world.about.label(piece.name) for piece in slices)
    return ", ".join([f"{names} in equal parts", *numbers]) + ", drawn anew for every stage"


def rules_of(entries: dict[str, BaseModel]) -> dict[str, list[str]]:
    """What the entries differ in besides their slices, by entry: 'num agents 3'."""
    data = {name: dump(config) for name, config in entries.items()}
    slices = {piece.share.path[0] for config in entries.values() for piece in shared_slices(config) if piece.share}
    fields = [field for field in next(iter(data.values())) if field not in slices]
    differ = [field for field in fields if any(one[field] != other[field] for one, other in pairwise(data.values()))]
    return {
        name: [f"{field.replace('_', ' ')} {said(values[field])}" for field in differ] for name, values in data.items()
    }


def shared_slices(config: BaseModel) -> list[SliceKnobs]:
    return [piece for piece in find_slices(find_knobs(config, ("*",))) if piece.share is not None]


def said(value: Any) -> str:
    """A field's value; of weights those that are drawn, with their parts where these differ."""
    if not isinstance(value, dict) or not all(isinstance(weight, int | float) for weight in value.values()):
        return str(value)
    drawn = {key: weight for key, weight in value.items() if weight > 0}
    if len(set(drawn.values())) <= 1:
        return " or ".join(map(str, drawn))
    return " or ".join(f"{key} ({weight / sum(drawn.values()):.0%})" for key, weight in drawn.items())


def menu_of(letters: dict[str, str], summaries: dict[str, str], knob: str = KNOB) -> Menu:
    """The menu of entries that are described so."""
    said = "Which of these configs the next stage trains on, as it stands."
    meanings: Any = {letter: summaries[name] for name, letter in sorted(letters.items(), key=lambda pair: pair[1])}
    options: Any = Literal[tuple(meanings)]
    fields: Any = {knob: (options, Field(description=said, json_schema_extra={"meanings": meanings}))}
    model = create_model("Menu", __config__=ConfigDict(frozen=True, extra="forbid"), **fields)
    return Menu(letters, model, knob)


def target_in_words(tree: Tree, path: Path_) -> str:
    """The target, with what is the same in every entry: a menu's config says neither."""
    target = dump(tree.spec.plan.target)
    fixed = ShownConfigs(WireForm(tree.config(path), tree.spec.run.editable), target).fixed(target)
    return ". ".join(filter(None, [in_words(tree.spec.plan.target, tree), f"Of all configs: {fixed}" if fixed else ""]))


def as_menu(report: StageReport, menu: Menu, tree: Tree, path: Path_) -> StageReport:
    """The report with every config replaced by the choice that it was."""
    took = [tree.spec.first_entry, *path]
    history = [
        record.model_copy(update={"config": menu.json(entry)})
        for record, entry in zip(report.history, took, strict=False)
    ]
    entry = tree.spec.target_entry
    target = {} if entry is None else menu.json(entry)
    plan = tree.spec.plan
    changes = {
        "config": menu.json(took[-1]),
        "target": target,
        "target_words": target_in_words(tree, path),
        "history": history,
        "aside": sorted(plan.world.about.aside),  # the last two may be newer than the tree
        "trainee": trainee_in_words(plan),
    }
    return report.model_copy(update=changes)
