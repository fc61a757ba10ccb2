"""``EngineerCurriculum``: an engineer reads what your training shows, and chooses what to train on next.

The training is cut into stages: after ``every`` finished episodes, the engineer is asked about a report of the stage. As in
``envtuning run``, it counts success, score and the kinds of failures by slice. If the engineer fails or its config is refused, the current
config stays, and ``incidents`` says why.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

import engineers
from engineers.controls import under_control
from engineers.engineer import Engineer, as_engineer
from engineers.guard import NO_GUARD, Feasible, Guard
from engineers.knobs import KnobError, dump, find_knobs, leaves
from engineers.model.engineer import ModelEngineer
from engineers.model.ledger import Ledger, Taken, with_caps_left
from engineers.model.transcript import Exchange, read_transcript
from engineers.proposal import Proposal, Usage
from engineers.redaction import is_secret_name, redact
from engineers.registry import TIMED
from engineers.report import Incident, SliceResult, StageRecord, StageReport
from engineers.roles import WHOLE, find_slices, role_of, shares_in, shares_of
from engineers.shared.counts import apart, short
from engineers.shared.places import with_place
from envtuning import atomic, outcomes
from envtuning.answers import Answer, answer, failed, incident, unused
from envtuning.curriculum.curriculum import Column, Config, Curriculum, Fits
from envtuning.curriculum.slices import Slices, adapted
from envtuning.errors import RunError, SpecError
from envtuning.outcomes import Arriving, Outcome, Tally, total
from envtuning.own_code import warn
from envtuning.reach import out_of_reach, waits_for_a_target
from envtuning.seeds import derive

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Unit = Literal["episodes", "iterations", "steps"]
UNITS: tuple[Unit, ...] = ("episodes", "iterations", "steps")
QUESTIONS = 20  # to a language model, unless told
IN_A_ROW = 3  # failures from the first question on, after which a second warning tells of them
TOLD = 4  # changes of a stage, in a line
FIRST, LAST = 3, 12  # stages, in print


class EngineerCurriculum(Curriculum):
    """Asks ``engineer``, a name or an object, after every so many finished episodes (or ``unit="iterations"`` of the trainer, ``"steps"``).

    ``config`` is what training begins with, a pydantic model; its fields are the knobs, and ``editable`` names those that may be
    turned. ``target`` is the config of the tasks that count in the end. A language model is asked at most ``max_questions`` times,
    20 unless told, and after the first answer a line says what all of them will cost. ``transcript`` is a file that keeps every
    exchange; beside it, ``configs_`` and its name has the config that resulted from each stage's question. With ``background=True``,
    training continues while the engineer thinks. ``environment``, ``score_in_words``, ``blind_scores`` (of the best answer that ignores the
    question, by slice) and ``outcomes_in_words`` are told to the engineer. ``options`` are those of ``engineers.make``. An engineer that is an
    object has its own options and its own transcript.
    """

    def __init__(
        self,
        engineer: str | Engineer,
        config: BaseModel,
        *,
        target: BaseModel | None = None,
        every: int = 500,
        unit: Unit = "episodes",
        editable: Sequence[str] | None = None,
        space: Any = None,
        guard: Guard = NO_GUARD,
        max_questions: int | None = None,
        timeout: float | None = 600.0,
        background: bool = False,
        transcript: str | Path | None = None,
        environment: str = "",
        score_in_words: str = "",
        blind_scores: Mapping[str, float] | None = None,
        outcomes_in_words: str = "",
        seed: int = 0,
        **options: Any,
    ) -> None:
        _raise_unless_fit(config, target, editable)
        _raise_unless_asked(every, unit, max_questions, guard, timeout)
        if not isinstance(engineer, str):
            _raise_unless_its_own(options, transcript)
        self.config, self.target, self.every, self.unit = config, target, int(every), unit
        self.editable, self.space, self.guard = editable, space, guard
        self.timeout, self.background, self.seed, self.options = timeout, background, seed, options
        self.transcript = None if transcript is None else Path(transcript)
        self.environment, self.score_in_words = environment, score_in_words
        self.blind_scores, self.outcomes_in_words = dict(blind_scores or {}), outcomes_in_words
        self._given = engineer
        self._fits: Fits | None = None
        self.slices = Slices(config)
        _raise_unless_scores(self.blind_scores, [config] if target is None else [config, target])
        self._begin()
        self._meet_engineer(None if max_questions is None else int(max_questions))

    def _begin(self) -> None:
        """Before the first episode."""
        self.stage = 0
        self.history: list[StageRecord] = []  # of the stages that are done
        self.proposals: list[Proposal[Any]] = []  # a refused one has the config that was kept
        self.incidents: list[Incident] = []
        self._answered: list[int] = []  # for each proposal, the stage that it was asked about
        self._questions = 0
        self._amount = 0  # of the stage, in ``unit``
        self._halves = [Arriving(), Arriving()]  # of the stage
        self._looked = False  # at the slices of the first episodes
        self._told_of_end = False  # of a training in which nothing was asked
        self._open: _Question | None = None
        self._left_out: list[str] = []  # options that the original of this copy has: its keys

    def _meet_engineer(self, max_questions: int | None) -> None:
        """Refuse one that could not be asked, and warn of one that cannot reach the target."""
        first = self._first()
        try:
            first.check_able(self.config, self.editable)
        except KnobError as error:
            raise SpecError(str(error)) from error
        first.check_askable()
        self.name = first.name
        self._keeps_transcript = first.transcript is not None
        if self.target is None:
            note = waits_for_a_target(first, self.config, self.editable)
        else:
            note = out_of_reach(first, [self.config], self.target, self.editable)
        if note:
            warn(note)
        asks_a_model = isinstance(under_control(first), ModelEngineer)
        self.max_questions = QUESTIONS if max_questions is None and asks_a_model else max_questions

    def __str__(self) -> str:
        """A line for each stage: what was trained on, how it went, and what the engineer changed after it, or why nothing. Of many, the first and the last."""
        kept = sum(one.fallback for one in self.proposals)
        proposals = f"{len(self.proposals)} proposals" + (f" ({kept} not used)" if kept else "")
        told = [f"{self.name}: {len(self.history)} stages, {proposals}, {len(self.incidents)} incidents; {self._due()}"]
        whys = {stage: one.told_reasons() for stage, one in zip(self._answered, self.proposals, strict=True)}
        whys |= {one.stage: [f"{one.kind.replace('_', ' ')}, in `incidents`"] for one in self.incidents}
        configs = [dict(record.config) for record in self.history] + [dump(self.config)]
        for record, (before, after) in zip(self.history, pairwise(configs), strict=True):
            success = ", ".join(_went(row) for row in record.training_results)
            turned = [] if self.slices.drawn_alike(before, after) else _turned(leaves(before), leaves(after))
            answered = f"; {_few(turned)}" if turned else "; no change"
            if not turned and (why := whys.get(record.stage)):
                answered += f" ({_few(why, '; ')})"
            amount = f"{record.cost.get(self.unit, 0):,.0f} {self.unit}"
            told.append(f"stage {record.stage}: {amount}, success {success or 'unknown'}{answered}")
        if (left_out := len(self.history) - FIRST - LAST) > 1:
            told[1 + FIRST : -LAST] = [f"… {left_out} stages more, in `history`"]
        return "\n".join(told)

    def _due(self) -> str:
        """When the engineer is asked next: until then, ``next`` returns None."""
        if self._open is not None:
            return "a question is open"
        if self.max_questions is not None and self._questions >= self.max_questions:
            return f"all {self.max_questions} questions are asked"
        return f"{self._amount:,} of the {self.every:,} {self.unit} before the next question are done"

    # Outcomes

    def observe(self, outcome: Outcome) -> None:
        self.slices.raise_unless_known([outcome.slice])
        self._half().observe(outcome)
        if self.unit == "episodes":
            self._amount += 1

    def observe_many(
        self, slices: Column, successes: Column, scores: Column | None = None, further: Column | None = None
    ) -> None:
        """The slices are looked at in the first call, and then once a stage."""
        half = self._half()
        half.observe_many(slices, successes, scores, further)
        if not self._looked:
            self._looked = True
            self.slices.raise_unless_known(half.read().first)
        if self.unit == "episodes":
            self._amount += len(slices)

    def advance(self, *, steps: int = 0, iterations: int = 0) -> None:
        if self.unit == "steps":
            self._amount += steps
        elif self.unit == "iterations":
            self._amount += iterations

    def _half(self) -> Arriving:
        return self._halves[self._amount >= self.every // 2 or self._open is not None]

    def _read(self) -> list[Tally]:
        halves = [half.read() for half in self._halves]
        self.slices.raise_unless_known(name for half in halves for name in half.first)
        return halves

    # The report

    @property
    def report(self) -> StageReport:
        """The report of the current stage so far."""
        return StageReport(
            stage=self.stage,
            environment=self.environment,
            objective="success_rate",
            config=dump(self.config),
            target={} if self.target is None else dump(self.target),
            rounds_left=None if self.max_questions is None else max(0, self.max_questions - self._questions),
            unit=self.unit,
            cost={self.unit: float(self._amount)},
            training_results=outcomes.slice_results(self._read(), "success_rate"),
            score_in_words=self.score_in_words,
            blind_scores=self.blind_scores,
            outcomes_in_words=self.outcomes_in_words,
            history=self.history,
            training={"round": self.stage} | ({} if self.max_questions is None else {"rounds": self.max_questions + 1}),
            incidents=self.incidents,
        )

    def metrics(self) -> dict[str, float]:
        """The stage, its shares of the data, the other numbers that may be turned, and its successes and mean scores by slice."""
        found = {"stage": float(self.stage)}
        found |= {f"share/{name}": part for name, part in shares_in(self.config).items() if name != WHOLE}
        for knob in find_knobs(self.config, self.editable):
            if role_of(knob) != "share" and knob.types & {"number", "integer"} and isinstance(knob.value, int | float):
                found[f"knob/{knob.name}"] = float(knob.value)
        return found | total(self._read()).as_logged()

    def plot(self, path: str | Path | None = None) -> Figure:
        """A matplotlib figure over training: success by slice, the shares of the data beneath, and every other number that was turned.

        With a ``path``, it is also saved there; its ending names the format.
        """
        from envtuning.curriculum.plot import drawn, turned_knobs

        stages = self.history + ([self.report.records()[-1]] if self._amount else [])
        knobs = find_knobs(self.config, ("*",))
        pieces = find_slices(knobs)
        shares = [shares_of(dict(stage.config), pieces) for stage in stages]
        turned = turned_knobs(stages, knobs, self.slices.places)
        figure = drawn(stages, self.slices.names, shares, turned, self.unit)
        if path is not None:
            figure.savefig(path)
        return figure

    # Questions

    def decide(self) -> Config | None:
        """None until ``every`` is reached, while the engineer thinks, and once all questions are asked: ``print(curriculum)`` says which."""
        if self._open is None:
            if self._amount < self.every:
                return None
            if self.max_questions is not None and self._questions >= self.max_questions:
                return None
            self._open = _Question(self.report)
            self._questions += 1
        question = self._open
        if not question.begun:
            self._warn_of_keys_left_out()
            question.begin(self._ask, background=self.background)
        if question.answer is None:
            return None
        return self._take(question.answer)

    def _ask(self, report: StageReport) -> Answer:
        try:
            engineer = self._engineer()
        except Exception as error:  # whatever it needs, such as its server, may be gone by now
            return failed(error, report, self.config, name=self.name)
        return answer(
            engineer,
            report,
            self.config,
            name=self.name,
            editable=self.editable,
            guard=self._whole_guard(),
            timeout=self.timeout,
        )

    def _take(self, answered: Answer) -> BaseModel:
        """The stage ends. What was observed since the question was asked is in its record, too."""
        if answered.proposal is not None:
            self.proposals.append(answered.proposal)
            self._answered.append(self.stage)
            if not any(one.usage.tokens for one in self.proposals[:-1]):
                self._say_cost(answered.proposal.usage)
        if answered.incident is not None:
            self.incidents.append(answered.incident)
            if len(self.incidents) == 1:
                warn(f"{answered.incident.message} (later ones are in `incidents`)")
            if len(self.incidents) == self._questions == IN_A_ROW:
                warn(
                    f"{self.name} has given no usable config {IN_A_ROW} times in a row: training goes on with the first config; `incidents` "
                    "says why"
                )
        self.history.append(self.report.records()[-1])
        self._keep_configs(answered.config)
        self._open, self._amount, self._halves = None, 0, [Arriving(), Arriving()]
        self.stage += 1
        return answered.config

    def take_back(self, error: Exception) -> None:
        """The stage begins again with the config before, and its question counts as refused."""
        self._open, self._amount, self._halves = None, 0, [Arriving(), Arriving()]
        why = with_place(error)
        self.proposals[-1] = unused(self.proposals[-1], self.config, [why])
        told = f"{self.name}'s config could not be applied ({why})"
        self.incidents.append(incident("refused_proposal", told, self._answered[-1]))
        self._keep_configs(self.config)

    def _keep_configs(self, last: BaseModel) -> None:
        """Beside the transcript, if anybody was asked: a line for each stage, with the config that came of its question.

        Of an engineer that keeps no transcript, a file at that path is another run's, and so are the configs beside it.
        """
        if self.transcript is None or not self._keeps_transcript or not self.transcript.exists():
            return
        after = [dict(record.config) for record in self.history[1:]] + [dump(last)]
        lines = [
            json.dumps({"stage": record.stage, "config": config})
            for record, config in zip(self.history, after, strict=True)
        ]
        path = self.transcript.with_name(f"configs_{self.transcript.name}")
        try:
            atomic.write_text(path, redact("".join(f"{line}\n" for line in lines)))
        except RunError as error:  # training continues, as it does if the transcript cannot be written
            warn(str(error))

    def draws_alike(self, config: BaseModel) -> bool:
        return self.slices.drawn_alike(dump(self.config), dump(config))

    def _say_cost(self, usage: Usage) -> None:
        if not usage.tokens or self.max_questions is None:
            return
        price = "" if usage.cost is None else f", US$ {usage.cost * self.max_questions:.2f}"
        print(
            f"engineer {self.name}: the first answer took {usage.tokens:,} tokens; {self.max_questions} questions will take about "
            f"{usage.tokens * self.max_questions:,}{price} (max_questions)",
            file=sys.stderr,
        )

    def _first(self) -> Engineer:
        """The engineer of the first stage. If it does not know an option, the error says what the curriculum takes, too."""
        try:
            return self._engineer()
        except TypeError as error:
            if not self.options:
                raise
            own = [one.name for one in signature(type(self)).parameters.values() if one.kind is one.KEYWORD_ONLY]
            raise SpecError(f"{error}. EngineerCurriculum itself takes {', '.join(own)}") from error

    def _engineer(self) -> Engineer:
        """The engineer, seeded for the stage. What it was asked and has answered before a kill is not asked again."""
        if not isinstance(self._given, str):
            return as_engineer(self._given)
        options: dict[str, Any] = {"seed": derive(self.seed, "engineer", self.stage), **self.options}
        if self.timeout is not None and self._given.partition("/")[0] in TIMED:
            options.setdefault("timeout", self.timeout)  # or a slow model's own, shorter bound would come first
        spent = Usage.total(one.usage for one in self.proposals)
        taken, recorded = Taken(spent.tokens, spent.cost), list[Exchange]()
        if self.transcript is not None:
            ledger = self.transcript.with_name(f"asked_{self.transcript.name}")
            options |= {"transcript": self.transcript, "ledger": ledger}
            taken = Ledger(ledger).total()
            recorded = read_transcript(self.transcript) if self.transcript.exists() else []
        options = with_caps_left(options, taken)
        made = engineers.make(self._given, guard=self._whole_guard(), space=self.space, **options)
        made.recall([one.model_dump() for one in recorded if one.stage == self.stage and one.reply is not None])
        return made

    def attach(self, fits: Fits) -> None:
        super().attach(fits)
        self._fits = fits

    def raise_unless_counted(self, units: Sequence[str]) -> None:
        if self.unit not in units:
            raise SpecError(
                f"unit={self.unit!r} is not counted here, so the engineer would never be asked: give unit={' or '.join(map(repr, units))}"
            )

    def __getstate__(self) -> dict[str, Any]:
        """For a copy or a pickle, which belongs to no trainer yet: ``fits`` would bring the live environments along.

        It never holds a key, either: trainers write pickles into their checkpoints.
        """
        secret = {name: None for name, value in self.options.items() if value is not None and is_secret_name(name)}
        kept = {"options": self.options | secret, "_left_out": [*self._left_out, *secret]}
        return vars(self) | {"_fits": None} | kept

    def _warn_of_keys_left_out(self) -> None:
        missing = [name for name in self._left_out if self.options[name] is None]
        self._left_out = []
        if missing:
            warn(
                f"this copy of the {type(self).__name__} has no {' and no '.join(missing)}, as copies and pickles never hold a key: the engineer "
                f"looks for it in the environment, unless you set curriculum.options[{missing[0]!r}]"
            )

    def _whole_guard(self) -> Guard:
        """The given guard, and the trainer's own refusal of configs that do not fit its environments."""
        if self._fits is None:
            return self.guard
        return Guard(_FitsToo(self._fits, self.guard.feasible), self.guard.max_drop)

    def training_ended(self) -> None:
        """Warn, once, of an engineer that was never asked."""
        if self._questions or self._told_of_end:
            return
        self._told_of_end = True
        if not self._amount:
            warn(
                f"training ended, and none of its {self.unit} counted, so the engineer was never asked: let the environment end its episodes "
                "(terminated or truncated, such as by a time limit)"
            )
        else:
            warn(
                f"training ended after {self._amount:,} of {self.every:,} {self.unit}, so the engineer was never asked: train on, as these stay "
                "counted, or give a smaller `every`"
            )

    # State

    def settings(self) -> dict[str, Any]:
        return {"every": self.every, "unit": self.unit}

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict() | {"stage": self.stage, "questions": self._questions, "amount": self._amount}
        state["engineer"] = self.name
        state["history"] = [record.model_dump(mode="json") for record in self.history]
        state["incidents"] = [incident.model_dump(mode="json") for incident in self.incidents]
        state["proposals"] = [
            one.model_dump(mode="json", exclude={"config"}) | {"config": dump(one.config)} for one in self.proposals
        ]
        state["answered"] = list(self._answered)
        state["slices"] = self.slices.names
        state["halves"] = [half.dump() for half in self._read()]
        state["open"] = None if self._open is None else self._open.report.model_dump(mode="json")
        return state

    def load_state_dict(self, state: dict[str, Any], renamed: Mapping[str, str] | None = None) -> None:
        """Continue from a saved state. A question that was open is asked again."""
        self.raise_unless_of_this_kind(state)
        state = adapted(state, self.config, renamed or {})
        kind = type(self.config)
        stage, questions, amount = (int(state[name]) for name in ("stage", "questions", "amount"))
        history = [StageRecord.model_validate(record) for record in state["history"]]
        incidents = [Incident.model_validate(incident) for incident in state["incidents"]]
        proposals: list[Proposal[Any]] = [
            Proposal.model_validate(one | {"config": kind.model_validate(one["config"])}) for one in state["proposals"]
        ]
        answered = [int(stage) for stage in state.get("answered", [-1] * len(proposals))]
        first, second = (Arriving(Tally.model_validate(half)) for half in state["halves"])
        if self.unit == "episodes":  # without those of slices that are gone
            amount = first.episodes + second.episodes
        asked = None if state["open"] is None else _Question(StageReport.model_validate(state["open"]))
        super().load_state_dict(state)  # the last that may refuse it
        self.stage, self._questions, self._amount = stage, questions, amount
        self.history, self.incidents, self.proposals, self._answered = history, incidents, proposals, answered
        self._halves, self._open = [first, second], asked
        if (wrote := state.get("engineer", self.name)) != self.name:
            warn(f"the engineer {wrote!r:.100} wrote this state, and {self.name} continues it")


