"""``TRLCurriculumCallback``: swap the config under any TRL trainer, from what its reward function pays. ::

callback = TRLCurriculumCallback(prompts, EngineerCurriculum("rules", config))
trainer = GRPOTrainer(model, train_dataset=prompts.dataset, reward_funcs=callback.rewards(prompts.rewards), callbacks=[callback])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, NamedTuple, Protocol, TypeGuard

from engineers.roles import WHOLE
from engineers.shared.counts import counted
from engineers.shared.extras import needs
from envtuning.curriculum.apply import apply_config
from envtuning.curriculum.curriculum import Config, Curriculum, applying, as_curriculum
from envtuning.curriculum.slices import Slices
from envtuning.curriculum.wrappers import Given, attached
from envtuning.errors import RunError, SpecError
from envtuning.outcomes import Outcome, further_replies
from envtuning.own_code import warn

try:
    from transformers import TrainerCallback
    from transformers.trainer_callback import ExportableState
except ImportError as error:
    raise needs("TRLCurriculumCallback", error, extra="grpo") from None

LATE = 20  # steps, more than data loaders fetch ahead
Rewards = Callable[..., list[float]]  # a reward function of TRL


class Prompts(Protocol):
    """The source of the trainer's prompts: ``LakePrompts``, ``TextPrompts``, ``DatasetPrompts``, or your own."""

    def set_config(self, config: Any) -> None: ...


class NotFollowed(ValueError):
    """The trainer works in another process, and would not notice a swap, or the callback not its replies."""


def full(reward: float) -> bool:
    """The success of a reply, unless told."""
    return reward >= 1


class _Paid(NamedTuple):
    """A reply that was paid, the version of the config that its prompt was drawn from, and the prompt; None if it is not told."""

    outcome: Outcome
    version: int | None
    question: str | None


