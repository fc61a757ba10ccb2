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
    """Tells ``curriculum`` of the training episodes that end, and gives the config that it returns to the training env.

    ``model.learn(steps, callback=SB3CurriculumCallback(Ladder(configs)))``. Each env takes a new config at its next reset;
    weights, optimiser and spaces are not touched, nor are other callbacks' evaluation envs. Any ``VecEnv`` whose envs have
    ``set_config`` will do, ``mfl.sb3_vec_env`` and SB3's own, under any wrappers; for others give
    ``apply=lambda vec_env, config: …``. Where a lake has a row for each agent, it is heard of once. Of an episode that began
    before a swap nothing is heard: it says nothing of the config in force. An episode counts as a success by what its info says
    under ``success_key``; without one by ``info["is_success"]``, which is what SB3 shows, or else by having ended, not at a time
    limit, with a reward above 0. The suites count ``success_key="valid"``.
    """

    def __init__(self, curriculum: Curriculum, *, apply: Apply = apply_config, success_key: str | None = None) -> None:
        super().__init__()
        self.success_key = success_key
        self.curriculum, self.apply = curriculum, apply
        self.config: Config | None = None  # the one last applied
        self._old_episodes = OldEpisodes(0, reset_later=False)

    def _on_training_start(self) -> None:
        """A Ladder's configs must have room, and training goes on with the one that it stands on."""
        raise_unless_all_fit(self.training_env, self.curriculum, self.apply)
        copies = self.training_env.num_envs // self._rows
        if self._old_episodes.copies != copies:
            self._old_episodes = OldEpisodes(copies, reset_later=False)
            self._old_episodes.begun()  # SB3 resets before it says that training starts
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
        """How many rows of the training env stand for one episode."""
        return getattr(self.training_env, "rows_per_lake", 1)

    def _plays(self, config: Config) -> bool:
        """Whether the running episodes began with this config, as far as can be seen."""
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