@dataclass(frozen=True)
class _FitsToo:
    """Equal for equal checks, so that a config which an engineer's guard has passed is not checked again."""

    fits: Fits
    feasible: Feasible | None

    def __call__(self, config: Config) -> object:
        self.fits(config)
        return None if self.feasible is None else self.feasible(config)


class _Question:
    """A question about a report, from when it is due until its answer is taken."""

    def __init__(self, report: StageReport) -> None:
        self.report, self.begun = report, False
        self.answer: Answer | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For a copy or a pickle, where no thread thinks about it: without an answer, it is asked again."""
        return vars(self) | {"begun": self.answer is not None}

    def begin(self, ask: Any, *, background: bool) -> None:
        self.begun = True
        if background:
            threading.Thread(target=self._answered, args=(ask,), name="engineer", daemon=True).start()
        else:
            self._answered(ask)

    def _answered(self, ask: Any) -> None:
        self.answer = ask(self.report)


def _went(row: SliceResult) -> str:
    success = row.rate("success_rate") or 0.0
    partial = row.score is not None and short(row.score) != short(success)
    return f"{row.name} {short(success)}" + (f" (score {short(row.score)})" if partial else "")


def _few(told: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(told) - TOLD} more" if len(told) > TOLD else ""
    return between.join(told[:TOLD]) + more


def _turned(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [
        f"{path} {' → '.join(apart(old, after.get(path)))}" for path, old in before.items() if after.get(path) != old
    ]


def _raise_unless_fit(config: Any, target: Any, editable: Any) -> None:
    if not isinstance(config, BaseModel):
        raise SpecError(f"config is a {type(config).__name__}: give a pydantic model, whose fields are the knobs")
    if isinstance(editable, str):
        raise SpecError(f"editable={editable!r}: give a list of knobs, such as [{editable!r}]")
    if editable is not None and not isinstance(editable, Iterable):
        raise SpecError(f"editable={editable!r}: give a list of knobs")
    if target is not None and type(target) is not type(config):
        raise SpecError(
            f"target is a {type(target).__name__}, and config a {type(config).__name__}: give two of one class"
        )


def _raise_unless_asked(every: Any, unit: Any, max_questions: Any, guard: Any, timeout: Any) -> None:
    if unit not in UNITS:
        raise SpecError(f"unit={unit!r}: give one of {', '.join(UNITS)}")
    for name, number in {"every": every, "max_questions": 1 if max_questions is None else max_questions}.items():
        if isinstance(number, bool) or not isinstance(number, Integral) or number < 1:
            raise SpecError(f"{name}={number!r}: give a whole number, at least 1")
    if not isinstance(guard, Guard):
        raise SpecError(f"guard={guard!r:.100}: give engineers.Guard(feasible, max_drop), or leave it out")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0):
        raise SpecError(f"timeout={timeout!r}: give seconds, more than 0, or None for no limit")


def _raise_unless_scores(given: Mapping[str, float], configs: Sequence[BaseModel]) -> None:
    """Each of the best scores without the question is of a slice, and a score."""
    names = dict.fromkeys(name for config in configs for name in Slices(config).names)
    for name, score in given.items():
        if name not in names:
            raise SpecError(f"blind_scores has {name!r}, and the config's slices are {', '.join(names)}")
        if not isinstance(score, Real) or not 0 <= score <= 1:
            raise SpecError(f"blind_scores has {score!r} for {name}: give numbers from 0 to 1")


def _raise_unless_its_own(options: Mapping[str, Any], transcript: str | Path | None) -> None:
    """An engineer that is given as an object has its own options and its own transcript."""
    if options:
        raise SpecError(f"{', '.join(options)}: options are for an engineer that is given by its name")
    if transcript is not None:
        raise SpecError(
            f"transcript={str(transcript)!r:.60}: an engineer that is given as an object keeps its own, so give transcript=… to the engineer"
        )
