"""The common part of the Gymnasium and the PettingZoo interface: one lake, its config and its rendering."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.envs.options import as_config
from mapf_frozenlake.envs.show import Recorder
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import Instance
from mapf_frozenlake.world.batch import LakeBatch
from mapf_frozenlake.world.snapshot import Snapshot


def env_kwargs_of(batch: LakeBatch) -> dict[str, Any]:
    """Arguments of environments with the same observations."""
    return {
        "observation": batch.observation_name,
        "dtype": batch.dtype,
        "max_size": batch.max_size,
        "max_agents": batch.max_agents,
        "window": batch.layout.window,
        "hints": batch.layout.hints,
    }


class TakesConfigs:
    """The config of a batch, which may change between episodes."""

    batch: LakeBatch

    def set_config(self, config: LakeConfig | Mapping[str, Any]) -> None:
        """Use this config from each lake's next reset on; the spaces stay."""
        self.batch.set_config(as_config(config))

    def get_config(self) -> LakeConfig:
        return self.batch.get_config()

    set_task, get_task = set_config, get_config  # RLlib's names


class OneLake(TakesConfigs):
    """Make a batch of one, and a recorder if there is a render_mode."""

    _recorder: Recorder | None

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """Arguments of environments with the same observations."""
        return env_kwargs_of(self.batch)

    @property
    def positions(self) -> NDArray:
        """int16[A, 2]: row, col of every agent; -1 in empty slots."""
        return self.batch.positions[0]

    @property
    def goals(self) -> NDArray:
        """int16[A, 2]: row, col of every goal; -1 in empty slots."""
        return self.batch.goals[0]

    @property
    def instance(self) -> Instance:
        """The board of the running episode, with its least makespan if that is certified."""
        return self.batch.instance(0)

    def snapshot(self, actions: NDArray | None = None) -> Snapshot:
        """The current state of the lake."""
        return self.batch.snapshot(0, actions)

    def render(self) -> Any:
        """The lake as text or as uint8[height, width, 3]; None in a window."""
        if self._recorder is None:
            raise LakeError("render_mode=None: make the env with render_mode='ansi', 'rgb_array' or 'human' to render")
        return self._recorder.frame()

    def save_animation(self, path: str | Path) -> Path:
        """Write the episode so far as an animation, .gif or .svg by the path's suffix; returns the path. Needs a render_mode."""
        if self._recorder is None:
            raise LakeError("render_mode=None: make the env with a render_mode, which records the episode")
        return self._recorder.save(path)

    def close(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
