"""``LanguageOptions``: the keys under ``trainee.options`` in a run's file. The defaults are the papers' settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from engineers.from_file import DATA, PLAIN, Allowed
from engineers.shared.own import object_at

# "Don't Just Fine-tune the Agent, Tune the Environment": no critic, group-normalised advantages, asymmetric clip, KL 0.1
# (0.001 collapses), gradient clip 1.0, learning rate 1e-6 and 16 rollouts for a model of billions of parameters.
PAPERS: dict[str, Any] = {
    "learning_rate": 1e-6,
    "num_generations": 16,
    "epsilon": 0.2,
    "epsilon_high": 0.28,
    "beta": 0.1,
    "use_bias_correction_kl": False,  # the plain k3 estimate; TRL's default multiplies it by the importance ratio
    "scale_rewards": "group",
    "max_grad_norm": 1.0,
    "loss_type": "grpo",
    # Published GRPO has none of these. They are set so that a later default of TRL cannot change the loss.
    "num_iterations": 1,
    "importance_sampling_level": "token",
    "delta": None,
    "entropy_coef": 0.0,
    "top_entropy_quantile": 1.0,
    "mask_truncated_completions": False,
    "off_policy_mask_threshold": None,
    "multi_objective_aggregation": "sum_then_normalize",
    "reward_weights": None,
    "router_aux_loss_coef": None,
    "temperature": 1.0,
    # A batch of 8 prompts is generated at once and used in two optimiser steps; with one step, the clip would never act.
    "per_device_train_batch_size": 32,
    "gradient_accumulation_steps": 2,
    "steps_per_generation": 4,
    "max_completion_length": 512,
    "gradient_checkpointing": False,
}
# The loop relies on these: a constant rate across configs, rows in order, a log of every step, NaN not hidden.
REQUIRED: dict[str, Any] = {
    "lr_scheduler_type": "constant",
    "warmup_steps": 0,
    "shuffle_dataset": False,
    "logging_steps": 1,
    "logging_nan_inf_filter": False,
    "save_strategy": "no",
    "report_to": "none",
    "disable_tqdm": True,
    "remove_unused_columns": False,
    "dataloader_num_workers": 0,
}
# Losses whose gradient is a sum over replies, so that some can be left out; and whether the sum is divided by the replies at hand (dapo: by tokens).
DIVIDED_BY_REPLIES = {"grpo": True, "dr_grpo": True, "dapo": False}
_GRPO = (
    "adam_beta1", "adam_beta2", "adam_epsilon", "beta", "bf16", "cast_lm_head_to_fp32", "delta", "disable_dropout",
    "ds3_gather_for_generation", "entropy_coef", "epsilon", "epsilon_high", "fp16", "generation_batch_size",
    "gradient_accumulation_steps", "gradient_checkpointing", "importance_sampling_level", "learning_rate",
    "loss_type", "mask_truncated_completions", "max_completion_length", "max_grad_norm", "min_p", "num_generations",
    "num_iterations", "off_policy_mask_threshold", "optim", "per_device_train_batch_size", "repetition_penalty",
    "scale_rewards", "steps_per_generation", "temperature", "tf32", "top_entropy_quantile", "top_k", "top_p",
    "use_adaptive_entropy", "use_bias_correction_kl", "use_cpu", "use_liger_kernel",
    "use_transformers_continuous_batching", "use_transformers_paged", "use_vllm", "vllm_enable_sleep_mode",
    "vllm_gpu_memory_utilization", "vllm_importance_sampling_correction", "vllm_importance_sampling_mode",
    "vllm_max_model_length", "vllm_mode", "vllm_tensor_parallel_size", "weight_decay",
)  # fmt: skip
_LORA = (
    "bias", "exclude_modules", "fan_in_fan_out", "layers_pattern", "layers_to_transform", "lora_alpha",
    "lora_dropout", "modules_to_save", "r", "target_modules", "use_dora", "use_rslora",
)  # fmt: skip
_PLAIN_OWN = (
    "dtype", "model", "processes", "refill", "reply_batch", "reply_temperature", "reward", "skip_equal_groups",
    "torch_threads",
)  # fmt: skip
# Options that a file may set. ``reward`` names a module, which has its own rule; ``launch`` could name a program.
FROM_FILE: Allowed = {
    **dict.fromkeys(_PLAIN_OWN, DATA),
    "grpo": {
        **dict.fromkeys(_GRPO, PLAIN),
        "chat_template_kwargs": {"enable_thinking": PLAIN},
        "gradient_checkpointing_kwargs": {"use_reentrant": PLAIN},
    },
    "lora": {**dict.fromkeys(_LORA, PLAIN), "alpha_pattern": DATA, "rank_pattern": DATA},
}
OTHER_GENERATORS = ("use_vllm", "use_transformers_continuous_batching", "use_transformers_paged")
OWNED = (*REQUIRED, "output_dir", "max_steps", "num_train_epochs", "seed", "data_seed", "sync_ref_model")


class LanguageOptions(BaseModel):
    """The trainee's options. ``grpo`` takes every other argument of TRL's ``GRPOConfig``, vLLM's and DeepSpeed's too; from a file, those of ``FROM_FILE``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(description="A transformers folder (`envtuning pretrain` makes one), or a name on the hub.")
    grpo: dict[str, Any] = Field(
        default_factory=dict, description="Arguments of GRPOConfig that replace the papers' settings."
    )
    lora: dict[str, Any] | Literal["auto"] | None = Field(
        "auto",
        description="Arguments of peft's LoraConfig; null trains all weights; 'auto' trains adapters of rank 16 on all linear layers "
        "of a model of 50 million parameters or more, and all weights of a smaller one.",
    )
    dtype: str = Field(
        "auto", description="Data type of the weights, as torch names it; 'auto': the type they were saved in."
    )
    reply_temperature: float = Field(
        0.0,
        ge=0.0,
        description="Sampling temperature of validation and test; 0 is greedy. Training samples at grpo.temperature.",
    )
    reply_batch: int = Field(
        256, ge=1, description="Number of conversations in one call of generation outside training."
    )
    skip_equal_groups: bool = Field(
        False,
        description="Take no gradient of groups in which every reply was paid alike: without a KL term it is zero, and a step "
        "becomes cheaper by their share. Entropy and clip ratio are then means over the other groups. Needs grpo.beta 0.",
    )
    refill: int = Field(
        0,
        ge=0,
        le=100,
        description="Further prompts that may be played for each prompt of a batch, in place of those whose replies were all paid "
        "alike, until every group of the batch has a signal. Their replies are charged. For conversations that the loop plays.",
    )
    reward: str | None = Field(
        None,
        description="'package.module:function': a TRL reward function that replaces the config's reward, which it gets as `paid`, "
        "one number for each reply.",
    )
    processes: int = Field(
        1, ge=1, description="1: train in this process. More: start this many workers by `accelerate launch`."
    )
    launch: tuple[str, ...] = Field((), description="Further switches of `accelerate launch`, for several processes.")
    torch_threads: int | None = Field(None, ge=1, description="Threads of a process on CPU; null: torch's default.")

    @field_validator("model")
    @classmethod
    def _at_home(cls, model: str) -> str:
        return str(Path(model).expanduser()) if model.startswith("~") else model

    @model_validator(mode="after")
    def _leaves_the_loop_its_own(self) -> LanguageOptions:
        taken = sorted(self.grpo.keys() & set(OWNED))
        if taken:
            raise ValueError(f"grpo.{taken[0]} is set by the loop: leave it out")
        if self.grpo.get("use_adaptive_entropy"):
            raise ValueError(
                "grpo.use_adaptive_entropy=True: its state is not in checkpoints, so a resumed run would differ: leave it out, and "
                "set entropy_coef"
            )
        if self.batch % self.group:
            raise ValueError(
                f"grpo: a batch of {self.batch} replies (per_device_train_batch_size × steps_per_generation × processes) "
                f"does not divide into whole groups of num_generations={self.group}: make it a multiple of that"
            )
        if self.of_grpo("steps_per_generation") % self.of_grpo("gradient_accumulation_steps"):
            raise ValueError(
                f"grpo.steps_per_generation={self.of_grpo('steps_per_generation')} is not a multiple of "
                f"gradient_accumulation_steps={self.of_grpo('gradient_accumulation_steps')}: an optimiser step would mix "
                "two generations"
            )
        if self.refill and self.reward is not None:
            raise ValueError(
                f"refill={self.refill} looks at what the world pays, and reward={self.reward!r} replaces that: leave one of the two out"
            )
        if self.skip_equal_groups:
            self._raise_unless_equal_groups_teach_nothing()
        return self

    def _raise_unless_equal_groups_teach_nothing(self) -> None:
        if self.of_grpo("beta"):
            raise ValueError(
                f"skip_equal_groups: with grpo.beta={self.of_grpo('beta')} equal groups have a gradient too, from the KL term: set "
                "beta to 0, or leave skip_equal_groups out"
            )
        if self.of_grpo("loss_type") not in DIVIDED_BY_REPLIES:
            raise ValueError(
                f"skip_equal_groups: grpo.loss_type={self.of_grpo('loss_type')!r} gives another loss without them: use one of "
                f"{', '.join(DIVIDED_BY_REPLIES)}, or leave skip_equal_groups out"
            )
        for name in ("entropy_coef", "top_entropy_quantile"):
            if name in self.grpo:
                raise ValueError(
                    f"skip_equal_groups: grpo.{name} reads every reply, equal groups too: leave one of the two out"
                )

    def raise_unless_turns_are_played_here(self) -> None:
        """Raises ``ValueError`` for options that the loop's own player cannot use: it samples conversations of several turns, in this process."""
        for name in OTHER_GENERATORS:
            if self.of_grpo(name):
                raise ValueError(
                    f"grpo.{name}: conversations of several turns are generated by transformers' own generate; leave it out, "
                    "or ask for whole plans (world.options.mode: plan)"
                )

    def of_grpo(self, name: str) -> Any:
        """A setting of GRPO; the default is the papers'."""
        return self.grpo.get(name, PAPERS.get(name))

    @property
    def group(self) -> int:
        """Replies to one prompt."""
        return self.of_grpo("num_generations")

    @property
    def batch(self) -> int:
        """Replies that all processes together generate at once."""
        return self.of_grpo("per_device_train_batch_size") * self.of_grpo("steps_per_generation") * self.processes

    @property
    def steps_per_batch(self) -> int:
        """Optimiser steps that one batch of replies is used for."""
        uses = self.of_grpo("steps_per_generation") * (self.of_grpo("num_iterations") or 1)
        return uses // self.of_grpo("gradient_accumulation_steps")

    def settings(self) -> dict[str, Any]:
        """All arguments of GRPOConfig except those of one stretch: folder, seed and length."""
        return PAPERS | REQUIRED | self.grpo


def named(place: str | None) -> Any:
    """The reward function at ``package.module:function``. If a file names it, the user must trust the module."""
    if place is None:
        return None
    try:
        return object_at(place, known=())
    except ImportError as error:
        raise ValueError(
            f"reward={place!r} cannot be imported ({error}): write it as package.module:function"
        ) from error
