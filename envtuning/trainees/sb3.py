"""``SB3Trainee``: any algorithm of Stable-Baselines3, by name and options, on a world's training environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.vec_env import DummyVecEnv

from engineers.from_file import DATA, PLAIN, Allowed, reads
from engineers.shared.own import object_at
from envtuning.outcomes import Tally
from envtuning.seeds import derive
from envtuning.trainees.base import OUTCOMES, Metrics, OnIteration, Trainee, TrainingDiverged
from envtuning.trainees.privates import sb3 as privates
from envtuning.trainees.process_state import process_state, set_threads
from envtuning.trainees.tensors import are_finite, copy_into, load_tensors, raise_unless_fits
from envtuning.trainees.visited import Visited
from envtuning.worlds.world import Cases, World, raise_unless_trains

LATELY = 1_000  # a call's success rate is over at least this many of its last env steps
SMALLEST_IMAGE = 36  # pixels a side that Stable-Baselines3's convolutions need
UNFIT = {  # by the name of the class or a base class, because sb3-contrib may not be installed
    "RecurrentPPO": "a world asks a policy about each observation separately, so its memory would be empty at every step: "
    "let the environment stack past observations instead (gymnasium.wrappers.FrameStackObservation)",
    "MaskablePPO": "the training environments have no action masks: name PPO, and let an impossible action do nothing",
}

_HYPERPARAMETERS = (
    "batch_size", "buffer_size", "cg_damping", "cg_max_steps", "clip_range", "clip_range_vf", "device", "ent_coef",
    "exploration_final_eps", "exploration_fraction", "exploration_initial_eps", "gae_lambda", "gamma",
    "gradient_steps", "learning_rate", "learning_starts", "line_search_max_iter", "line_search_shrinking_factor",
    "max_grad_norm", "n_critic_updates", "n_epochs", "n_steps", "normalize_advantage", "optimize_memory_usage",
    "policy_delay", "rms_prop_eps", "sde_sample_freq", "stats_window_size", "sub_sampling_factor", "target_entropy",
    "target_kl", "target_noise_clip", "target_policy_noise", "target_update_interval", "tau",
    "top_quantiles_to_drop_per_net", "train_freq", "use_rms_prop", "use_sde", "verbose", "vf_coef",
)  # fmt: skip
_POLICY = "full_std log_std_init n_critics n_quantiles normalize_images ortho_init share_features_extractor squash_output use_expln"
# Options that a file may set; ``tensorboard_log`` could write anywhere.
FROM_FILE: Allowed = {
    **dict.fromkeys(("algorithm", "deterministic", "num_envs", "policy", "report_every", "torch_threads"), PLAIN),
    **dict.fromkeys(_HYPERPARAMETERS, PLAIN),
    "policy_kwargs": {**dict.fromkeys(_POLICY.split(), PLAIN), "net_arch": DATA},
}


@reads(FROM_FILE)
class SB3Trainee(Trainee):
    """A ``Trainee``, which documents the methods.

    ``algorithm`` is a class of Stable-Baselines3 (PPO, A2C, DQN, SAC, TD3, …) or ``package:Class`` of the same kind, on-policy or
    off-policy, without a memory or action masks (``sb3_contrib:TRPO``, not ``RecurrentPPO``). ``hyperparameters`` are the
    algorithm's own, with its own defaults. The replay buffer is emptied between stages, so that it holds no experience of
    another config.
    """

    in_words = "A neural policy by Stable-Baselines3, from the environment's own reward."
    outcomes_in_words = "The policy acts as its algorithm explores; most algorithms sample."
    form = "acts"
    reports = frozenset({"success_rate", "loss"})

    def __init__(
        self,
        *,
        world: World[Any],
        capacity: Mapping[str, Any],
        exclude: Sequence[Cases] = (),
        seed: int = 0,
        algorithm: str = "PPO",
        policy: str | None = None,
        num_envs: int = 8,
        report_every: int = 1_000,
        deterministic: bool = True,
        torch_threads: int = 1,
        **hyperparameters: Any,
    ) -> None:
        self.report_every, self.deterministic, self.torch_threads = report_every, deterministic, torch_threads
        self.world, self.visited = world, Visited()
        self.envs = DummyVecEnv(
            [
                lambda copy=copy: world.make_env(
                    world.config_in(capacity), exclude=exclude, capacity=capacity, seed=derive(seed, "copy", copy)
                )
                for copy in range(num_envs)
            ]
        )
        with process_state(seed, self.torch_threads):
            self.model: BaseAlgorithm = algorithm_class(algorithm)(
                policy or policy_for(self.envs.observation_space),
                self.envs,
                seed=seed,
                device=hyperparameters.pop("device", "cpu"),
                **hyperparameters,
            )

    @classmethod
    def check_world(cls, world: World[Any]) -> None:
        raise_unless_trains(world)

    @staticmethod
    def check_options(algorithm: str = "PPO", **options: Any) -> None:
        """Raises ``ValueError`` or ``TypeError`` for an unknown algorithm or hyperparameter, without making a model."""
        own = signature(SB3Trainee.__init__).parameters
        given = {name: value for name, value in options.items() if name not in own}
        no_options = {"self", "env", "seed", privates.NO_OPTION}
        known = set(signature(algorithm_class(algorithm).__init__).parameters) - no_options
        if strangers := sorted(given.keys() - known):
            close = [name for stranger in strangers for name in get_close_matches(stranger, known, 1)]
            hint = f" (did you mean {', '.join(close)}?)" if close else ""
            raise ValueError(
                f"{algorithm} has no hyperparameter {', '.join(strangers)}{hint}: it has {', '.join(sorted(known))}"
            )
        for name, value in options.items():
            if name in ("num_envs", "report_every", "torch_threads") and value < 1:
                raise ValueError(f"{name}={value}: give at least 1")

    @staticmethod
    def resources(torch_threads: int = 1, device: str = "cpu", **options: Any) -> Sequence[Mapping[str, float]]:
        return ({"CPU": torch_threads, "GPU": float(device != "cpu")},)

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        """Learn in whole rollouts. An iteration is reported at the end of the rollout that completes ``report_every`` steps."""
        self.envs.env_method("set_config", config)
        watch = Watch(self.report_every, on_iteration, self.world, self.visited)
        with process_state(seed, self.torch_threads):
            self.model.set_random_seed(seed)  # also seeds the environments, at their next reset
            privates.reset_before_learning(self.model)
            try:
                self.model.learn(budget, callback=watch, log_interval=None, reset_num_timesteps=False)
            except (ValueError, RuntimeError) as error:  # raised by a distribution if weights are not finite
                raise_unless_finite(self.model, error)
                raise
        raise_unless_finite(self.model)
        return watch.summary()

    def policy(self) -> SB3Policy:
        """A copy of the current policy."""
        now = self.model.policy
        with process_state(0, self.torch_threads):  # new networks draw random weights, which are replaced
            own = privates.new_copy(now)
        own.load_state_dict(now.state_dict())
        seen = getattr(self.envs.envs[0].unwrapped, "env_kwargs", {})
        return SB3Policy(own, self.deterministic, self.torch_threads, seen)

    def save(self, folder: Path) -> None:
        """Weights, optimisers and visited cases, in files that load without running code. Each ``train`` call is seeded."""
        found = {name: getattr(self.model, name) for name in privates.variables(self.model)}
        variables = {name: tensor.detach() for name, tensor in found.items() if tensor is not None}
        torch.save({"parameters": self.model.get_parameters(), "variables": variables}, folder / "model.pt")
        self.visited.save(folder)

    def load(self, folder: Path) -> None:
        """Restore the saved weights, optimisers and visited cases; counters and buffers start empty."""
        self.visited.load(folder)
        state = load_tensors(folder / "model.pt")
        self.model.set_parameters(state["parameters"])
        for name, value in state["variables"].items():
            copy_into(getattr(self.model, name), value, name)
        for name in privates.parts(self.model):
            part = attrgetter(name)(self.model)
            if isinstance(part, torch.optim.Optimizer):
                raise_unless_fits(part)
        start_anew(self.model)

    def close(self) -> None:
        self.envs.close()


class SB3Policy:
    """Acts on observations in batches, with its likeliest actions or with seeded draws as in training.

    If a world's environments have several kinds of observations, ``env_kwargs`` select the policy's kind.
    """

    def __init__(
        self, policy: Any, deterministic: bool, torch_threads: int, env_kwargs: Mapping[str, Any] | None = None
    ) -> None:
        self.env_kwargs = dict(env_kwargs or {})
        self.net, self.deterministic, self.torch_threads = policy, deterministic, torch_threads
        self.generator = np.random.default_rng(0)

    def act(self, observations: Any) -> np.ndarray:
        with set_threads(self.torch_threads), torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(self.generator.integers(2**31)))
            return self.net.predict(observations, deterministic=self.deterministic)[0]


class Watch(BaseCallback):
    """Counts steps, episodes and successes, and reports an iteration at the end of a rollout."""

    def __init__(
        self, report_every: int, on_iteration: OnIteration | None, world: World[Any], visited: Visited
    ) -> None:
        super().__init__()
        self.world, self.visited, self.outcomes = world, visited, Tally()
        self.report_every, self.on_iteration = report_every, on_iteration
        self.count: Counter[str] = Counter()
        self.history: list[Metrics] = []

    def _on_step(self) -> bool:
        self.count["env_steps"] += self.training_env.num_envs
        for done, info in zip(self.locals["dones"], self.locals["infos"]):
            if done:
                self.count["episodes"] += 1
                self.count["successes"] += bool(info["is_success"])
                repeat = "case" in info and self.visited.repeats([info["case"]])[0]
                self.outcomes.observe(self.world.outcome(info, repeat))
        return True

    def _on_rollout_start(self) -> None:
        """The policy has learnt from the previous rollout, so its losses exist."""
        if self.count["env_steps"] >= self.report_every:
            self._report()

    def _on_training_end(self) -> None:
        if self.count["env_steps"]:
            self._report()

    def _report(self) -> None:
        count, self.count = self.count, Counter()
        metrics = {"env_steps": float(count["env_steps"]), "episodes": float(count["episodes"])}
        if count["episodes"]:
            metrics["success_rate"] = count["successes"] / count["episodes"]
        self.history.append(metrics | losses(self.logger.name_to_value, self.model))
        if self.on_iteration is not None:
            self.on_iteration({**self.history[-1], OUTCOMES: self.outcomes})
        self.outcomes = Tally()

    def summary(self) -> Metrics:
        """The call's metrics: sums of the counts, and the success rate of its last episodes."""
        late: list[Metrics] = []
        for metrics in reversed(self.history):
            late.append(metrics)
            if sum(one["env_steps"] for one in late) >= LATELY:
                break
        episodes = sum(one["episodes"] for one in late)
        found = dict(self.history[-1]) if self.history else {}
        if episodes:
            found["success_rate"] = sum(one.get("success_rate", 0.0) * one["episodes"] for one in late) / episodes
        return found | {name: sum(one[name] for one in self.history) for name in ("env_steps", "episodes")}


