"""Credit: which change of a proposal earned its gain.

The stage is trained again from the checkpoint before it, on paired seeds: once on the old config (*keep*), once on the proposal, and
once for each group of knobs on the proposal with that group reset. A group's credit is the loss from resetting it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table
from typing_extensions import TypedDict

from engineers.knobs import KnobError, changes, dump, find_knobs, validated, with_values
from envtuning import atomic
from envtuning.errors import RunError
from envtuning.loop.contract import load_checkpoint
from envtuning.loop.validation import draw_suites
from envtuning.runs import checked
from envtuning.runs.log import RunLog
from envtuning.seeds import derive
from envtuning.show.console import plain_table
from envtuning.show.pace import Pace
from envtuning.studies.intervals import Interval, t_mean_over_cases
from envtuning.worlds.world import InfeasibleConfig

KEEP, PROPOSAL = "keep", "proposal"
MOST_GROUPS = 8
FEWEST_SEEDS = 5
PER_SLICE = 200  # cases for each slice of the target, drawn only for this

Path_ = tuple[str, ...]
Outcomes = list[float]  # the objective on every case


class Trained(TypedDict):
    """A line of the stored credit: a config and its outcomes."""

    arm: str
    seed: int
    config: dict[str, Any]
    per_slice: int
    outcomes: Outcomes


@dataclass(frozen=True)
class Group:
    """Knobs that are reset together, because they mean the same in different slices."""

    name: str
    turned: dict[Path_, tuple[Any, Any]]  # old and new value, by place


@dataclass(frozen=True)
class Share:
    """One group's credit."""

    name: str
    changed: list[str]  # "slices.4.share: 0.3 → 1.0"
    success: Interval | None  # success of the proposal without it; None if that cannot be drawn
    credit: Interval | None  # the proposal's success minus that, paired by seed and case
    note: str = ""


@dataclass(frozen=True)
class Credit:
    """The gain of a proposal, and the credit of each of its changes."""

    run: str
    stage: int
    engineer: str
    metric: str
    unit: str
    amount: int  # per arm
    cases: int
    seeds: list[int]
    keep: Interval
    proposal: Interval
    gain: Interval  # the proposal's success minus keep's, paired by seed and case
    groups: list[Share]

    @property
    def ranked(self) -> list[Share]:
        """The groups by credit, the largest first. Groups that cannot be reset alone come last."""
        return sorted(self.groups, key=lambda group: -(group.credit.mean if group.credit else -1.0))


def groups_of(keep: Any, proposal: Any) -> list[Group]:
    """The changes by kind of knob. If there are more than ``MOST_GROUPS`` kinds, the last group holds the rest."""
    patterns = {knob.path: knob.pattern for config in (keep, proposal) for knob in find_knobs(config, ("*",))}
    found: dict[str, dict[Path_, tuple[Any, Any]]] = {}
    for path, old, new in changes(keep, proposal):
        found.setdefault(patterns.get(path, path[0]), {})[path] = (old, new)
    if len(found) > MOST_GROUPS:
        names = list(found)
        rest = {path: pair for name in names[MOST_GROUPS - 1 :] for path, pair in found.pop(name).items()}
        found["the rest"] = rest
    arms = (KEEP, PROPOSAL)  # a knob may have the same name
    return [Group(f"the knob {name}" if name in arms else name, turned) for name, turned in found.items()]


def without(proposal: Any, group: Group) -> Any:
    """The proposal with this group reset. Raises ``KnobError``."""
    return with_values(proposal, {path: old for path, (old, _) in group.turned.items()})