class TRLCurriculumCallback(TrainerCallback, ExportableState):
    """Reports every rewarded reply to ``curriculum``, and gives the config that it chooses to the prompts. Replies of a step to equal
    prompts count as several answers to one question.

    ``rewards(function)`` wraps the trainer's reward function. A reply's slice is in the dataset's column ``slice``, or in its row's
    ``metadata``; its score is the reward, cut to 0 to 1; it is a success if ``success(reward)``, unless told if the reward is at least
    1. Of several reward functions, wrap the one that says so: their weights do not matter, and a second one would count each reply
    twice. Weights, optimiser and schedule do not change. The trainer logs ``success/SLICE``, ``score/SLICE`` and, in one process, what the
    curriculum had of ``share/SLICE``, ``knob/NAME`` and ``stage`` when the replies' prompts were drawn.

    TRL's data loader is one batch ahead. Replies to prompts that were drawn from an earlier config do not count: rows of our own
    prompts say their version; for others, the batch after a swap is left out.

    The curriculum's state is in each checkpoint's ``trainer_state.json``. Training from a checkpoint continues with it; ``renamed``
    maps names of its slices to those of the config.

    A data loader with workers reads a copy of the prompts, which follows a swap only if they have a ``source``. Without one, and
    under a trainer that pays replies in another process, the callback raises ``NotFollowed``.
    """

    def __init__(
        self,
        prompts: Prompts,
        curriculum: Given,
        *,
        success: Callable[[float], bool] = full,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        if not hasattr(prompts, "set_config"):
            raise SpecError(
                f"prompts is a {type(prompts).__name__}: give DatasetPrompts(dataset), LakePrompts(…) or TextPrompts(…), and the trainer its "
                "`dataset`"
            )
        self.prompts, self.success, self.renamed = prompts, success, renamed
        self.curriculum: Curriculum = as_curriculum(curriculum)
        self.curriculum.raise_unless_counted(("episodes", "iterations"))
        self._paid: list[_Paid] = []  # since the last step
        self._judged: dict[Rewards, list[bool]] = {}  # since the last step: which replies each wrapped function judged
        self._told_of_two = False
        self._any_judged: bool | None = None  # in this training; None before the first reply
        self._behind = False  # whether the next batch was fetched before the last swap
        self._stood: dict[str, float] = {}  # what was logged of the curriculum before that swap
        self._wrapped = False  # the trainer's reward function, and
        self._met = False  # whether the trainer has called this callback
        self._rows_doubted = False
        self._late = 0  # steps in a row, up to the last one, whose replies all were late
        self._best = 0.0  # the highest score that counted, and
        self._doubted = False  # whether a warning has said that none was a success

    def rewards(self, function: Rewards) -> Rewards:
        """The reward function, which also reports what it pays."""
        if not callable(function):
            raise SpecError(f"rewards has a {type(function).__name__}: give one function, the one that says success")
        if iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__):
            raise SpecError("an asynchronous reward function cannot be counted: give a plain one")
        self._wrapped = True

        @wraps(function)
        def counted(*given: Any, **columns: Any) -> list[float]:
            self._raise_unless_met(columns.get("trainer_state"))
            paid = function(*given, **columns)
            _raise_unless_one_each(paid, columns, getattr(function, "__name__", type(function).__name__))
            self._judged.setdefault(counted, []).extend(map(_is_judged, paid))
            self._count(paid, columns)
            return paid

        return counted

    def _raise_unless_met(self, state: Any) -> None:
        """Before the first step it may be an evaluation, and the callback may be added later."""
        if not self._met and state is not None and state.global_step:
            raise SpecError("the curriculum is never asked: give the trainer callbacks=[callback], too")

    def _count(self, paid: Sequence[float | None], columns: Mapping[str, Any]) -> None:
        metadata = columns.get("metadata") or [{}] * len(paid)
        rows: list[Mapping[str, Any]] = [
            row if isinstance(row, Mapping) else {} for row in metadata
        ]  # a user's may be anything
        slices = columns.get("slice") or [row.get("slice", WHOLE) for row in rows]
        versions = columns.get("config_version") or [row.get("version") for row in rows]
        prompts = columns.get("prompts") or [None] * len(paid)
        by_slice: dict[str, list[Outcome]] = {}
        for reward, name, version, prompt in zip(paid, slices, versions, prompts, strict=True):
            if not _is_judged(reward):
                continue
            outcome = Outcome(str(name), bool(self.success(reward)), min(max(float(reward), 0.0), 1.0))
            self._paid.append(_Paid(outcome, version, None if prompt is None else str(prompt)))
            by_slice.setdefault(outcome.slice, []).append(outcome)
        if (log := columns.get("log_metric")) is not None:
            for name, told in by_slice.items():
                log(f"success/{name}", sum(one.success for one in told) / len(told))
                log(f"score/{name}", sum(one.score for one in told) / len(told))
            late = any(self._is_late(version) for version in versions)
            for name, value in (self._stood if late else self._standing()).items():
                log(name, value)

    def _is_late(self, version: int | None) -> bool:
        """Whether a prompt was drawn before the last swap."""
        current = getattr(self.prompts, "version", None)
        return self._behind if version is None or current is None else version < current

    def _standing(self) -> dict[str, float]:
        """The stage and its knobs. TRL logs the mean over processes, and only the main one's curriculum knows them."""
        if _processes() > 1:
            return {}
        told = self.curriculum.metrics()
        return {name: value for name, value in told.items() if name == "stage" or name.startswith(("share/", "knob/"))}

    def on_init_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._met = True
        if any("async" in kind.__name__.lower() for kind in type(args).__mro__):
            raise NotFollowed(
                f"{type(args).__name__.removesuffix('Config')}Trainer pays replies in another process, where this callback sees none: "
                "swap configs yourself, by set_config of LakePrompts(…, source=FILE)"
            )
        if getattr(args, "restore_callback_states_from_checkpoint", False):
            raise SpecError(
                "restore_callback_states_from_checkpoint=True makes every callback anew, this one without its prompts: leave it out, as this "
                "callback reads its state from the checkpoint by itself"
            )
        workers = getattr(args, "dataloader_num_workers", 0)
        if workers and getattr(self.prompts, "source", None) is None:
            raise NotFollowed(
                f"dataloader_num_workers={workers} reads a copy of the prompts in another process, where set_config changes nothing: set "
                "it to 0, or make prompts of lakes with LakePrompts(…, source=FILE), which a copy reads again for every batch"
            )

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Training begins, or continues from a checkpoint, with the curriculum's config."""
        self.on_init_end(args, state, control)  # for a callback that is added to an existing trainer
        if not self._wrapped:
            raise SpecError(
                "the curriculum sees no reply: give the trainer reward_funcs=callback.rewards(function), with your reward function"
            )
        if state.global_step:
            saved = (state.stateful_callbacks or {}).get(type(self).__name__)
            if saved is None:
                raise RunError(
                    f"the checkpoint of step {state.global_step} has no state of a curriculum: train from one that was written with "
                    "this callback"
                )
            self.curriculum.load_state_dict(saved["attributes"]["curriculum"], self.renamed)
            self._best = saved["attributes"].get("best_score", 1.0)  # of one that does not say it, nothing is doubted
        self._forget()
        self._any_judged = None
        attached(self.curriculum, self.prompts, apply_config)
        if self.curriculum.config is not None:
            self._swap(self.curriculum.config)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Replies of an evaluation do not count."""
        self._forget()

    def _forget(self) -> None:
        self._paid.clear()
        self._judged.clear()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The replies of all processes count in the main one, which decides for all."""
        self._raise_unless_known()
        paid, judged = _of_all_processes(self._paid), list(self._judged.values())
        self._paid, self._judged = [], {}
        config = None
        if state.is_world_process_zero:
            self._doubt_rows(paid)
            self._doubt_late_rows(paid)
            self._doubt_a_second(judged)
            if judged:
                self._any_judged = bool(self._any_judged or paid)
            counted = [one for one in paid if not self._is_late(one.version)]
            further = further_replies(one.question for one in counted)
            for one, is_further in zip(counted, further, strict=True):
                self.curriculum.observe(one.outcome._replace(further=is_further))
                self._best = max(self._best, one.outcome.score)
            self.curriculum.advance(iterations=1)
            stood, stage = self._standing(), getattr(self.curriculum, "stage", None)
            config = self.curriculum.next()
            if getattr(self.curriculum, "stage", None) != stage:
                self._doubt_successes()
            self._stood = self._stood if config is None else stood
        config = _from_the_main_process(config)
        if paid:
            self._behind = False
        if config is not None:
            self._swap(config)
            self._behind = True

    def _swap(self, config: Config) -> None:
        with applying(config, self.curriculum):
            self.prompts.set_config(config)

    def _doubt_rows(self, paid: Sequence[_Paid]) -> None:
        """Warn, once, of a dataset that is not that of the prompts. It may be one that a user has made of it, so this is no error."""
        say_versions = hasattr(self.prompts, "dataset") and hasattr(self.prompts, "version")
        if say_versions and paid and not self._rows_doubted and all(one.version is None for one in paid):
            self._rows_doubted = True
            warn(
                "no row of the trainer's says a version, as those of the prompts do, so no change of the config reaches it: give the trainer "
                "train_dataset=prompts.dataset"
            )

    def _doubt_late_rows(self, paid: Sequence[_Paid]) -> None:
        """Warn, once, of rows that are a copy of the first ones: no reply to them counts after the first swap."""
        if not paid:
            return
        late = all(one.version is not None and self._is_late(one.version) for one in paid)
        self._late = self._late + 1 if late else 0
        if self._late == LATE:
            warn(
                f"no reply of the last {LATE} steps counts, as all rows are of an earlier config: give the trainer prompts.dataset itself, as a "
                "copy of its rows follows no change of the config"
            )

    def _doubt_a_second(self, judged: Sequence[Sequence[bool]]) -> None:
        """Warn, once, of a reply that two wrapped functions have judged. Functions may share the replies, and a trainer made anew wraps anew."""
        if not self._told_of_two and any(sum(reply) > 1 for reply in zip(*judged, strict=False)):
            self._told_of_two = True
            warn(
                "two reward functions are wrapped, so each reply counts twice: give callback.rewards(…) to one of them"
            )

    def _raise_unless_known(self) -> None:
        """In the words of this door. Only here are the replies of training alone: an evaluation's rows may be of any slice."""
        if isinstance(known := getattr(self.curriculum, "slices", None), Slices):
            known.raise_unless_known(
                {one.outcome.slice for one in self._paid},
                "give the dataset a column `slice` that names one of these for every row",
            )

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            if self._any_judged is False:
                warn(
                    "training ended, and your reward function judged no reply (it returned None or NaN): let it return numbers"
                )
            else:
                self.curriculum.training_ended()
            self._doubt_successes()

    def _doubt_successes(self) -> None:
        """Warn, once, of rewards that are never a success."""
        if self.success is full and 0 < self._best < 1 and not self._doubted:
            self._doubted = True
            warn(
                f"no reward has reached 1 so far (the best is {self._best:.6g}), so no reply was a success: give "
                "TRLCurriculumCallback(…, success=lambda reward: …)"
            )

    def state(self) -> dict[str, Any]:
        """What transformers writes into ``trainer_state.json``."""
        return {"args": {}, "attributes": {"curriculum": self.curriculum.state_dict(), "best_score": self._best}}


def _is_judged(reward: float | None) -> TypeGuard[float]:
    """Whether the function judges this row: TRL takes None, and NaN in its place."""
    return reward is not None and not math.isnan(reward)


def _raise_unless_one_each(paid: Any, columns: Mapping[str, Any], name: str) -> None:
    """A user's own reward function pays a list with an entry for each reply."""
    replies = len(columns.get("completions") or [])
    if not hasattr(paid, "__len__"):
        found = "None" if paid is None else f"a {type(paid).__name__}"
    elif replies and len(paid) != replies:
        found = counted(len(paid), "value")
    else:
        return
    given = f" for {replies} replies" if replies else ""
    raise SpecError(
        f"your reward function {name} returned {found}{given}: let it return a list with a number, or None, for each reply"
    )


def _processes() -> int:
    from accelerate import PartialState

    return int(PartialState().num_processes)


def _of_all_processes(paid: list[_Paid]) -> list[_Paid]:
    from accelerate.utils import gather_object

    return gather_object(paid) if _processes() > 1 else paid


def _from_the_main_process(config: Any) -> Any:
    from accelerate.utils import broadcast_object_list

    if _processes() == 1:
        return config
    told = [config]
    broadcast_object_list(told)
    return told[0]
