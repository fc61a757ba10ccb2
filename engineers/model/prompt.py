"""The prompt: a report, the knobs and the current config as messages, by Jinja templates, within a token budget.

Every text passes ``scrub`` before it is sent: no keys, no file paths, no environment variables. The pictures of failed episodes pass
``scrub_picture`` instead, because the files in them may belong to the environment and not to this machine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from engineers.model import figures, rows
from engineers.model.answer_format import AnswerFormat
from engineers.model.chat import Message
from engineers.model.context import Context
from engineers.model.meter import estimate_tokens
from engineers.model.replies import without_thoughts
from engineers.model.shown import ShownConfigs, compact, compact_json, drawn, knob_docs, split_stats
from engineers.redaction import scrub, scrub_picture
from engineers.report import FailureCase, SliceResult, Split, StageRecord, StageReport
from engineers.roles import role_of
from engineers.shared.counts import in_words
from engineers.shared.extras import require
from engineers.space import Space

if TYPE_CHECKING:
    import jinja2

PROMPT_VERSION: Final = 4  # increases when the words for a report change; transcripts have theirs
QUOTED = 4_000  # characters of a bad reply that are quoted back to its writer
TEMPLATES = Path(__file__).parent / "templates"
_MARK = "\ue000"  # a private-use character


@dataclass(frozen=True)
class Prompt:
    """The messages that are sent, and the sections left out to keep the token budget."""

    messages: list[Message]
    left_out: list[str] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return sum(estimate_tokens(message["content"]) for message in self.messages)


@dataclass(frozen=True)
class _Material:
    """The parts of a report that may still go in. Trimming removes from here, in this order, the last entry first."""

    cases: tuple[FailureCase, ...]
    environment_stats: dict[str, dict[str, float]]
    behaviour: dict[str, dict[str, float]]
    splits: dict[str, dict[str, Split]]
    history: tuple[StageRecord, ...]  # newest first, so that the oldest goes first

    def trimmed(self) -> tuple[_Material, str] | None:
        """Remove one part and return its name; None if only necessary parts remain."""
        if self.cases:
            return replace(self, cases=self.cases[:-1]), "a failure case"
        if self.environment_stats:
            return replace(self, environment_stats={}), "the environment statistics"
        if self.behaviour:
            return replace(self, behaviour={}), "the behaviour"
        if self.splits:
            return replace(self, splits={}), "the parts of the episodes"
        if self.history:
            return replace(self, history=self.history[:-1]), f"stage {self.history[-1].stage} of the history"
        return None


def require_templates() -> None:
    """Raise ``ImportError`` with the install command if Jinja is missing, so that a run fails before its first stage."""
    require("jinja2", extra="prompt")


def build_prompt(
    report: StageReport,
    answer_format: AnswerFormat[Any],
    context: Context,
    summary: str = "",
    *,
    space: Space | None = None,
) -> Prompt:
    """The question for the next config. Raises ``ValueError`` if the budget has no room even without cases and history."""
    return _within_budget("propose.md.j2", report, answer_format, context, summary, space or {})


def build_summary_prompt(report: StageReport, answer_format: AnswerFormat[Any], context: Context) -> Prompt:
    """The question for a summary of the failures, asked before the config (context V5)."""
    return _within_budget("summary.md.j2", report, answer_format, context, "", {})


def quoted(text: str) -> Message:
    """A bad reply, as its writer's turn of the conversation."""
    return {"role": "assistant", "content": scrub(without_thoughts(text)[:QUOTED]).strip() or "(nothing)"}


def build_reask(error: str) -> Message:
    """The message that follows an answer that was refused."""
    return {"role": "user", "content": scrub(_template("reask.md.j2").render(error=error)).strip()}


def _within_budget(
    template: str, report: StageReport, answer_format: AnswerFormat[Any], context: Context, summary: str, space: Space
) -> Prompt:
    material = _material(report, context)
    left_out: list[str] = []
    while True:
        words = _words(report, answer_format, context, summary, space, material)
        prompt = Prompt(_messages(template, words, material.cases), left_out)
        if prompt.tokens <= context.token_budget:
            return prompt
        less = material.trimmed()
        if less is None:
            raise ValueError(
                f"token_budget={context.token_budget}: the shortest prompt has about {prompt.tokens} tokens; "
                f"raise the budget or switch sections off"
            )
        material, name = less
        left_out.append(name)