def credit(
    run: RunLog,
    number: int,
    *,
    seeds: int = FEWEST_SEEDS,
    per_slice: int = PER_SLICE,
    ended: Callable[[str, Pace], None] = lambda line, pace: None,
) -> Credit:
    """The credit of the proposal of stage ``number``. After a kill, finished training is not repeated."""
    raise_unless_enough(seeds)
    keep, proposal = both(run, number)
    arms: dict[str, Any] = {KEEP: keep, PROPOSAL: proposal}
    groups, refused = groups_of(keep, proposal), {}
    for group in groups:
        try:
            arms[group.name] = without(proposal, group)
            run.plan.world.check(arms[group.name])
        except (KnobError, InfeasibleConfig) as error:
            arms.pop(group.name, None)
            refused[group.name] = str(error)
    bench = _Bench(run, number, list(arms.values()), per_slice)
    unknown = bench.unknown(arms, seeds)
    pace = Pace(len(unknown))
    try:
        for name, seed in unknown:
            outcomes = bench.train(name, arms[name], seed)
            ended(f"{name}, seed {seed}: {fmean(outcomes):.3f}", pace.step())
    finally:
        bench.close()
    found = {name: [bench.outcomes(config, seed) for seed in range(seeds)] for name, config in arms.items()}
    return _credit(bench, found, groups, refused)


def raise_unless_enough(seeds: int) -> None:
    """Raises ``RunError`` if these cannot give a difference between arms."""
    if seeds < FEWEST_SEEDS:
        raise RunError(f"{seeds} seeds are too few to measure a difference: give at least {FEWEST_SEEDS}")


def both(run: RunLog, number: int) -> tuple[Any, Any]:
    """The config before the engineer's answer, and the config that it wrote. Raises ``RunError`` if there is no such pair."""
    if not 1 <= number < len(run.state.done):
        last = len(run.state.done) - 1
        raise RunError(
            f"stage {number} of {run.path} is not a finished stage with one before it: give a stage from 1 to {last}"
        )
    keep, proposal = _pair(run, number)
    if keep == proposal:
        raise RunError(f"stage {number} of {run.path} kept the config as it was: there is no change to give credit to")
    return keep, proposal


def changed_stages(run: RunLog) -> list[int]:
    """The stages whose config an engineer changed."""
    pairs = {number: _pair(run, number) for number in range(1, len(run.state.done))}
    return [number for number, (keep, proposal) in pairs.items() if keep != proposal]


def _pair(run: RunLog, number: int) -> tuple[Any, Any]:
    """The config that the stage before ended on, which may be older than its own proposal, and the config proposed after it."""
    before = run.state.stages[number - 1].report
    assert before is not None, "a stage that is done has a report"
    return validated(run.plan.world.config_type, before.config), run.state.stages[number].chosen.config


class _Bench:
    """Trains arms from one checkpoint, and stores their outcomes."""

    def __init__(self, run: RunLog, number: int, configs: Sequence[Any], per_slice: int) -> None:
        spec, self.run, self.number, self.per_slice = run.plan.spec, run, number, per_slice
        done = run.state.stages[number].done
        self.amount = done.trained.get(run.plan.unit, 0) if done else 0
        if not self.amount:
            raise RunError(f"stage {number} of {run.path} trained nothing: there is no gain to give credit for")
        held_out = draw_suites(run.plan).held_out
        self.cases = run.plan.world.draw(
            run.plan.target, per_slice, seed=derive(spec.suites.seed, "credit"), purpose="validation", exclude=held_out
        )
        self.trainee = run.plan.make_trainee((*held_out, self.cases), configs=configs)
        self.file = run.path / "credit" / f"stage{number:02d}.jsonl"
        atomic.make_folder(self.file.parent)
        lines: list[Trained] = checked.figures(self.file, list[Trained]) or []
        self.known = {repr((line["seed"], line["config"], line["per_slice"])): line["outcomes"] for line in lines}

    def unknown(self, arms: Mapping[str, Any], seeds: int) -> list[tuple[str, int]]:
        """The trainings that are left, by arm and seed. Arms with the same config share one."""
        todo: dict[str, tuple[str, int]] = {}
        for arm, config in arms.items():
            for seed in range(seeds):
                todo.setdefault(self._key(config, seed), (arm, seed))
        return [job for key, job in todo.items() if key not in self.known]

    def outcomes(self, config: Any, seed: int) -> Outcomes:
        """Outcomes on held-out cases after training the stage on this config."""
        return self.known[self._key(config, seed)]

    def train(self, arm: str, config: Any, seed: int) -> Outcomes:
        """Train the stage on this config, and store the outcomes."""
        spec, before = self.run.plan.spec, self.run.state.stages[self.number - 1]
        load_checkpoint(self.trainee, self.run.files, before.checkpoint)
        self.trainee.train(config, self.amount, seed=derive(spec.seed, "credit", self.number, seed))
        episodes = self.run.plan.world.play(
            self.trainee.policy(), self.cases, self.run.plan.target, seed=derive(spec.suites.seed, "play credit")
        )
        outcomes = [episode.metrics.get(self.run.plan.world.about.objective, 0.0) for episode in episodes]
        line = Trained(arm=arm, seed=seed, config=dump(config), per_slice=self.per_slice, outcomes=outcomes)
        atomic.append_line(self.file, line)
        self.known[self._key(config, seed)] = outcomes
        return outcomes

    def _key(self, config: Any, seed: int) -> str:
        return repr((seed, dump(config), self.per_slice))

    def close(self) -> None:
        self.trainee.close()


