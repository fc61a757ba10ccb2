"""The prompt: a report, the knobs and the current config as messages, by Jinja templates, within a token budget.

Whatever is sent has passed ``scrub``: no keys, no file paths, no environment variables.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engineers.extras import require
from engineers.knobs import Knob
from engineers.model.chat import Message
from engineers.model.context import Context
from engineers.model.meter import estimate_tokens
from engineers.model.wire import WireForm
from engineers.redaction import scrub
from engineers.report import FailureCase, SliceResult, StageRecord, StageReport

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Prompt:
    """What is sent, and what was left out to keep the budget."""

    messages: list[Message]
    left_out: list[str] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return sum(estimate_tokens(message["content"]) for message in self.messages)


@dataclass(frozen=True)
class _Material:
    """What of a report may still go in. Trimming takes away from here, in this order, the last entry first."""

    cases: tuple[FailureCase, ...]
    environment_stats: dict[str, dict[str, float]]
    behaviour: dict[str, dict[str, float]]
    history: tuple[StageRecord, ...]  # newest first, so that the oldest goes first

    def trimmed(self) -> tuple[_Material, str] | None:
        """One thing less, and its name; None when only the necessary is left."""
        if self.cases:
            return replace(self, cases=self.cases[:-1]), "a failure case"
        if self.environment_stats:
            return replace(self, environment_stats={}), "the environment statistics"
        if self.behaviour:
            return replace(self, behaviour={}), "the behaviour"
        if self.history:
            return replace(self, history=self.history[:-1]), f"stage {self.history[-1].stage} of the history"
        return None


def require_templates() -> None:
    """Raise ``ImportError`` with the install command where Jinja is missing: before a run begins, not after a stage."""
    require("jinja2", extra="prompt")


def build_prompt(report: StageReport, form: WireForm[Any], context: Context, summary: str = "") -> Prompt:
    """The question for the next config. Raises ``ValueError`` if the budget has no room even without cases and history."""
    return _within_budget("propose.md.j2", report, form, context, summary)


def build_summary_prompt(report: StageReport, form: WireForm[Any], context: Context) -> Prompt:
    """The question for a summary of the failures, asked before the config (context V5)."""
    return _within_budget("summary.md.j2", report, form, context, "")


def build_reask(error: str) -> Message:
    """What is said after an answer that was not accepted."""
    return {"role": "user", "content": scrub(_template("reask.md.j2").render(error=error)).strip()}


def _within_budget(template: str, report: StageReport, form: WireForm[Any], context: Context, summary: str) -> Prompt:
    material = _material(report, context)
    left_out: list[str] = []
    while True:
        prompt = Prompt(_render(template, report, form, context, summary, material), left_out)
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
        cases=tuple(report.failure_cases) if context.cases else (),
        environment_stats=report.environment_stats if context.environment_stats else {},
        behaviour=report.behaviour if context.behaviour else {},
        history=tuple(history) if context.history != "none" else (),
    )


def _is_default(record: StageRecord) -> bool:
    return record.engineer == "default" or (record.stage == 0 and not record.engineer)


def _render(
    template: str, report: StageReport, form: WireForm[Any], context: Context, summary: str, material: _Material
) -> list[Message]:
    paths = [knob.path for knob in form.knobs]
    words = {
        "context": context,
        "stage": report.stage,
        "objective": report.objective.replace("_", " "),
        "environment": report.environment,
        "results": report.results,
        "training_results": report.training_results,
        "target": report.target,
        "meanings": report.failure_meanings,
        "rounds_left": report.rounds_left,
        "budget_left": report.budget_left,
        "unit": report.unit,
        "now": report.records()[-1],
        "training": report.training,
        "incidents": report.incidents,
        "cases": material.cases,
        "environment_stats": material.environment_stats,
        "behaviour": material.behaviour,
        "history": material.history[::-1],
        "knobs": knob_docs(form.knobs),
        "example": _compact_json(form.example()),
        "summary": summary,
        "failed": _failed,
        "rate": _rate,
        "pairs": _pairs,
        "compact": _compact,
        "knobs_of": lambda config: _compact_json(_only(config, paths)),
        "shown_config": lambda record, before: _shown_config(record, before if context.changes else None, paths),
    }
    system = _template("system.md.j2").render(words)
    user = _template(template).render(words, report=_template("report.md.j2").render(words))
    return [
        {"role": "system", "content": scrub(system).strip()},
        {"role": "user", "content": scrub(user).strip()},
    ]


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=False
    )


def _template(name: str) -> jinja2.Template:
    return _environment().get_template(name)


def knob_docs(knobs: Sequence[Knob]) -> list[str]:
    """A line per kind of knob: where, what it means, its bounds. The model's own descriptions are the documentation."""
    kinds: dict[str, list[Knob]] = {}
    for knob in knobs:
        kinds.setdefault(knob.pattern, []).append(knob)
    return [
        f"{pattern}{_keys(same)}: {same[0].schema['description']} {_range(same[0])}" for pattern, same in kinds.items()
    ]


