"""Scores as a file that others can check: every answer, and the results of it.

``verify`` plays the walks again: each answer must give its entry, each path its success, and the successes must give the figures. A model's
recorded replies are read again, too. This proves the walks. It cannot prove that an engineer did not know the test, which is stored
beside the trees: a claim needs real runs on fresh seeds.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from engineers.knobs import KnobError, validated
from engineers.model.transcript import Exchange, read_transcript
from engineers.tiers import Tier
from envtuning.atlas.distance import Distances
from envtuning.atlas.menu import menu_at
from envtuning.atlas.published import StoredTree, digest_of_index, index
from envtuning.atlas.rows import Row, above_open_loop, references, row_from
from envtuning.atlas.standing import Say, Standing, drawing, to_stderr
from envtuning.atlas.store import Tree
from envtuning.atlas.walk import Step, Walk, player_of, transcript_of, walk
from envtuning.errors import RunError
from envtuning.runs.checked import figures

FORMAT: Literal[1] = 1
NEAR = 1e-6  # figures that differ by less are equal


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class StepResult(_Strict):
    """One answer."""

    entry: str
    wanted: dict[str, Any]  # the choice, or the config, that was answered
    distance: float | None
    spacing: float | None
    fallback: bool
    refusals: list[str]
    tokens: int
    cost: float | None


class WalkResult(_Strict):
    """One seed."""

    seed: int
    success: float
    steps: list[StepResult]
    exchanges: list[Exchange]  # with a model, in order


class Figures(_Strict):
    """The figures that follow from the walks."""

    success: float
    low: float | None
    high: float | None
    above_open_loop: float | None
    above_open_loop_bound: float | None
    median_distance: float | None
    counts: bool
    fallbacks: int
    tokens: int
    cost: float | None

    @classmethod
    def of(cls, row: Row, others: Sequence[Row]) -> Figures:
        above, near = above_open_loop(row, [*others, row]), row.nearness
        return cls(
            success=row.success.mean,
            low=row.success.low,
            high=row.success.high,
            above_open_loop=above and above.mean,
            above_open_loop_bound=above and above.low,
            median_distance=near and near.median,
            counts=row.counts,
            fallbacks=row.fallbacks,
            tokens=row.tokens,
            cost=row.cost,
        )


class StandingResult(_Strict):
    """One engineer on one tree."""

    tree: str
    digest: str
    engineer: str
    mode: Literal["menu", "free"]
    tier: int
    figures: Figures
    walks: list[WalkResult]


class Result(_Strict):
    """The file."""

    format: Literal[1] = FORMAT
    package: str
    atlas: int
    index: str
    standings: list[StandingResult]


def result_of(standings: Iterable[Standing]) -> Result:
    """The file of ``score --json``."""
    return Result(
        package=version("mapf-frozenlake"),
        atlas=index().version,
        index=digest_of_index(),
        standings=[_standing_result(one) for one in standings],
    )


def _standing_result(one: Standing) -> StandingResult:
    walks = [
        WalkResult(
            seed=walked.seed,
            success=tree.tested[walked.path],
            steps=[_step_result(step) for step in walked.steps],
            exchanges=last_of_each(read_transcript(one.exchanges[tree.seed])) if tree.seed in one.exchanges else [],
        )
        for tree, walked in zip(one.tree.seeds, one.walks, strict=True)
    ]
    return StandingResult(
        tree=one.tree.name,
        digest=one.tree.digest,
        engineer=one.row.name,
        mode="free" if one.mode == "free" else "menu",
        tier=int(one.row.tier),
        figures=Figures.of(one.row, one.references),
        walks=walks,
    )


def last_of_each(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """Of every question the last answer: a transcript goes on where the same walk was recorded before."""
    return list({(one.stage, one.number): one for one in exchanges}.values())


def _step_result(step: Step) -> StepResult:
    return StepResult(
        entry=step.entry,
        wanted=step.wanted,
        distance=step.distance,
        spacing=step.spacing,
        fallback=step.fallback,
        refusals=step.refusals,
        tokens=step.usage.tokens,
        cost=step.usage.cost,
    )


def read_result(path: Path) -> Result:
    """Raises ``RunError`` for other files."""
    found: Result | None = figures(path, Result)
    if found is None:
        raise RunError(f"{path} cannot be read: there is no such file")
    return found


def verify(result: Result, trees: Mapping[str, StoredTree], say: Say = to_stderr) -> list[Row]:
    """Play every walk again on these trees, by name; the rows that they give. Raises ``RunError`` that names the walk which differs."""
    return [_verified(one, trees[one.tree], say) for one in result.standings]


def _verified(told: StandingResult, tree: StoredTree, say: Say) -> Row:
    where = f"{told.engineer} on {told.tree}"
    if told.digest != tree.digest:
        raise RunError(f"{where}: was scored on tree {told.digest}, here is {tree.digest}")
    if [one.seed for one in told.walks] != [one.seed for one in tree.seeds]:
        raise RunError(f"{where}: has other seeds than the tree")
    written = any(step.distance is not None for one in told.walks for step in one.steps)
    distances = drawing(tree, say) if written else None
    walks = []
    for one, seed in zip(told.walks, tree.seeds, strict=True):
        with _naming(f"{where}, seed {one.seed}"):
            walks.append(_walked_again(one, seed, told.mode, distances))
    row = row_from(told.engineer, tree.seeds, walks, Tier(told.tier))
    others = [*references(tree.seeds), *(other for other in tree.roster if other.name != told.engineer)]
    found = Figures.of(row, others)
    for name, value in told.figures:
        if not _same(value, getattr(found, name)):
            raise RunError(f"{where}: its walks give {name} {getattr(found, name)}, the file says {value}")
    return row


@contextmanager
def _naming(where: str) -> Iterator[None]:
    try:
        yield
    except _Differs as error:
        raise RunError(f"{where}: {error}") from None


class _Differs(Exception):
    """The walk, played again, differs from the file."""


def _walked_again(told: WalkResult, tree: Tree, mode: str, distances: Distances | None) -> Walk:
    if len(told.steps) != tree.spec.depth:
        raise _Differs(f"it has {len(told.steps)} stages, the tree {tree.spec.depth}")
    steps: list[Step] = []
    for number, step in enumerate(told.steps, start=1):
        path = tuple(before.entry for before in steps)
        entry, distance, spacing = _answered(step, tree, path, distances)
        if entry != step.entry:
            raise _Differs(f"in stage {number} the answer {step.wanted} gives {entry!r}, the file says {step.entry!r}")
        if not _same(distance, step.distance) or not _same(spacing, step.spacing):
            raise _Differs(f"in stage {number} the answer is {distance} from {entry!r}, the file says {step.distance}")
        steps.append(_as_step(step))
    walked = Walk(told.seed, tuple(steps))
    if not _same(tree.tested[walked.path], told.success):
        said = "-".join(walked.path)
        raise _Differs(f"{said} ends at {tree.tested[walked.path]:g}, the file says {told.success:g}")
    if told.exchanges:
        _raise_unless_replied(told, walked, tree, mode, distances)
    elif any(step.tokens or step.cost for step in told.steps):
        raise _Differs("a model was asked, and its exchanges are missing")
    return walked


def _answered(
    step: StepResult, tree: Tree, path: tuple[str, ...], distances: Distances | None
) -> tuple[str, float | None, float | None]:
    """The entry of an answer, and for a written config its distance."""
    try:
        if distances is None:
            menu = menu_at(tree, path)
            return menu.entry(menu.model.model_validate(step.wanted)), None, None
        entries = tree.entries(path)
        config = validated(tree.spec.plan.world.config_type, step.wanted)
        return *distances.nearest(config, entries), distances.spacing(entries)
    except (KnobError, ValidationError, ValueError) as error:
        raise _Differs(f"the answer {step.wanted} is not valid: {error}") from error


def _as_step(told: StepResult) -> Step:
    step = Step(told.entry, told.wanted, told.distance, told.spacing, told.fallback, told.refusals)
    step.usage.prompt_tokens, step.usage.cost = told.tokens, told.cost
    return step


def _raise_unless_replied(told: WalkResult, walked: Walk, tree: Tree, mode: str, distances: Distances | None) -> None:
    """The recorded replies lead along the same path, at the same cost."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")  # a question that differs from the recorded one
        kept = transcript_of(Path(folder), tree)
        kept.parent.mkdir()
        kept.write_text("".join(one.model_dump_json() + "\n" for one in told.exchanges), encoding="utf-8")
        try:
            again = walk(tree, player_of(f"replay/{folder}", mode, distances))
        except UserWarning as error:
            raise _Differs(str(error)) from error
    spent = [(step.entry, step.usage.tokens, step.usage.cost) for step in again.steps]
    if spent != [(step.entry, step.tokens, step.cost) for step in told.steps]:
        raise _Differs(f"the recorded replies give {spent}")


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) < NEAR
    return bool(one == other)
