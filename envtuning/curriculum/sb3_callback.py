"""``SB3CurriculumCallback``: swap the config under any Stable-Baselines3 algorithm, from the episodes that end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engineers.shared.extras import needs
from envtuning.curriculum.apply import Apply, apply_config, config_below
from envtuning.curriculum.by_reward import ByReward
from envtuning.curriculum.curriculum import Config, applying, as_curriculum
from envtuning.curriculum.ended import SliceOf, outcome_of
from envtuning.curriculum.old_episodes import OldEpisodes
from envtuning.curriculum.wrappers import Given, attached
from envtuning.errors import SpecError
from envtuning.outcomes import Outcome
from envtuning.own_code import warn

try:
    from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback
except ImportError as error:
    raise needs("SB3CurriculumCallback", error, extra="sb3") from None

CUT = 30  # characters that SB3's table leaves of a long name; it raises if two are alike then, so these are in the other logs alone


class SB3CurriculumCallback(BaseCallback):
    """Reports finished training episodes to ``curriculum``, and gives the config that it chooses to the training env.

    ``model.learn(steps, callback=SB3CurriculumCallback(EngineerCurriculum("rules", config)))``. Each env takes a new config at its
    next reset; weights, optimiser and spaces are not touched, nor are other callbacks' evaluation envs. It works with any ``VecEnv``
    whose envs have ``set_config`` (``mfl.sb3_vec_env`` or one of SB3's own), under any wrappers; for others pass
    ``apply=lambda vec_env, config: …``. A lake with a row for each agent counts once. Episodes that began before a swap do not
    count, because they ran on an earlier config. An episode is a success by its info's entry ``success_key``. Without a key, lakes
    count by ``valid``, as the suites do, whatever ``mfl.sb3_vec_env`` shows SB3. Other environments count by ``info["is_success"]``,
    or else if they terminated (not by a time limit) with a reward above 0. An episode's slice is ``info["slice"]``, or what
    ``slice_of(info)`` returns.

    ``checkpoints=CheckpointCallback(…)`` runs SB3's callback here, and writes the curriculum's state beside each checkpoint;
    ``load(CHECKPOINT)`` reads it.
    """

    def __init__(
        self,
        curriculum: Given,
        *,
        apply: Apply = apply_config,
        success_key: str | None = None,
        slice_of: SliceOf | None = None,
        checkpoints: CheckpointCallback | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(checkpoints, CheckpointCallback | None):
            raise SpecError(
                f"checkpoints is a {type(checkpoints).__name__}: give stable_baselines3's CheckpointCallback(save_freq, save_path)"
            )
        self.curriculum, self.apply = as_curriculum(curriculum), apply
        self.success_key, self.slice_of = success_key, slice_of
        self.checkpoints = checkpoints
        self.config: Config | None = None  # the last applied config
        self._old_episodes = OldEpisodes(0, reset_later=False)
        self._by_reward = ByReward()

    def load(self, checkpoint: str | Path, renamed: Mapping[str, str] | None = None) -> None:
        """Read the state that was written beside this checkpoint of SB3. Raises ``RunError`` if there is none. ``renamed`` maps slices."""
        path = Path(checkpoint)
        self.curriculum.load(beside(path.with_suffix("") if path.suffix == ".zip" else path), renamed)

    def _init_callback(self) -> None:
        if self.checkpoints is not None:
            self.checkpoints.init_callback(self.model)

    def _on_training_start(self) -> None:
        """The configs must fit the spaces, and training continues with the curriculum's current config."""
        self._look_at_its_kin()
        attached(self.curriculum, self.training_env, self.apply)
        if self.checkpoints is not None:
            self.checkpoints.on_training_start(self.locals, self.globals)
        copies = self.training_env.num_envs // self._rows
        if self._old_episodes.copies != copies:
            self._old_episodes = OldEpisodes(copies, reset_later=False)
            self._old_episodes.begun()  # SB3 resets before it announces the start of training
        config = self.curriculum.config
        if config is not None:
            self._swap(config, in_force=self._plays(config))

    def _look_at_its_kin(self) -> None:
        """Refuse what would run twice in this ``learn``, and tell of checkpoints without the curriculum's state."""
        callbacks = list(_all_of(self.locals.get("callback", self)))  # its own name of what `learn` was given
        following = [one for one in callbacks if isinstance(one, SB3CurriculumCallback)]
        if sum(one.curriculum is self.curriculum for one in following) > 1:
            raise SpecError(
                "episodes would count twice, as learn() was given two of SB3CurriculumCallback on one curriculum: leave one of them out"
            )
        saves = [one for one in callbacks if isinstance(one, CheckpointCallback)]
        if any(one is self.checkpoints for one in saves):
            raise SpecError(
                "this CheckpointCallback would run twice a step, as it is in the list of callbacks, too: give it to "
                "SB3CurriculumCallback alone"
            )
        if saves and self.checkpoints is None:
            warn(
                "the CheckpointCallback in the list saves no state of the curriculum: give it as SB3CurriculumCallback(…, checkpoints=…) instead"
            )

    def _on_step(self) -> bool:
        infos, rewards = self.locals["infos"], self.locals["rewards"]
        dones = self.locals["dones"].astype(bool)  # some environments tell 0 and 1
        rows = self._rows
        self.curriculum.advance(steps=self._old_episodes.copies)
        if self._by_reward.looks:
            self._by_reward.saw(rewards[~dones])
        for row in (self._old_episodes.ended(dones[::rows]) * rows).tolist():
            self.curriculum.observe(self._outcome(infos[row], rewards[row]))
        config = self.curriculum.next()
        if config is not None:
            self._swap(config)
        return self.checkpoints is None or self._checkpoint(self.checkpoints)

    def _outcome(self, info: dict[str, Any], reward: Any) -> Outcome:
        in_time = not info.get("TimeLimit.truncated", False)
        return outcome_of(info, lambda: self._by_reward.won(in_time, reward), self.success_key, self.slice_of)

    def _checkpoint(self, checkpoints: CheckpointCallback) -> bool:
        goes_on = checkpoints.on_step()
        if checkpoints.n_calls % checkpoints.save_freq == 0:
            name = f"{checkpoints.name_prefix}_{checkpoints.num_timesteps}_steps"
            self.curriculum.save(beside(Path(checkpoints.save_path) / name))
        return goes_on

    def _on_rollout_end(self) -> None:
        self.curriculum.advance(iterations=1)
        metrics = self.curriculum.metrics()
        shown = Counter(name[:CUT] for name in metrics)
        for name, value in metrics.items():
            self.logger.record(f"curriculum/{name}", value, exclude="stdout" if shown[name[:CUT]] > 1 else None)

    def _on_training_end(self) -> None:
        self.curriculum.training_ended()

    @property
    def _rows(self) -> int:
        """The number of the training env's rows that belong to one episode."""
        return getattr(self.training_env, "rows_per_lake", 1)

    def _plays(self, config: Config) -> bool:
        """Whether the running episodes began with this config, if the env shows it."""
        if self.apply is not apply_config:
            return False
        try:
            return config_below(self.training_env) == config
        except TypeError:
            return False

    def _swap(self, config: Config, *, in_force: bool = False) -> None:
        with applying(config, self.curriculum):
            self.apply(self.training_env, config)
        self.config = config
        if not in_force:
            self._old_episodes.swapped()


def _all_of(callback: BaseCallback) -> Iterator[BaseCallback]:
    """This callback and those that it runs, in SB3's lists and at its events."""
    yield callback
    children = [*getattr(callback, "callbacks", []), getattr(callback, "callback", None)]
    for child in children:
        if isinstance(child, BaseCallback):
            yield from _all_of(child)


def beside(checkpoint: Path) -> Path:
    """The file of the curriculum's state beside a checkpoint."""
    return checkpoint.with_name(f"{checkpoint.name}.curriculum.json")
