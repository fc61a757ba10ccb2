"""``SB3CurriculumCallback``: swap the config under any Stable-Baselines3 algorithm, from the episodes that end."""

from __future__ import annotations

from envtuning.curriculum.wrappers import (
    Apply,
    Config,
    Curriculum,
    OldEpisodes,
    apply_config,
    config_below,
    first_config,
    raise_unless_all_fit,
    succeeded,
)
from envtuning.extras import needs

try:
    from stable_baselines3.common.callbacks import BaseCallback
except ImportError as error:
    raise needs("SB3CurriculumCallback", error, extra="sb3") from None


class SB3CurriculumCallback(BaseCallback):
    """Reports finished training episodes to ``curriculum``, and gives the config that it returns to the training env.

    ``model.learn(steps, callback=SB3CurriculumCallback(Ladder(configs)))``. Each env takes a new config at its next reset;
    weights, optimiser and spaces are not touched, nor are other callbacks' evaluation envs. It works with any ``VecEnv`` whose envs
    have ``set_config`` (``mfl.sb3_vec_env`` or one of SB3's own), under any wrappers; for others pass
    ``apply=lambda vec_env, config: …``. A lake with a row for each agent counts once. Episodes that began before a swap do not
    count, because they ran on an earlier config. An episode is a success by its info's entry ``success_key``; without a key by
    ``info["is_success"]``, as SB3 shows it, or else if it terminated (not by a time limit) with a reward above 0. The suites count
    ``success_key="valid"``.
    """

    def __init__(self, curriculum: Curriculum, *, apply: Apply = apply_config, success_key: str | None = None) -> None:
        super().__init__()
        self.success_key = success_key
        self.curriculum, self.apply = curriculum, apply
        self.config: Config | None = None  # the last applied config
        self._old_episodes = OldEpisodes(0, reset_later=False)

    def _on_training_start(self) -> None:
        """A Ladder's configs must fit the spaces, and training continues with its current config."""
        raise_unless_all_fit(self.training_env, self.curriculum, self.apply)
        copies = self.training_env.num_envs // self._rows
        if self._old_episodes.copies != copies:
            self._old_episodes = OldEpisodes(copies, reset_later=False)
            self._old_episodes.begun()  # SB3 resets before it announces the start of training
        config = first_config(self.curriculum)
        if config is not None:
            self._swap(config, in_force=self._plays(config))

    def _on_step(self) -> bool:
        dones, infos, rewards = self.locals["dones"], self.locals["infos"], self.locals["rewards"]
        rows = self._rows

        def success(copy: int) -> bool:
            row = copy * rows
            arrived = rewards[row] > 0 and not infos[row].get("TimeLimit.truncated", False)
            return succeeded(infos[row], bool(arrived), self.success_key)

        config = self._old_episodes.tell(self.curriculum, dones[::rows], success)
        if config is not None:
            self._swap(config)
        return True

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
        self.apply(self.training_env, config)
        self.config = config
        if not in_force:
            self._old_episodes.swapped()
