"""Where only the last stage is validated, every slice of the target keeps a few training questions, or nobody could see it."""

from __future__ import annotations

import math

from pydantic import BaseModel

from engineers.knobs import dump, find_knobs, with_values
from engineers.roles import find_slices, shares_of
from envtuning.runs.plan import Plan
from envtuning.runs.state import Stage


def with_kept_slices(plan: Plan, last: Stage, config: BaseModel) -> BaseModel:
    """The engineer's config, with shares of the target's slices raised to about ``suites.training_per_slice`` questions in the next stage.

    How many questions that stage has is taken from the last one. Shares that the engineer may not change stay.
    """
    suites, report, done = plan.spec.suites, last.report, last.done
    if not suites.last_alone or report is None or done is None:
        return config
    asked, trained = sum(row.played for row in report.training_results), done.trained.get(plan.unit, 0)
    if not asked or not trained:
        return config
    expected = plan.spec.stage(last.number + 1).budget * asked / trained
    slices = [piece for piece in find_slices(find_knobs(config, plan.spec.editable)) if piece.share is not None]
    part = min(suites.training_per_slice / expected, 1 / (2 * max(len(slices), 1)))
    whole = find_slices(find_knobs(config, ("*",)))
    now, weights = shares_of(dump(config), whole), sum(float(piece.share.value or 0) for piece in whole if piece.share)
    aims = plan.world.slices(plan.target)
    low = [piece.share for piece in slices if piece.share and piece.name in aims and now[piece.name] < part]
    raised = part * weights / (1 - part * len(low))
    least = {knob.path: round(raised, 6) if "number" in knob.types else math.ceil(raised) for knob in low}
    return with_values(config, {knob.path: knob.fit(least[knob.path], exact=least[knob.path]) for knob in low})
