"""Engineers on the model under training: ``checkpoint``, ``base`` and ``introspection``. They exist only inside a run.

``checkpoint``     the current trainee reads the report and writes the next config, constrained to the schema
``base``           the model that the run began with does the same
``introspection``  reads no words: it weights slices by how sure the trainee is of its own replies to them

All three are asked between two stages, in the training process, and do not change the trainee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from pydantic import BaseModel

from engineers.engineer import Engineer
from engineers.from_file import PLAIN, Allowed, reads
from engineers.knobs import Knob, find_knobs, with_values
from engineers.model.engineer import FROM_FILE as ENGINEER
from engineers.plain.base import Design, PlainEngineer
from engineers.plain.half_success import UNIFORM_PART
from engineers.plain.shares import mixed_with_uniform
from engineers.plain.signals import learnability
from engineers.proposal import Proposal, Usage
from engineers.report import StageReport
from engineers.roles import find_slices
from engineers.tiers import Tier

KNOW_THE_WEIGHTS = ("checkpoint", "introspection")

_CHAT: Allowed = {
    **ENGINEER,
    **dict.fromkeys(("constrained", "longest_string", "temperature", "thinking", "time_limit"), PLAIN),
}
BOARDS = 20  # of each slice that introspection uses


def live_engineer(name: str, trainee: Any, *, timeout: float | None = None, **options: Any) -> Engineer:
    """The engineer on this trainee's current model; the trainee is None before the run. ``options`` are ``LiveChat``'s and ``ModelEngineer``'s.

    ``timeout`` bounds one reply, in seconds, if ``time_limit`` is not given.
    """
    if name == "introspection":
        return IntrospectionEngineer(trainee=trainee, **options)
    from engineers.backends import live

    options = {"time_limit": timeout, "name": name} | options
    if trainee is None or trainee.group is not None:
        return remote_engineer(name, trainee and trainee.group, options)
    model, tokenizer = trainee.language_model() if name == "checkpoint" else trainee.base_model()
    return live.make(model=model, tokenizer=tokenizer, called=f"live/{name}", **options)


def remote_engineer(name: str, group: Any, options: dict[str, Any]) -> Engineer:
    """The same on a model that a group of workers holds."""
    from engineers.backends.live import LiveChat
    from engineers.model.engineer import ModelEngineer
    from envtuning.trainees.language.workers import RemoteChat

    chats = {field.name for field in fields(LiveChat)} - {"model"}
    chat = RemoteChat(group, name, {key: value for key, value in options.items() if key in chats})
    return ModelEngineer(chat, **{key: value for key, value in options.items() if key not in chats})


class IntrospectionEngineer(PlainEngineer):
    """``half-success`` on the model's certainty: p is the probability of its own greedy replies, not their success.

    The model is asked about ``boards`` boards of each slice, drawn from the current config; the cost is in the proposal's usage.
    """

    name = "introspection"
    tier = Tier.WEIGHTS
    turns = "the shares of two slices or more"

    def __init__(self, *, trainee: Any, boards: int = BOARDS, **options: Any) -> None:
        super().__init__(**options)
        self.trainee, self.boards, self.tokens = trainee, boards, 0

    def can_turn(self, knobs: Sequence[Knob]) -> bool:
        return len([piece for piece in find_slices(knobs) if piece.share is not None]) > 1

    def propose(self, report: StageReport, current: Any, editable: Sequence[str] | None = None) -> Proposal[Any]:
        self.tokens = 0
        proposal = super().propose(report, current, editable)
        return proposal.model_copy(update={"usage": Usage(prompt_tokens=self.tokens, cost=0.0)})

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        shares = {piece.name: piece.share for piece in find_slices(knobs) if piece.share is not None}
        sure = self._certainty(current, list(shares), self.random(report).randrange(2**31))
        scores = {name: learnability(p) for name, p in sure.items()}
        design = Design()
        for name, share in mixed_with_uniform(scores, UNIFORM_PART).items():
            knob = shares[name]
            design.turn(knob, knob.fit(share), f"the model gives its own replies a probability of {sure[name]:.2f}")
        return design

    def _certainty(self, config: BaseModel, names: Sequence[str], seed: int) -> dict[str, float]:
        """Per slice, the mean probability of the model's own greedy replies."""
        found = {}
        for name in names:
            prompts = self.trainee.prompts(only(config, name), self.boards, seed)
            beliefs = self.trainee.policy().beliefs(prompts)
            self.tokens += sum(belief.tokens for belief in beliefs)
            found[name] = sum(math.exp(belief.log_probability) for belief in beliefs) / max(len(beliefs), 1)
        return found


def only(config: BaseModel, name: str) -> Any:
    """The config with only this slice in use."""
    shares = {piece.name: piece.share for piece in find_slices(find_knobs(config, ("*",))) if piece.share is not None}
    return with_values(config, {share.path: float(one == name) for one, share in shares.items()})


def _named(name: str, allowed: Allowed) -> Callable[..., Engineer]:
    """The function that ``engineers.make`` calls."""

    @reads(allowed)
    def make(rest: str = "", *, trainee: Any, timeout: float | None = None, **options: Any) -> Engineer:
        return live_engineer(name, trainee, timeout=timeout, **options)

    make.needs_trainee = True  # type: ignore[attr-defined]
    return make


checkpoint, base = _named("checkpoint", _CHAT), _named("base", _CHAT)
introspection = _named("introspection", {"boards": PLAIN})
