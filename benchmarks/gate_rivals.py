"""Simpler than ``reader`` where reading pays, and ``reader`` with a wrong belief: ``python -m benchmarks.gate_rivals``.

The roots, budgets, draws and tests are those of ``python -m benchmarks.gate_engineers``. ``read-once`` reads the report of the first stage
and no other: it keeps the tasks that succeed there and trains a blind part of the rest to the end. ``in-turn`` trains a few failing tasks
at a time; one that is learnt, or that has not moved, makes room for the next. ``read-once, permuted`` reads the successes under
other names. In ``slower`` and ``quicker``, ``reader`` believes that tasks take three times or a third of the time that its prior says.

Written down after all settings of the rules had run on the two tuning roots, and before any run on a fresh root: ``reader`` is worth more
than a simple rule if the one-sided 95 % bound of its mean gain over both rules is above zero. A rule is worth something if its bound over
the best open loop is. The gain of ``reader`` does not hang on its times if ``slower`` and ``quicker`` are above the best open loop, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import product
from typing import Any

import numpy as np
import torch

import engineers
from benchmarks import gate
from benchmarks._command import arguments_of, command, record_if_asked
from benchmarks.gate import FRESH, SLOW, TUNE, Run, Seen
from benchmarks.gate_engineers import TRAININGS, asking, line, measured, stored_engineers
from engineers.plain import growth
from envtuning.studies.closed_loop import lower_bound
from envtuning.studies.intervals import t_mean

SUCCEEDS, LEARNT, MOVES = 0.5, 0.9, 0.04  # success of a task
FOCUSED = 1.3  # even shares: a stage with more of a task has tried to teach it


def kept_beside(chosen: np.ndarray, known: np.ndarray, kept: float) -> np.ndarray:
    """A part of the data for what is known, the rest for what is chosen."""
    if not chosen.any():
        return np.ones(len(chosen))
    part = kept if known.any() else 0.0
    return part * known / max(known.sum(), 1) + (1 - part) * chosen / chosen.sum()


def read_once(config: tuple[float, float], seen: Seen) -> np.ndarray:
    if seen.stage == 0:
        return np.ones(seen.tasks.n)
    return keeping(seen.success[1] >= SUCCEEDS, config, seen)


def keeping(known: np.ndarray, config: tuple[float, float], seen: Seen) -> np.ndarray:
    """What is known keeps a part of the data; a blind part of the others gets the rest."""
    part, kept = config
    failing = seen.order[~known[seen.order]]
    chosen = np.isin(np.arange(seen.tasks.n), failing[: max(1, round(part * len(failing)))])
    return kept_beside(chosen, known, kept)


def in_turn(config: tuple[int, int, float], seen: Seen) -> np.ndarray:
    count, patience, kept = config
    if seen.stage == 0:
        return np.ones(seen.tasks.n)
    now, tried = seen.success[-1], sum(drawn > FOCUSED / seen.tasks.n for drawn in seen.drawn)
    learnt = now >= LEARNT
    moves = ~learnt & (now >= MOVES)
    waits = ~learnt & ~moves & (tried < patience)
    rank = np.argsort(seen.order)  # a blind order
    going = sorted(np.flatnonzero(moves), key=lambda task: -now[task])
    going += sorted(np.flatnonzero(waits), key=lambda task: (-tried[task], rank[task]))
    return kept_beside(np.isin(np.arange(seen.tasks.n), going[:count]), learnt, kept)


def permuted(config: tuple[float, float], seen: Seen) -> np.ndarray:
    before = seen.order[np.argsort(seen.order) - 1]
    return read_once(config, replace(seen, success=[row[before] for row in seen.success]))


@contextmanager
def believing(times: float) -> Iterator[None]:
    """With a prior in which everything that is still to be learnt takes so many times as long."""
    told = growth.prior()
    wrong = replace(told, wait=told.wait * times, time=told.time * times, start=told.start * times)
    growth.prior, right = lambda: wrong, growth.prior
    try:
        yield
    finally:
        growth.prior = right


def misled(times: float) -> Callable[[Any, Seen], np.ndarray]:
    reader = asking(engineers.make("reader"))

    def arm(config: Any, seen: Seen) -> np.ndarray:
        with believing(times):
            return reader(config, seen)

    return arm


RULES = {
    "read-once": (read_once, tuple(product((0.5, 0.35), (0.2, 0.3)))),
    "in-turn": (in_turn, tuple(product((4, 6, 8), (1, 2), (0.2, 0.3)))),
}
READERS = {"slower": (misled(3.0), (None,)), "quicker": (misled(1 / 3), (None,))}
gate.ARMS |= RULES | READERS | {"read-once, permuted": (permuted, RULES["read-once"][1])}


def best_setting(rule: str) -> Any:
    """The setting that ends highest on the roots for tuning."""
    ends = {
        config: sum(row["end"] for row in gate.rows(SLOW, [Run(root, rule, config) for root in TUNE]))
        for config in RULES[rule][1]
    }
    return max(ends, key=lambda config: ends[config])


def row_of(name: str, found: dict[str, Any], over: dict[str, float]) -> str:
    """An arm's row, with the points that ``reader`` ends above it."""
    mean, low, high, bound = (100 * over[key] for key in ("mean", "low", "high", "bound"))
    return f"{line(name, found)} {mean:+.1f} ({low:+.1f}, {high:+.1f}) | {bound:+.1f} |"


def main() -> None:
    arguments = arguments_of(command(__doc__))
    torch.set_num_threads(1)
    settings: dict[str, Any] = {rule: best_setting(rule) for rule in RULES}
    settings |= {"read-once, permuted": settings["read-once"], **dict.fromkeys(READERS)}
    reader, found, over = stored_engineers()["reader"]["per_root"], {}, {}
    for name, config in settings.items():
        found[name] = measured(SLOW, FRESH, TRAININGS, lambda root, seed, name=name, c=config: Run(root, name, c, seed))
        gains = [ours - theirs for ours, theirs in zip(reader, found[name]["per_root"], strict=True)]
        over[name] = asdict(t_mean(gains)) | {"bound": lower_bound(gains)}
        print(row_of(name, found[name], over[name]), flush=True)
    fresh = {"variant": SLOW.name, "roots": FRESH, "training_seeds": TRAININGS}
    tried = {rule: len(configs) for rule, (_, configs) in RULES.items()}
    figures = {"arms": found, "settings": settings, "settings_tried": tried, "reader_minus": over}
    record_if_asked(arguments, "gate_rivals", fresh | figures)


if __name__ == "__main__":
    main()