def _material(report: StageReport, context: Context) -> _Material:
    history = [r for r in reversed(report.history) if context.history == "all" or not _is_default(r)]
    return _Material(
        cases=_affordable(report.failure_cases, context.case_tokens) if context.cases else (),
        environment_stats=report.environment_stats if context.environment_stats else {},
        behaviour=report.behaviour if context.behaviour else {},
        splits=figures.parts_of(report.splits, report.results) if context.behaviour else {},
        history=tuple(history) if context.history != "none" else (),
    )


def _affordable(cases: Sequence[FailureCase], tokens: int) -> tuple[FailureCase, ...]:
    """As many of the first cases as fit."""
    kept: list[FailureCase] = []
    for case in cases:
        tokens -= estimate_tokens(f"{case.slice}{case.kind}{case.explanation}{case.picture}")
        if tokens < 0:
            break
        kept.append(case)
    return tuple(kept)


def _is_default(record: StageRecord) -> bool:
    return record.engineer == "default" or (record.stage == 0 and not record.engineer)


def _words(
    report: StageReport,
    answer_format: AnswerFormat[Any],
    context: Context,
    summary: str,
    space: Space,
    material: _Material,
) -> dict[str, Any]:
    """All that the templates may tell."""
    shown = ShownConfigs(answer_format, report.config)
    told = report.target if context.target else {}
    stages = [*material.history[::-1], report.records()[-1]]  # that the prompt tells, the oldest first
    return {
        "context": context,
        "summary": summary,
        "target": told,
        "target_words": report.target_words if context.target else "",
        "fixed": shown.fixed(told) if told else "",
        "now": stages[-1],
        "history": stages[:-1],
        "earlier": [stage.stage for stage in stages[:-1]],
        "splits": material.splits,
        "behaviour": material.behaviour,
        "cases": _with_places(material.cases),
        **_as_reported(report),
        **_of_results(report, context, stages, shown),
        **_of_outcomes(report, context, stages, shown, material),
        **_of_the_answer(answer_format, space, shown, told),
        **_functions(report, context, stages, shown, material, told),
    }


def _as_reported(report: StageReport) -> dict[str, Any]:
    return {
        "stage": report.stage,
        "objective": in_words(report.objective),
        "environment": report.environment,
        "results": report.results,
        "training": report.training,
        "outcomes_in_words": report.outcomes_in_words,
        "score_in_words": report.score_in_words,
        "own_config_results": report.own_config_results,
        "trainee": report.trainee,
        "meanings": _occurring(report),
        "cost": report.cost,
        "rounds_left": report.rounds_left,
        "budget_left": report.budget_left,
        "unit": report.unit,
        "incidents": report.incidents,
    }


def _of_results(
    report: StageReport, context: Context, told: Sequence[StageRecord], shown: ShownConfigs
) -> dict[str, Any]:
    """The course of the run: figures over all slices, and what was trained on too little."""
    objective, weights = report.objective, shown.weights(report.target)
    stages = figures.by_stage(told, objective, weights)
    past = report.records() if context.history != "none" else [told[-1]]
    starved = figures.starved(past, objective) if context.metrics else []
    where, quarters = figures.quarters(report.training, objective)
    return {
        "together": figures.overall(report.results, objective, weights) if len(report.results) > 1 else None,
        "stages": stages,
        "gain": figures.typical_gain(stages) if len(stages) > 1 else 0.0,
        "chance": figures.chance(stages),
        "quarters": quarters if where == "on validation" else [],
        # Training's outcomes have halves by slice, which say more than a curve over all slices.
        "training_quarters": quarters if where == "in training" and not report.training_results else [],
        "validated": any(stage.results for stage in past),
        "scored": context.metrics and rows.have_scores(told, objective),
        "starved": starved,
        # Plus 0.0, lest it be told as -0.00.
        "change_of_starved": round(fmean(one.change for one in starved), 2) + 0.0 if starved else 0.0,
        "falls": figures.largest_falls(starved),
        "until_success": figures.until_success(past, objective),
    }


def _of_outcomes(
    report: StageReport,
    context: Context,
    told: Sequence[StageRecord],
    shown: ShownConfigs,
    material: _Material,
) -> dict[str, Any]:
    """What training showed, and what was drawn for it, by slice."""
    asked = shown.asked()
    trained = (row.name for stage in report.records() for row in stage.training_results)
    slices = dict.fromkeys([*asked, *trained])
    stats, alike = split_stats(material.environment_stats, asked)
    return {
        "asked": asked,
        "outcomes": _outcomes(report, told, slices, with_failures=context.failures),
        "blind": rows.blind_for_all(slices, report.blind_scores),
        "grouped": any(row.questions is not None for row in report.training_results),
        "trained": sum(result.played for result in report.training_results),
        "sum_of_shares": sum(shown.weights(report.config).values()),
        "environment_stats": stats,
        "alike": alike,
    }