def _credit(
    bench: _Bench, found: Mapping[str, list[Outcomes]], groups: Sequence[Group], refused: Mapping[str, str]
) -> Credit:
    run = bench.run
    return Credit(
        run=run.name,
        stage=bench.number,
        engineer=run.state.stages[bench.number].chosen.engineer,
        metric=run.plan.world.about.objective,
        unit=run.plan.unit,
        amount=bench.amount,
        cases=len(bench.cases),
        seeds=list(range(len(found[KEEP]))),
        keep=t_mean_over_cases(found[KEEP]),
        proposal=t_mean_over_cases(found[PROPOSAL]),
        gain=_paired(found[PROPOSAL], found[KEEP]),
        groups=[_share(group, found, refused.get(group.name, "")) for group in groups],
    )


def _share(group: Group, found: Mapping[str, list[Outcomes]], note: str) -> Share:
    changed = [f"{'.'.join(path)}: {_said(old)} → {_said(new)}" for path, (old, new) in group.turned.items()]
    if group.name not in found:
        return Share(group.name, changed, None, None, f"cannot be taken back alone: {note}")
    values = found[group.name]
    return Share(group.name, changed, t_mean_over_cases(values), _paired(found[PROPOSAL], values))


def _paired(ours: Sequence[Outcomes], theirs: Sequence[Outcomes]) -> Interval:
    """The difference by seed and case."""
    pairs = zip(ours, theirs, strict=True)
    return t_mean_over_cases([[a - b for a, b in zip(one, other, strict=True)] for one, other in pairs])


def _said(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def table(found: Credit) -> Table:
    """The credit of each change, the largest first."""
    drawn = plain_table(
        f"stage {found.stage} of {found.run}, written by {found.engineer}: {100 * found.keep.mean:.1f} % kept as it was, "
        f"{found.proposal.percent()} as proposed, gain {found.gain.percent(signed=True)}",
        f"{found.metric.replace('_', ' ')} on {found.cases} cases after {found.amount:,} {found.unit.replace('_', ' ')}; "
        f"{len(found.seeds)} paired seeds, 95 % intervals for other seeds and other cases",
    )
    for heading in ("taken back", "without it", "its credit", "changes"):
        drawn.add_column(heading, justify="left" if heading in ("taken back", "changes") else "right")
    for group in found.ranked:
        success = "" if group.success is None else group.success.percent()
        earned = group.note if group.credit is None else group.credit.percent(signed=True)
        drawn.add_row(
            group.name, success, earned, "; ".join(group.changed[:4]) + ("; …" if len(group.changed) > 4 else "")
        )
    return drawn


def write(found: Credit, run: RunLog) -> Path:
    """Write the figures into the run's folder."""
    path = run.path / "credit" / f"stage{found.stage:02d}.json"
    atomic.write_json(path, asdict(found))
    return path
