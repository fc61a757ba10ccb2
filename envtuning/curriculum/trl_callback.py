"""``TRLCurriculumCallback``: swap the config under any TRL trainer, from what the trainer logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from envtuning.extras import needs

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise needs("TRLCurriculumCallback", error, extra="grpo") from None


class Prompts(Protocol):
    """The source of the trainer's prompts: ``mapf_frozenlake.text.trl.LakePrompts``, or your own."""

    def set_config(self, config: Any) -> None: ...


class NotFollowed(ValueError):
    """The trainer reads a copy of the prompts in another process, and would not notice a swap."""


class TRLCurriculumCallback(TrainerCallback):
    """Calls ``curriculum`` with the logged ``metric`` after each step, and gives the config that it returns to the prompts.

    It works with a ``Ladder``, whose window then counts logged steps. Weights, optimiser and schedule do not change. TRL's
    data loader is one batch ahead, so the batch after next is the first of the new config. The first value logged after a
    swap includes the batch between, so it is skipped.

    A trainer that reads a pickled copy of the prompts in another process follows a swap only if they have a ``source``, which
    the copy reads again. Without a source, the callback raises ``NotFollowed``.
    """

    def __init__(
        self, prompts: Prompts, curriculum: Callable[[Any], Any | None], *, metric: str = "valid_rate"
    ) -> None:
        self.prompts, self.curriculum, self.metric = prompts, curriculum, metric
        self._swapped = False  # since the last logged value

    def on_init_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        reader = reads_a_copy(args)
        if reader is not None and getattr(self.prompts, "source", None) is None:
            raise NotFollowed(
                f"{reader} reads a copy of the prompts in another process, where set_config changes nothing: make them with "
                "LakePrompts(…, source=FILE), which a copy reads again for every batch"
            )

    on_train_begin = on_init_end  # for a callback that is added to an existing trainer

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        value = (logs or {}).get(self.metric)
        if value is None:
            return
        if self._swapped:
            self._swapped = False
        elif (config := self.curriculum(float(value))) is not None:
            self.prompts.set_config(config)
            self._swapped = True


def reads_a_copy(args: Any) -> str | None:
    """The trainer's argument that makes another process read the prompts; None if the trainer reads them itself."""
    if any("async" in kind.__name__.lower() for kind in type(args).__mro__):
        return type(args).__name__.removesuffix("Config") + "Trainer"
    workers = getattr(args, "dataloader_num_workers", 0)
    return f"dataloader_num_workers={workers}" if workers else None
