"""TRL's ``GRPOTrainer``, made once for the whole run: a new stage changes its data and keeps weights and moments.

The trainer's state of one stretch of training (rows, seed, length, buffers) is reset before the next one. The reference of the
KL term is the run's first model; loading a checkpoint does not change it.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback, TrainerCallback
from transformers.utils import GENERATION_CONFIG_NAME
from trl import GRPOConfig

from engineers.backends.plain_text import missing_template
from engineers.backends.weights import WEIGHTS, raise_unless_data
from envtuning.trainees.base import OUTCOMES, Metrics, OnIteration
from envtuning.trainees.language.options import LanguageOptions, named
from envtuning.trainees.language.outcomes import Outcomes
from envtuning.trainees.language.policy import ReplyPolicy, only_tokens
from envtuning.trainees.language.quiet import quiet
from envtuning.trainees.language.rollouts import rollout
from envtuning.trainees.language.state import base_digest, load_state, save_state
from envtuning.trainees.language.tasks import Tasks
from envtuning.trainees.privates.trl import PromptOnceTrainer, SignalTrainer, begin_stretch
from envtuning.trainees.process_state import set_threads

Rows = list[dict[str, Any]]

SHORTEST = 24  # least tokens of a prompt with its reply: bounds the number of prompts for a budget in tokens
LARGE = 50_000_000  # parameters from which `lora: auto` trains adapters
ADAPTERS: dict[str, Any] = {"r": 16, "lora_alpha": 32, "target_modules": "all-linear"}

# TRL's names for what a report needs.
LOGGED = {
    "grad_norm": "grad_norm",
    "loss": "loss",
    "reward": "reward",
    "entropy": "entropy",
    "kl": "kl",
    "frac_reward_zero_std": "equal_groups",
    "clip_ratio/region_mean": "clip_ratio",
    "completions/mean_length": "reply_tokens",
}


class Learner:
    """One model under GRPO. With one process on CPU, ``train`` is a function of (loaded state, rows, seed)."""

    def __init__(self, options: LanguageOptions, seed: int, tasks: Tasks | None = None, unit: str = "samples") -> None:
        self.options, self.tasks, self.unit = options, tasks, unit
        if tasks is not None and tasks.turns:
            options.raise_unless_turns_are_played_here()
        self._base: Any = None
        raise_unless_data(options.model, "trainee.options.model", revision="main")
        self.folder = tempfile.TemporaryDirectory(prefix="grpo-")
        with set_threads(options.torch_threads), quiet():
            self.tokenizer = AutoTokenizer.from_pretrained(
                options.model, padding_side="left", trust_remote_code=WEIGHTS["trust_remote_code"]
            )
            # TRL asks for a template.
            self.tokenizer.chat_template = missing_template(self.tokenizer) or self.tokenizer.chat_template
            model = AutoModelForCausalLM.from_pretrained(options.model, dtype=_dtype(options.dtype), **WEIGHTS)
            model.get_output_embeddings().register_forward_pre_hook(_contiguous)
            self.habits = model.generation_config
            model.generation_config = only_tokens(self.habits)
            self.watch = _Watch()
            self.outcomes = Outcomes(eos=frozenset(), pays=named(options.reward))
            kind = SignalTrainer if options.skip_equal_groups else PromptOnceTrainer
            self.trainer = kind(
                model=model,
                reward_funcs=self.outcomes,
                args=GRPOConfig(
                    output_dir=self.folder.name, seed=seed, max_steps=1, **(_of_device() | self.options.settings())
                ),
                train_dataset=dataset([{"prompt": "", "metadata": {}}]),  # each stretch brings its rows
                processing_class=self.tokenizer,
                peft_config=_lora(options.lora, model),
                callbacks=[self.watch],
                rollout_func=self._play if tasks is not None and tasks.turns else None,
            )
        self.trainer.remove_callback(PrinterCallback)  # the loop's console prints for the run
        policy = self.policy()
        self.outcomes.eos, self.outcomes.begun = frozenset(policy.eos), policy.begun
        self.trainer.model.eval()
        base_digest(self.trainer, self.model)  # computed now: peft's copy is still that of the first model

    @property
    def model(self) -> Any:
        """The model under training, without accelerate's wrapper."""
        return self.trainer.accelerator.unwrap_model(self.trainer.model)

    def policy(self, temperature: float | None = None, sampling: Any = None) -> ReplyPolicy:
        """A policy that replies with the current model and does not learn. Replies for training are drawn by ``sampling``."""
        options = self.options
        return ReplyPolicy(
            self.model,
            self.tokenizer,
            max_tokens=options.of_grpo("max_completion_length"),
            temperature=options.reply_temperature if temperature is None else temperature,
            batch=options.reply_batch,
            template=options.of_grpo("chat_template_kwargs"),
            sampling=sampling,
            threads=options.torch_threads,
        )

    def base_model(self) -> Any:
        """The model that the run began with: the reference of the KL term, or loaded anew if there is none. It samples as ``model`` does."""
        if self.trainer.ref_model is not None:
            base = self.trainer.accelerator.unwrap_model(self.trainer.ref_model)
        else:
            if self._base is None:
                self._base = AutoModelForCausalLM.from_pretrained(
                    self.options.model, dtype=_dtype(self.options.dtype), **WEIGHTS
                )
                self._base = self._base.to(self.model.device).eval()
            base = self._base
        base.generation_config = only_tokens(self.habits)
        return base

    def prompts_for(self, budget: int) -> int:
        """The largest number of prompts for a stretch of this budget: whole batches, at least one."""
        replies = budget if self.unit == "samples" else budget // SHORTEST
        return max(1, math.ceil(replies / self.options.batch)) * (self.options.batch // self.options.group)

    def _play(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """TRL's ``rollout_func`` for turns: the shared player plays, with the sampling settings of TRL."""
        assert self.tasks is not None
        policy = self.policy(sampling=trainer.generation_config)
        return rollout(policy, prompts, self.tasks.begin, self.tasks.judge)

    def train(
        self, rows: Rows, seed: int, on_iteration: OnIteration | None = None, *, budget: int | None = None
    ) -> list[Metrics]:
        """Learn on each row once, a batch of rows at a time, until the budget is spent. Returns every optimiser step's metrics.

        ``on_iteration`` gets each step's metrics when it ends. If it raises, training ends, and the next stretch begins from the
        state that is loaded then.
        """
        prompts = self.options.batch // self.options.group
        if not rows or len(rows) % prompts:
            raise ValueError(f"{len(rows)} rows: give a multiple of the {prompts} prompts that make a batch")
        trainer = self.trainer
        trainer.train_dataset = dataset(rows)
        trainer.args.max_steps = len(rows) // prompts * self.options.steps_per_batch
        trainer.args.seed = seed
        begin_stretch(trainer)
        self.outcomes.take()
        self.watch.begin(self, on_iteration, budget)
        with set_threads(self.options.torch_threads), _random_state(seed), quiet():
            try:
                trainer.train()
            finally:
                trainer.model.eval()
        return self.watch.history

    def save(self, folder: Path) -> None:
        """An ordinary transformers folder, with the files that only training needs beside it."""
        with quiet():
            save_state(folder, self.trainer, self.model, self.tokenizer)
            self.outcomes.visited.save(folder)
            if (folder / GENERATION_CONFIG_NAME).exists():  # an adapter has none
                self.habits.save_pretrained(folder)

    def load(self, folder: Path) -> None:
        """Restore weights and moments in place. The reference stays the run's first model."""
        load_state(folder, self.trainer, self.model)
        self.outcomes.visited.load(folder)

    def close(self) -> None:
        self.folder.cleanup()


class _Watch(TrainerCallback):
    """Turns TRL's log of each optimiser step into the loop's metrics."""

    def begin(self, learner: Learner, on_iteration: OnIteration | None, budget: int | None) -> None:
        self.learner, self.on_iteration, self.left = learner, on_iteration, budget
        self.history: list[Metrics] = []
        self.tokens = 0.0

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if not logs or "grad_norm" not in logs:  # the summary at the end of a stretch
            return
        step = {ours: float(logs[theirs]) for theirs, ours in LOGGED.items() if logs.get(theirs) is not None}
        options, counted = self.learner.options, self.learner.outcomes.take()
        if options.processes > 1:
            counted = counted.of_all_processes()
        step |= counted.metrics()
        tokens = float(logs.get("num_tokens") or self.tokens)  # since the stretch's first step
        step["tokens"], self.tokens = tokens - self.tokens, tokens
        step["samples"] = (
            float(options.batch) if state.global_step % options.steps_per_batch == 1 % options.steps_per_batch else 0.0
        )
        self.history.append(step)
        if self.left is not None:
            self.left -= int(step[self.learner.unit])
            whole = state.global_step % options.steps_per_batch == 0
            control.should_training_stop |= whole and self.left <= 0
        if self.on_iteration is not None:
            self.on_iteration({**step, OUTCOMES: counted.tally})


def dataset(rows: Rows) -> Any:
    from datasets import Dataset

    return Dataset.from_list(rows)


def _of_device() -> dict[str, Any]:
    """TRL's arguments for this machine. By default it computes in bfloat16, which most CPUs only emulate, six times slower."""
    return {} if torch.cuda.is_available() else {"use_cpu": True, "bf16": False}


def _contiguous(head: Any, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
    """For a hook. On a CPU, a frozen head in bfloat16 takes a thousand times as long on a slice of the hidden states."""
    return (inputs[0].contiguous(),)


def _dtype(name: str) -> Any:
    if name == "auto":
        return "auto"
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"dtype={name!r}: give 'auto' or a type as torch names it, such as 'bfloat16'")
    return found


def _lora(settings: dict[str, Any] | Literal["auto"] | None, model: Any) -> LoraConfig | None:
    if settings == "auto":
        settings = ADAPTERS if model.num_parameters() >= LARGE else None
    return None if settings is None else LoraConfig(task_type="CAUSAL_LM", **settings)


@contextmanager
def _random_state(seed: int) -> Iterator[None]:
    """TRL samples from the process's random state: seeds it for a stretch, and restores it."""
    import random

    import numpy as np
    from accelerate.utils import set_seed

    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        set_seed(seed % 2**32, device_specific=True)
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002
