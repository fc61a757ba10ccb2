"""``Meter``: counts tokens and dollars, and refuses a question that could cost more than the rest of the cap."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from engineers.model.chat import ChatError, Completion, Message
from engineers.model.ledger import Taken
from engineers.redaction import redact
from engineers.shared.counts import money

MESSAGE_TOKENS = 16  # roles and separators that a chat template writes around a message
CHARACTERS_PER_TOKEN = 2.5  # measured low on purpose: JSON and boards are dense in tokens
MOST_CHARACTERS = 8  # of a token, over a whole text: a server that reports fewer tokens than this gives is not believed
BEYOND = 100  # a count beyond this many times the worst case is not believed
MOST_DOLLARS = 1e6  # of one question
FREE = ("local/", "live/", "replay/")


class BudgetExceeded(ChatError):
    """The next question could cost more than the rest of the cap; it was not asked."""


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


@dataclass
class Meter:
    """The tokens and dollars of one engineer, and its caps. Caps hold for the engineer's whole life; share a meter to share a cap.

    Guarantee: a question is asked only if its worst case (a token per byte of prompt and schema, the full answer)
    fits under both caps. A question that failed on the way counts at its worst case, because it may have been billed.
    """

    max_total_tokens: int | None = None
    max_cost: float | None = None  # US dollars
    price: Price | None = None  # None: looked up by the model's name
    tokens: int = 0
    cost: float | None = 0.0  # None once something without a known price was used
    questions: int = 0
    # Tokens of prompt and answer that the question reserved last may take.
    worst: tuple[int, int] = field(default=(0, 0), init=False, repr=False)

    def reserve(self, model: str, messages: Sequence[Message], schema: Mapping[str, Any] | None, answer: int) -> None:
        """Make sure that the question fits under the caps. Raises ``BudgetExceeded`` with the rest and the question's worst case."""
        prompt = most_tokens(messages, schema)
        if self.max_total_tokens is not None and self.tokens + prompt + answer > self.max_total_tokens:
            raise BudgetExceeded(
                f"the next question may take {prompt + answer} tokens, {max(self.max_total_tokens - self.tokens, 0)} of "
                f"max_total_tokens={self.max_total_tokens} are left: raise the cap or lower the context's token_budget"
            )
        self.raise_unless_priced(model)
        if self.max_cost is not None and (price := self.price_of(model)) is not None:
            worst = price.of(prompt, answer)
            if (self.cost or 0.0) + worst > self.max_cost:
                left = max(self.max_cost - (self.cost or 0.0), 0.0)
                raise BudgetExceeded(
                    f"the next question may cost {money(worst)}, {money(left)} of "
                    f"max_cost=${self.max_cost} are left: raise the cap or lower the context's token_budget"
                )
        self.worst = (prompt, answer)

    def raise_unless_priced(self, model: str) -> None:
        """Raises ``BudgetExceeded`` if dollars are capped and the model's price is not known: every question would be refused."""
        if self.max_cost is not None and self.price_of(model) is None:
            raise BudgetExceeded(
                f"max_cost={self.max_cost} cannot be kept: no price is known for {redact(model)!r}; "
                f"cap max_total_tokens instead (an option of the engineer), or in Python give meter=Meter(price=Price(…), max_cost=…)"
            )

    def worst_case(self, model: str) -> Taken:
        """What the question reserved last may take of the caps."""
        price = self.price_of(model)
        return Taken(sum(self.worst), None if price is None else price.of(*self.worst))

    def record(self, model: str, messages: Sequence[Message], answer: Completion) -> tuple[int, int, float | None]:
        """Count an answer; returns its prompt tokens, completion tokens and cost. Estimates counts that the provider left out."""
        written = "".join(message["content"] for message in messages)
        prompt = self._counted(answer.prompt_tokens, written, self.worst[0])
        completion = self._counted(answer.completion_tokens, answer.text, self.worst[1])
        return self._add(model, prompt, completion, _dollars(answer.cost))

    def record_failure(
        self, model: str, error: ChatError, messages: Sequence[Message] = ()
    ) -> tuple[int, int, float | None]:
        """Count a question without a usable answer: one with a text as an answer, others by the provider's count, or the worst case of the bill."""
        if error.spent is not None and error.spent.text:
            return self.record(model, messages, error.spent)
        if error.spent is not None:
            prompt = self._counted(error.spent.prompt_tokens, "", self.worst[0])
            completion = self._counted(error.spent.completion_tokens, "", self.worst[1])
            return self._add(model, prompt, completion, _dollars(error.spent.cost))
        return self._add(model, *self.worst) if error.may_be_billed else (0, 0, 0.0)

    def price_of(self, model: str) -> Price | None:
        """The price by the meter's own, then the offline table; zero for models that run here; None where unknown."""
        if self.price is not None:
            return self.price
        return Price(0.0, 0.0) if model.startswith(FREE) else listed_price(model)

    def _counted(self, reported: Any, text: str, worst: int) -> int:
        """A provider's count; an estimate if it is missing, the worst case if it is impossible, and the least that the text can take if it is less."""
        if (
            not isinstance(reported, int)
            or isinstance(reported, bool)
            or not 0 <= reported <= BEYOND * max(worst, BEYOND)
        ):
            return max(worst, estimate_tokens(text))
        if not reported:
            return estimate_tokens(text) if text else 0
        return max(reported, len(text) // MOST_CHARACTERS)

    def _add(self, model: str, prompt: int, answer: int, cost: float | None = None) -> tuple[int, int, float | None]:
        price = self.price_of(model)
        if cost is None and price is not None:
            cost = price.of(prompt, answer)
        self.tokens += prompt + answer
        self.cost = None if cost is None or self.cost is None else self.cost + cost
        self.questions += 1
        return prompt, answer, cost


def _dollars(reported: Any) -> float | None:
    """A provider's cost, if it is possible."""
    if not isinstance(reported, int | float) or isinstance(reported, bool) or not 0 <= reported <= MOST_DOLLARS:
        return None
    return float(reported)


def estimate_tokens(text: str) -> int:
    """An estimate of a text's tokens without a tokenizer; rather too high than too low."""
    return int(len(text) / CHARACTERS_PER_TOKEN) + 1


def most_tokens(messages: Sequence[Message], schema: Mapping[str, Any] | None) -> int:
    """An upper bound of a question's prompt tokens: no tokenizer makes more tokens than bytes."""
    written = sum(len(message["content"].encode()) + MESSAGE_TOKENS for message in messages)
    return written + (len(json.dumps(schema).encode()) if schema else 0)


def listed_price(model: str) -> Price | None:
    """The price from the offline table. A dated name ("gpt-x-2026-01-31") has its family's price."""
    prices = _price_table()
    name = model.removeprefix("litellm/")
    while name not in prices:
        name, _, date = name.rpartition("-")
        if not date.isdigit():
            return None
    return prices[name]


@cache
def _price_table() -> dict[str, Price]:
    table = json.loads((Path(__file__).parent / "prices.json").read_text(encoding="utf-8"))
    return {model: Price(*pair) for model, pair in table["dollars_per_million_tokens"].items()}
