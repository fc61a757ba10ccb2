"""``PrimeTaskSampler``: a curriculum as prime-rl's ``TaskSampler``, which chooses an environment's next task and observes its groups.

The methods are those of ``TaskSampler`` in prime-rl (orchestrator/curriculum/samplers; read at commit 114f3ca, its ``Curriculum`` at
0c771bb). prime-rl samples finite tasksets whose tasks have keys. So a curriculum turns shares alone here: a config with other changes does not
fit the tasks and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel

from engineers.knobs import changes, find_knobs
from engineers.roles import find_slices, shares_in
from envtuning.curriculum.curriculum import Config, Curriculum, as_curriculum
from envtuning.curriculum.slices import Slices
from envtuning.errors import SpecError
from envtuning.outcomes import Outcome

LOST = 3  # later groups of a task, after which one is taken for lost: prime-rl does not report groups that it has cancelled


class PrimeTaskSampler(Iterator[Any]):
    """Draws a slice by the shares of ``curriculum.config``, and a task of that slice; reports each rollout's reward.

    ``slice_of`` names a task's slice (``mapf-lake``'s tasks have it in their data). The score is the reward, cut to 0 to 1; a
    rollout is a success if ``success(reward)``. A group whose task was drawn under an earlier config does not count. A group does not say
    which draw of its task it is: so no group of a task counts while one of an earlier config is under way, until three later ones have come.
    """

    def __init__(
        self,
        curriculum: Curriculum,
        tasks: Sequence[Any],
        *,
        slice_of: Callable[[Any], str] = lambda task: task.data.slice,
        success: Callable[[float], bool] = lambda reward: reward >= 1,
        seed: int = 0,
    ) -> None:
        if not isinstance(tasks, Sequence):
            raise SpecError(
                f"PrimeTaskSampler needs a finite list of tasks, and this is a {type(tasks).__name__}: give list(tasks), for mapf-lake with tasks=N"
            )
        if not tasks:
            raise SpecError("PrimeTaskSampler needs a task at least: for mapf-lake, set tasks=N")
        self.curriculum, self.success = as_curriculum(curriculum), success
        self.curriculum.raise_unless_counted(("episodes", "iterations"))
        if not isinstance(self.curriculum.config, BaseModel):
            raise SpecError(
                f"a {type(self.curriculum).__name__} has no shares by which tasks are drawn: give an EngineerCurriculum, or a sampler such as "
                "Learnability"
            )
        self.slices: dict[str, str] = {task.key: slice_of(task) for task in tasks}
        if len(self.slices) < len(tasks):
            raise SpecError("two tasks have one key: give every task of the set a key of its own")
        self.tasks: dict[str, list[Any]] = {}
        for task in tasks:
            self.tasks.setdefault(slice_of(task), []).append(task)
        known = Slices(self.curriculum.config)
        known.raise_unless_known(self.tasks, "pass slice_of=lambda task: …, which names one of these")
        self._first = self.curriculum.config
        self._rng = np.random.default_rng(seed)
        self._drawn: dict[str, list[int]] = {}  # by task: the versions of the configs of its draws that are under way
        self._late: dict[str, int] = {}  # by task: groups that may have come before one of an earlier config
        self.curriculum.attach(self._raise_unless_shares_alone)

    def _raise_unless_shares_alone(self, config: Config) -> None:
        pieces = find_slices(find_knobs(config, ("*",)))
        shares = {piece.share.path for piece in pieces if piece.share is not None}
        others = [".".join(path) for path, *_ in changes(self._first, config) if path not in shares]
        if others:
            raise SpecError(f"{others[0]} differs, and the tasks are those of the first config: turn shares alone")
        parts = shares_in(config)
        if not any(parts.get(name, 0) for name in self.tasks):
            raise SpecError(f"no slice with tasks has a share: the tasks are of {', '.join(self.tasks)}")

    def __next__(self) -> Any:
        config = self.curriculum.config
        parts = shares_in(config)
        names = [name for name in self.tasks if parts.get(name, 0) > 0]
        weights = np.array([parts[name] for name in names])
        tasks = self.tasks[names[self._rng.choice(len(names), p=weights / weights.sum())]]
        task = tasks[self._rng.integers(len(tasks))]
        self._drawn.setdefault(task.key, []).append(self.curriculum.version)
        return task

    def observe(self, group: Sequence[Any]) -> None:
        """Count a finished group, and take the curriculum's next config if it is time."""
        key = group[0].task.key
        if self._is_of_config_in_force(key):
            for number, trace in enumerate(_counted(group)):
                success, score = bool(self.success(trace.reward)), min(max(float(trace.reward), 0.0), 1.0)
                self.curriculum.observe(Outcome(self.slices[key], success, score, further=number > 0))
        self.curriculum.advance(iterations=1)
        self.curriculum.next()

    def _is_of_config_in_force(self, key: str) -> bool:
        """Of a task whose group has come. If it is out several times, its latest draw is taken for that of this group."""
        drawn, late, now = self._drawn.pop(key, []), self._late.pop(key, 0), self.curriculum.version
        if not drawn:
            return False
        earliest, latest = drawn[0], drawn.pop()
        late += earliest != now == latest
        if late == LOST:
            drawn, late = [version for version in drawn if version == now], 0
        if drawn:
            self._drawn[key], self._late[key] = drawn, late
        return earliest == now

    def state_dict(self) -> dict[str, Any]:
        return {
            "curriculum": self.curriculum.state_dict(),
            "rng": self._rng.bit_generator.state,
            "drawn": {key: list(versions) for key, versions in self._drawn.items()},
            "late": dict(self._late),
        }

    def load_state_dict(self, state_dict: dict[str, Any], renamed: Mapping[str, str] | None = None) -> None:
        rng = np.random.default_rng()
        rng.bit_generator.state = state_dict["rng"]
        drawn = {key: list(versions) for key, versions in state_dict["drawn"].items() if key in self.slices}
        late = dict(state_dict["late"])
        self.curriculum.load_state_dict(state_dict["curriculum"], renamed)  # last: a refused state has changed nothing
        self._rng, self._drawn, self._late = rng, drawn, late

    def metrics(self) -> dict[str, float]:
        return self.curriculum.metrics()


def _counted(group: Sequence[Any]) -> Iterator[Any]:
    """The traces that prime-rl's own samplers count. Its older versions know neither ``ok`` nor ``num_turns``."""
    for episode in group:
        for trace in episode.traces if getattr(episode, "ok", True) else ():
            if not trace.has_error and trace.agent.trainable and getattr(trace, "num_turns", 1) > 0:
                yield trace