def _of_the_answer(
    answer_format: AnswerFormat[Any], space: Space, shown: ShownConfigs, target: Mapping[str, Any]
) -> dict[str, Any]:
    roles = [role_of(knob) for knob in answer_format.knobs]
    return {
        "knobs": knob_docs(answer_format.knobs, space, shown.in_use(target)),
        "menu": all(knob.options for knob in answer_format.knobs),
        "eases": "difficulty" in roles,
        "several_shares": roles.count("share") > 1,
        "example": compact_json(answer_format.shape()),
        "values": compact_json(answer_format.values_of(answer_format.current)),
    }


def _functions(
    report: StageReport,
    context: Context,
    told: Sequence[StageRecord],
    shown: ShownConfigs,
    material: _Material,
    target: Mapping[str, Any],
) -> dict[str, Any]:
    """What the templates call for a row or a config."""
    objective, failures = report.objective, context.failures
    several_kinds = len({kind for stage in told for row in stage.results for kind in row.failures}) > 1
    return {
        "in_interval": figures.in_interval,
        "failed": lambda result: rows.failed(result, objective),
        "failures_of": _failures_of,
        "succeeded": lambda result: rows.succeeded(result, objective),
        "counted": lambda result: rows.counted(result, objective, with_failures=failures and several_kinds),
        "row": lambda result: rows.row(
            result, objective, {*report.aside, *material.behaviour.get(result.name, {})}, with_failures=failures
        ),
        "pairs": _pairs,
        "drawn": drawn,
        "compact": compact,
        "knobs_of": lambda config: compact_json(shown.editable(shown.in_use(config))),
        "shown_config": partial(shown.since, target=target)
        if context.changes
        else lambda record, before: shown.whole(record),
    }


def _messages(template: str, words: dict[str, Any], cases: Sequence[FailureCase]) -> list[Message]:
    system = _template("system.md.j2").render(words)
    user = _template(template).render(words, report=_template("report.md.j2").render(words))
    return [
        {"role": "system", "content": scrub(system).strip()},
        {"role": "user", "content": _with_pictures(scrub(user), cases).strip()},
    ]


def _with_places(cases: Sequence[FailureCase]) -> list[FailureCase]:
    """The cases with a mark where each picture belongs, which ``scrub`` leaves alone."""
    return [case.model_copy(update={"picture": f"{_MARK}{number}{_MARK}"}) for number, case in enumerate(cases)]


def _with_pictures(text: str, cases: Sequence[FailureCase]) -> str:
    pictures = {str(number): scrub_picture(case.picture) for number, case in enumerate(cases)}
    return re.sub(f"{_MARK}(\\d+){_MARK}", lambda mark: pictures.get(mark[1], ""), text)


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), undefined=jinja2.StrictUndefined)


def _template(name: str) -> jinja2.Template:
    return _environment().get_template(name)


def _occurring(report: StageReport) -> dict[str, str]:
    """The meanings of the kinds of failure that occurred in this run."""
    tables = [
        table
        for record in report.records()
        for table in (record.results, record.training_results, record.own_config_results)
    ]
    met = {kind for table in tables for result in table for kind, count in result.failures.items() if count}
    return {kind: meaning for kind, meaning in report.failure_meanings.items() if kind in met}


def _outcomes(
    report: StageReport,
    stages: Sequence[StageRecord],
    slices: Collection[str],
    *,
    with_failures: bool,
) -> dict[str, str]:
    """What training showed of every slice in these stages; empty if the trainee gives no outcomes."""
    every_stage = report.records()
    if not any(stage.training_results for stage in every_stage):
        return {}
    return rows.training_rows(
        stages, every_stage, slices, report.objective, report.blind_scores, with_failures=with_failures
    )


def _failures_of(record: StageRecord) -> tuple[str, list[SliceResult]]:
    """The failures that the papers' contexts show: those of training, if it names their kinds."""
    if any(result.failures for result in record.training_results) or not record.results:
        return "in training", record.training_results
    return "on validation", record.results


def _pairs(stats: dict[str, float]) -> str:
    return ", ".join(f"{in_words(name)} {compact(value)}" for name, value in stats.items())
