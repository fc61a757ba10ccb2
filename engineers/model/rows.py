"""Rows of a prompt's tables: a slice's counts in words, on validation or in training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from engineers.model.figures import rate_in
from engineers.model.shown import compact
from engineers.report import SliceResult, Split, StageRecord, wilson
from engineers.shared.counts import in_words


def succeeded(result: SliceResult, objective: str) -> str:
    won = successes(result, objective)
    return failed(result, objective) if won is None else f"{won} of {result.episodes}"


def failed(result: SliceResult, objective: str) -> str:
    """How many failed, by the rate if there is one: not every world counts kinds of failure."""
    won = successes(result, objective)
    lost = sum(result.failures.values()) if won is None else result.episodes - won
    return f"{lost} of {result.episodes} failed{': ' if kinds(result) else ''}{kinds(result)}"


def successes(result: SliceResult, objective: str) -> int | None:
    rate = rate_in(result, objective)
    return None if rate is None else round(rate * result.episodes)


def kinds(result: SliceResult) -> str:
    lost = sorted(((kind, count) for kind, count in result.failures.items() if count), key=lambda item: -item[1])
    return ", ".join(f"{count} {in_words(kind)}" for kind, count in lost)


def counted(result: SliceResult, objective: str, *, with_failures: bool) -> str:
    """'9 of 12; 2 hole, 1 conflict'"""
    lost = kinds(result) if with_failures and successes(result, objective) is not None else ""
    return "; ".join(filter(None, (succeeded(result, objective), lost)))


def row(result: SliceResult, objective: str, aside: Collection[str], *, with_failures: bool) -> str:
    """A slice's successes with their interval, how the others failed, and its other metrics but those that are put aside or told as behaviour."""
    told = [counted(result, objective, with_failures=False)]
    if result.questions is not None:
        told[0] += f" episodes of {result.questions} question{'s' if result.questions > 1 else ''}"
    told[0] += ", all seen before" if result.all_repeats else ""
    rate = rate_in(result, objective)
    if rate is not None:
        told[0] += f", {interval_of(rate, result.observations)}"
        told += [lost] if with_failures and (lost := kinds(result)) else []
    hidden = {objective, "success_rate", *aside} if rate is not None else set(aside)
    told += [f"{in_words(metric)} {metric_of(result, metric)}" for metric in result.metrics if metric not in hidden]
    return "; ".join(told)


def metric_of(result: SliceResult, metric: str) -> str:
    value = result.metrics[metric]
    if not metric.endswith("_rate") or not 0 <= value <= 1:
        return compact(value)
    return interval_of(value, result.observations)


def interval_of(rate: float, observations: int) -> str:
    """Wilson's interval. For a mean of scores it is too wide rather than too narrow, because scores vary less than successes; a prompt
    says so.
    """
    low, high = wilson(rate, observations)
    return f"{rate:.2f} [{low:.2f}, {high:.2f}]"


def have_scores(stages: Iterable[StageRecord], objective: str) -> bool:
    """Whether training's scores say more than its successes."""
    rows = [result for stage in stages for result in stage.training_results]
    return any(result.score is not None and result.score != result.rate(objective) for result in rows)


def blind_for_all(slices: Iterable[str], blind: Mapping[str, float]) -> str:
    """The score of a blind guess, where it is the same for all of these slices; else empty."""
    levels = {f"{blind[name]:.2f}" if name in blind else "" for name in slices}
    return levels.pop() if len(levels) == 1 else ""


def training_rows(
    stages: Sequence[StageRecord],
    every_stage: Sequence[StageRecord],
    slices: Collection[str],
    objective: str,
    blind: Mapping[str, float],
    *,
    with_failures: bool,
) -> dict[str, str]:
    """For each slice what training showed: in the last of these stages, then in those before it up to the last that had data, and its
    episodes in all. A slice that had data only in stages that are not told has the last of ``every_stage``.
    """
    episodes, last_with_data = Counter[str](), dict[str, tuple[int, SliceResult]]()
    for stage in every_stage:
        episodes.update({result.name: result.played for result in stage.training_results})
        last_with_data |= {result.name: (stage.stage, result) for result in stage.training_results}
    scored = have_scores(stages, objective)
    tables = [{result.name: result for result in stage.training_results} for stage in stages]
    each_blind = {} if blind_for_all(slices, blind) else blind
    told, never = dict[str, str](), list[str]()
    for name in slices:
        seen = [table.get(name) for table in tables]
        while seen and seen[-1] is None:
            seen.pop()
        if not seen and name in last_with_data:
            number, result = last_with_data[name]
            was = _short(result, objective, scored=scored)
            told[name] = f"no episodes since stage {number}; then: {was}; total {episodes[name]}"
            continue
        if not seen:
            never.append(name)
            continue
        last = seen.pop() if len(seen) == len(stages) else None
        if last is None:
            parts = [f"no episodes since stage {stages[len(seen) - 1].stage}"]
        else:
            parts = _now(last, objective, each_blind.get(name), scored=scored, with_failures=with_failures)
        if seen:
            parts.append(f"before: {', '.join(_short(result, objective, scored=scored) for result in seen)}")
            parts.append(f"total {episodes[name]}")
        told[name] = "; ".join(parts)
    return told | ({", ".join(never): "no episodes so far"} if never else {})


def _now(last: SliceResult, objective: str, blind: float | None, *, scored: bool, with_failures: bool) -> list[str]:
    """What the last stage showed of a slice."""
    parts = [_outcome(last, objective, blind, scored=scored)]
    if last.halves:
        parts.append(f"halves {', '.join(_half(half, scored=scored) for half in last.halves)}")
    if last.repeats:
        parts.append(f"seen before: {last.repeats.succeeded} of {last.repeats.episodes}")
    if with_failures and (lost := kinds(last)):
        parts.append(lost)
    return parts


def _outcome(result: SliceResult, objective: str, blind: float | None, *, scored: bool) -> str:
    told = row(result, objective, result.metrics, with_failures=False)
    if scored and result.score is not None:
        told += f"; score {interval_of(result.score, result.observations)}"
        told += f", a blind guess {blind:.2f}" if blind is not None else ""
    return told


def _half(half: Split | None, *, scored: bool) -> str:
    if half is None:
        return "none"
    told = f"{half.succeeded} of {half.episodes}"
    return f"{told} ({half.score:.2f})" if scored and half.score is not None else told


def _short(result: SliceResult | None, objective: str, *, scored: bool) -> str:
    if result is None or not result.episodes:
        return "none"
    told = succeeded(result, objective) + (" seen before" if result.all_repeats else "")
    return f"{told} ({result.score:.2f})" if scored and result.score is not None else told
