"""``score``: an engineer's score on each tree, beside the rows that need no engineer and those of the roster."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engineers.engineer import Engineer, as_engineer
from engineers.model.engineer import ModelEngineer
from engineers.model.meter import Meter
from engineers.model.transcript import Transcript
from engineers.registry import tier_named
from engineers.tiers import Tier
from envtuning.atlas.distance import Distances
from envtuning.atlas.published import StoredTree, load, names
from envtuning.atlas.roster import ROSTER
from envtuning.atlas.rows import Row, above_open_loop, references, row_of
from envtuning.atlas.store import Tree
from envtuning.atlas.walk import (
    Chooser,
    MakeEngineer,
    Walk,
    Writer,
    bound,
    by_name,
    player_of,
    reads_menus,
    recorded_in,
    transcript_of,
    writes_by_rule,
)
from envtuning.studies.closed_loop import Gain
from envtuning.studies.study import folder_name

BESIDE = ("fixed", "uniform", "rules")  # of the roster, beside every own engineer
Say = Callable[[str], None]


@dataclass(frozen=True)
class Standing:
    """One engineer on one tree."""

    tree: StoredTree
    row: Row
    walks: list[Walk]
    references: list[Row]  # those that need no engineer, and all of the roster but itself
    mode: str
    exchanges: Mapping[int, Path] = field(default_factory=dict)  # with a model, by seed

    @property
    def success(self) -> float:
        """On the test at the leaf, the mean over seeds."""
        return self.row.success.mean

    @property
    def above(self) -> Gain | None:
        """Its gain over the best row that reads nothing; None if it reads nothing itself."""
        return above_open_loop(self.row, [*self.references, self.row])

    @property
    def beside(self) -> list[Row]:
        """The references to show: the best path, the best open loop, and the simplest engineers."""
        blind = [row for row in self.references if row.counts and not row.tier.reads]
        best = max(blind, key=lambda row: row.success.mean).name
        return [row for row in self.references if row.name not in ROSTER or row.name in (best, *BESIDE)]


class Standings(dict[str, Standing]):
    """By tree; printed as a table."""

    def __str__(self) -> str:
        lines = []
        for name, one in self.items():
            lines.append(f"{name}: % of the test at the leaf, {len(one.tree.seeds)} seeds")
            for row in (*one.beside, one.row):
                said = row.success.percent() if row.counts else "no score"
                lines.append(f"  {row.name:24} {said:>12}{' <' if row is one.row else ''}")
        return "\n".join(lines)


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def score(
    engineer: str | Engineer | Any,
    trees: Sequence[str | StoredTree] | None = None,
    *,
    mode: str = "menu",
    context: str | None = None,
    meter: Meter | None = None,
    transcripts: Path | None = None,
    say: Say = to_stderr,
    **options: Any,
) -> Standings:
    """Walk an engineer through every seed of these trees, of all published ones by default.

    ``engineer`` is a name of the roster, a name as ``engineers.make`` takes it with options, or an object with a name and ``propose``.
    ``meter`` holds the caps of all questions together; models' exchanges are kept below ``transcripts``. Raises ``SpecError`` before
    the first walk if the engineer cannot be asked.
    """
    wanted = names() if trees is None else trees
    loaded = [one if isinstance(one, StoredTree) else load(one) for one in wanted]
    asked = Asked.of(engineer, mode, context, meter, transcripts, options)
    raise_unless_able([asked], loaded, say)
    return Standings({tree.name: asked.on(tree, say) for tree in loaded})


@dataclass(frozen=True)
class Asked:
    """An engineer with its options."""

    label: str
    engineer: str | Engineer
    mode: str
    tier: Tier
    writes: bool  # configs, which are compared by their draws
    folder: Path | None
    options: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        engineer: str | Engineer | Any,
        mode: str,
        context: str | None,
        meter: Meter | None,
        transcripts: Path | None,
        options: Mapping[str, Any],
    ) -> Asked:
        given = {"meter": meter or Meter()} | ({} if context is None else {"context": context})
        if not isinstance(engineer, str):
            own = as_engineer(engineer() if isinstance(engineer, type) else engineer)
            writes = mode == "free" or writes_by_rule(own)
            folder = None if transcripts is None else exchanges(transcripts, own.name, mode)
            return cls(own.name, own, mode, own.tier, writes, folder, given)
        name, by_roster = ROSTER.get(engineer, (engineer, {}))
        made_with = {**by_roster, **options}
        backend, _, recorded = name.partition("/")
        folder = None if transcripts is None else exchanges(transcripts, name, mode)
        folder = Path(recorded) if backend == "replay" else folder
        by_rule = writes_by_rule(name, **made_with)  # raises an error that names the fault of a user's own engineer
        tier = tier_named(name, **made_with, **({} if context is None else {"context": context}))
        return cls(engineer, name, mode, tier, mode == "free" or by_rule, folder, made_with | given)

    def on(self, tree: StoredTree, say: Say) -> Standing:
        walks: list[Walk] = []
        row = row_of(self.label, tree.seeds, self.player(tree, say), walks.append, self.tier)
        others = [*references(tree.seeds), *(one for one in tree.roster if one.name != self.label)]
        kept = {seed.seed: path for seed in tree.seeds if (path := self.recorded(seed)) is not None}
        return Standing(tree, row, walks, others, self.mode, kept)

    def recorded(self, seed: Tree) -> Path | None:
        """Where the exchanges of one seed's walk are; None where no model was asked."""
        if self.folder is None:
            return None
        path = transcript_of(recorded_in(self.folder, seed) if self.replays else self.folder, seed)
        return path if path.exists() else None

    @property
    def replays(self) -> bool:
        return isinstance(self.engineer, str) and self.engineer.startswith("replay/")

    def asked_by_menu(self, tree: StoredTree, say: Say) -> Chooser | Writer:
        """For evidence: an engineer that reads menus chooses, even if it writes a config elsewhere."""
        if isinstance(self.engineer, str) and reads_menus(self.engineer):
            return Chooser(by_name(self.engineer, mode="menu"))
        return self.player(tree, say)

    def player(self, tree: StoredTree, say: Say) -> Chooser | Writer:
        distances = drawing(tree, say) if self.writes else None
        if isinstance(self.engineer, str):
            return player_of(self.engineer, self.mode, distances, transcripts=self.folder, **self.options)
        make = always(self.engineer, self.options, self.folder)
        return Chooser(make) if distances is None else Writer(make, distances)