def _keys(same: Iterable[Knob]) -> str:
    names = [".".join(k for k, p in zip(knob.path, knob.pattern.split("."), strict=True) if p == "*") for knob in same]
    return f" (* is {', '.join(names)})" if any(names) else ""


def _range(knob: Knob) -> str:
    schema = knob.schema
    options = [_compact(value) for value in schema.get("enum", []) if value is not None]
    if options:
        said = f"One of {', '.join(options)}"
    elif knob.bounds:
        said = f"{'A number' if 'number' in knob.types else 'An integer'} from {schema['minimum']:g} to {schema['maximum']:g}"
    else:
        said = f"Type {' or '.join(sorted(knob.types - {'null'})) or 'mixed'}"
        said += f", at least {schema['minimum']:g}" if "minimum" in schema else ""
        said += f", at most {schema['maximum']:g}" if "maximum" in schema else ""
    if knob.nullable:
        said += ", or null"
    if (space := knob.extra.get("space")) is not None:
        said += f"; sensible are {space[0]:g} to {space[1]:g}"
    return f"{said}."


def _only(config: dict[str, Any], paths: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """The editable part of an earlier config; keys that it did not have are left out."""
    kept: dict[str, Any] = {}
    for path in paths:
        value: Any = config
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            place = kept
            for key in path[:-1]:
                place = place.setdefault(key, {})
            place[path[-1]] = value
    return kept


def _shown_config(record: StageRecord, before: StageRecord | None, paths: Sequence[tuple[str, ...]]) -> str:
    """An earlier config's editable part; after another one, only what is different in it."""
    if before is None:
        return _compact_json(_only(record.config, paths))
    old, new = (_flat(_only(config, paths)) for config in (before.config, record.config))
    turned = [
        f"{name} {_compact(old.get(name))} → {_compact(value)}" for name, value in new.items() if old.get(name) != value
    ]
    return f"since stage {before.stage} {', '.join(turned)}" if turned else f"as in stage {before.stage}"


def _flat(config: dict[str, Any], place: str = "") -> dict[str, Any]:
    """{"slices.6.share": 0.5}"""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        flat |= _flat(value, f"{place}{key}.") if isinstance(value, dict) else {f"{place}{key}": value}
    return flat


def _failed(result: SliceResult) -> str:
    lost = {kind: count for kind, count in sorted(result.failures.items(), key=lambda item: -item[1]) if count}
    kinds = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in lost.items())
    return f"{sum(lost.values())} of {result.episodes} failed{': ' if kinds else ''}{kinds}"


def _rate(result: SliceResult, metric: str) -> str:
    value = result.metrics[metric]
    if not metric.endswith("_rate") or not 0 <= value <= 1:
        return _compact(value)
    low, high = result.interval(metric)
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _pairs(stats: dict[str, float]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_compact(value)}" for name, value in stats.items())


def _compact(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else value if isinstance(value, str) else _compact_json(value)


def _compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
