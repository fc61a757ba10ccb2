"""Any model on the papers' boards: resumable, concurrent, never over its caps, with the published rows beside it.

The model is named as an engineer's backend is: ``openai/gpt-5-mini``, ``server/http://localhost:8000/v1#model``, ``local/FOLDER``.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import engineers
from engineers.model.chat import Chat, Completion, Message, Refused, TooLong
from engineers.model.meter import BudgetExceeded, Meter
from envtuning.loop.stage import RunStopped
from envtuning.runs import atomic
from mapf_frozenlake import EvaluationTable, InstanceSet, LakeError, plan_prompt
from mapf_frozenlake.evaluation import evaluate
from mapf_frozenlake.evaluation.run import Progress
from mapf_frozenlake.text import TextStyle

DECISIVE = ("temperature", "seed", "thinking")  # of a chat: with another value its answers would be others


class EvaluationStopped(RunStopped):
    """Not every board could be asked; the answers so far are kept, and the message says how to continue."""


class CappedChat:
    """Asks a chat from many threads; a question is asked only while its worst case fits under the caps with all in flight."""

    def __init__(self, chat: Chat, meter: Meter, max_tokens: int, spent: Path | None = None) -> None:
        self.chat, self.meter, self.max_tokens = chat, meter, max_tokens
        self.spent = spent  # the file that is told after each question what the meter says
        self._lock = threading.Lock()
        self._tokens, self._cost = 0, 0.0  # worst cases of all that is being asked now

    def __call__(self, prompt: str) -> str:
        """The reply to one prompt; a reply that was cut or refused is what there is of it."""
        messages: list[Message] = [{"role": "user", "content": prompt}]
        worst = self._reserve(messages)
        completion: Completion | None = None
        try:
            completion = self.chat.complete(messages, None, max_tokens=self.max_tokens)
            return completion.text
        except (TooLong, Refused) as error:
            if error.spent is None and isinstance(error, TooLong):
                raise  # the prompt itself does not fit
            completion = error.spent or Completion("")
            return completion.text
        finally:
            self._record_cost(messages, completion, worst)

    def _reserve(self, messages: list[Message]) -> tuple[int, float]:
        """Raises ``BudgetExceeded``."""
        with self._lock:
            own = self.meter
            kept = own.tokens, own.cost
            own.tokens, own.cost = own.tokens + self._tokens, (own.cost or 0.0) + self._cost
            try:
                own.reserve(self.chat.model, messages, None, self.max_tokens)
            finally:
                own.tokens, own.cost = kept
            price = own.price_of(self.chat.model)
            worst = sum(own.worst), price.of(*own.worst) if price else 0.0
            self._tokens += worst[0]
            self._cost += worst[1]
            return worst

    def _record_cost(self, messages: list[Message], completion: Completion | None, worst: tuple[int, float]) -> None:
        """What was really spent takes the place of the worst case; a failure may have been billed in full."""
        with self._lock:
            self._tokens -= worst[0]
            self._cost -= worst[1]
            if completion is not None:
                self.meter.record(self.chat.model, messages, completion)
            else:
                self.meter.tokens += worst[0]
                self.meter.cost = None if self.meter.cost is None else self.meter.cost + worst[1]
            if self.spent is not None:
                atomic.write_json(self.spent, {"tokens": self.meter.tokens, "cost": self.meter.cost})


def spent_before(answers: Path | None) -> tuple[Path | None, int, float | None]:
    """The file beside the answers that says what they took, failures included, and its tokens and dollars so far."""
    if answers is None:
        return None, 0, 0.0
    answers = Path(answers)
    place = answers.with_name(answers.name + ".spent")
    if not (answers.exists() and place.exists()):
        return place, 0, 0.0
    try:
        told = atomic.read_json(place)
        return place, int(told["tokens"]), None if told["cost"] is None else float(told["cost"])
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationStopped(f"{place} does not say what was spent: remove it to count from nothing") from error


def evaluate_model(
    model: str,
    suite: InstanceSet | str = "mapf-frozenlake-3150",
    *,
    answers: Path | None = None,
    style: TextStyle = "paper",
    workers: int = 4,
    max_tokens: int = 8_192,
    max_cost: float | None = None,
    max_total_tokens: int | None = None,
    temperature: float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[EvaluationTable, Meter]:
    """The model's table on a suite, and what it took. Raises ``EvaluationStopped`` where a cap or a failure ended it.

    ``answers`` keeps every reply as it comes: what it holds is not asked, nor paid, again, and the caps hold for all that it took.
    ``temperature`` is the provider's own where it is not given, and 0 for a local model. ``options`` are the backend's.
    """
    if temperature is None and model.startswith("local/"):
        temperature = 0.0
    if temperature is not None:
        options["temperature"] = temperature
    try:
        chat = getattr(engineers.make(model, **options), "chat", None)
    except TypeError as error:  # it has no such option
        raise engineers.UnknownEngineer(str(error)) from error
    if chat is None:
        raise engineers.UnknownEngineer(
            f"{model!r} is not a language model: name one as openai/MODEL, server/http://HOST:PORT/v1#MODEL or local/FOLDER"
        )
    spent, tokens, cost = spent_before(answers)
    meter = Meter(max_total_tokens=max_total_tokens, max_cost=max_cost, tokens=tokens, cost=cost)
    asked = CappedChat(chat, meter, max_tokens, spent)
    answered = 0

    def count(done: int, of: int) -> None:
        nonlocal answered
        answered = done
        if progress is not None:
            progress(done, of)

    try:
        table = evaluate(
            asked,
            suite,
            form="text",
            name=model,
            prompt=lambda instance: plan_prompt(instance, style),
            max_workers=workers,
            resume=answers,
            settings={"max_tokens": max_tokens}
            | {name: getattr(chat, name) for name in DECISIVE if hasattr(chat, name)},
            progress=count,
        )
    except LakeError as error:
        raise EvaluationStopped(str(error)) from error
    except engineers.ChatError as error:
        kept = (
            f"{answered} answers are kept in {answers}" if answers else "no answers were kept: give a file to keep them"
        )
        remedy = "raise the cap" if isinstance(error, BudgetExceeded) else "mend the cause"
        raise EvaluationStopped(f"{error}. {kept}; {remedy} and give the same command again to go on") from error
    return table.with_reference(), asked.meter