def raise_unless_able(asked: Sequence[Asked], trees: Sequence[StoredTree], say: Say) -> None:
    """Raises ``SpecError`` if one of them cannot be asked, or can change nothing. Asks nothing."""
    for tree in trees:
        for one in asked:
            one.player(tree, say).raise_unless_able(tree.seeds[0])


def always(engineer: Engineer, options: Mapping[str, Any], transcripts: Path | None) -> MakeEngineer:
    """The same object for every question, with the caps and the context of all."""

    def make(tree: Tree, stage: int) -> Engineer:
        if isinstance(engineer, ModelEngineer) and transcripts is not None:
            engineer.transcript = Transcript(transcript_of(transcripts, tree))
        return bound(engineer, options["meter"], options.get("context"))

    return make


def drawing(tree: StoredTree, say: Say) -> Distances:
    """Compares configs by the cases that they draw; trees of one world share it. Prints a notice, because this takes a while."""
    world = tree.spec.run.world
    key = json.dumps([world.name, world.options], sort_keys=True)
    if key not in _DRAWING:
        made = tree.spec.plan.world
        say(f"draws {made.about.case}s to compare configs")
        _DRAWING[key] = Distances(made)
    return _DRAWING[key]


_DRAWING: dict[str, Distances] = {}


def exchanges(transcripts: Path, engineer: str, mode: str) -> Path:
    """Where this engineer's exchanges in this mode are kept, apart from all others'."""
    return transcripts / folder_name(f"{engineer} {mode}")