def losses(logged: Mapping[str, Any], model: Any) -> Metrics:
    """Stable-Baselines3's log of its last gradient steps; ``loss`` is the critic's if there is no total loss."""
    found = {
        name.removeprefix("train/"): float(value)
        for name, value in logged.items()
        if name.startswith("train/") and isinstance(value, int | float | np.number)
    }
    # A2C logs only the parts of its loss.
    if "loss" not in found and {"policy_loss", "entropy_loss", "value_loss"} <= found.keys():
        found["loss"] = (
            found["policy_loss"] + model.ent_coef * found["entropy_loss"] + model.vf_coef * found["value_loss"]
        )
    for critics in ("critic_loss", "value_loss"):
        if "loss" not in found and critics in found:
            found["loss"] = found[critics]
    return found


def algorithm_class(name: str) -> type[BaseAlgorithm]:
    """``PPO`` of Stable-Baselines3, or ``package:Class``. Raises ``ValueError`` for other objects, and for algorithms that do not fit."""
    remedy = "Stable-Baselines3 has A2C, DDPG, DQN, PPO, SAC and TD3; name another as 'package:Class'"
    try:
        found = object_at(name if ":" in name else f"stable_baselines3:{name}")
    except ImportError as error:
        raise ValueError(f"algorithm {name!r}: {error}; {remedy}") from error
    if not (isinstance(found, type) and issubclass(found, BaseAlgorithm)):
        raise ValueError(f"algorithm {name!r} is not a class derived from Stable-Baselines3's algorithms: {remedy}")
    if not issubclass(found, OnPolicyAlgorithm | OffPolicyAlgorithm):
        raise ValueError(
            f"algorithm {name!r} is neither on-policy nor off-policy, so its steps cannot be counted: {remedy}"
        )
    for base in found.__mro__:
        if base.__name__ in UNFIT:
            raise ValueError(f"algorithm {name!r} cannot be used here: {UNFIT[base.__name__]}")
    return found


def policy_for(space: spaces.Space) -> str:
    """The kind of network for such observations."""
    if isinstance(space, spaces.Dict):
        return "MultiInputPolicy"
    if is_image_space(space) and min(sorted(space.shape)[-2:]) >= SMALLEST_IMAGE:  # type: ignore[arg-type]
        return "CnnPolicy"
    return "MlpPolicy"


def start_anew(model: BaseAlgorithm) -> None:
    """Reset the state of training to that before the first step, except for weights and optimisers."""
    privates.reset_counters(model)
    privates.reset_before_learning(model)
    if (buffer := getattr(model, "replay_buffer", None)) is not None:
        buffer.reset()
    if hasattr(model, "exploration_schedule"):
        model.exploration_rate = model.exploration_schedule(1.0)


def raise_unless_finite(model: BaseAlgorithm, cause: Exception | None = None) -> None:
    """Raises ``TrainingDiverged`` if a weight is not finite."""
    if are_finite(model.policy.parameters()):
        return
    raise TrainingDiverged(
        f"weights not finite after {model.num_timesteps:,} env steps of the stage: continue from the last "
        f"checkpoint with a lower learning_rate (it is {model.learning_rate}) or a smaller max_grad_norm"
    ) from cause
