"""``EngineeringEnv``: one run at a time, with the report that an engineer would get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from engineers.report import StageReport
from envtuning.dynamics.learners import KINDS, Counts
from envtuning.dynamics.reports import SkillsConfig, Telling
from envtuning.gym.vector import ACTION, OBSERVATION, EngineeringVectorEnv, Observation

FOCUS = ("all", *KINDS)


class EngineeringEnv(gymnasium.Env[Observation, NDArray[np.float32]]):
    """One environment of ``EngineeringVectorEnv``. ``report`` is an engineer's report; ``render`` gives its prompt."""

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  # as gymnasium has it
    observation_space, action_space = OBSERVATION, ACTION

    def __init__(
        self,
        family: str | Sequence[str] = "development",
        outside: bool = False,
        render_mode: str | None = None,
        context: str = "informed",
    ) -> None:
        self.runs = EngineeringVectorEnv(1, family, outside)
        self.render_mode, self.context = render_mode, context
        self.telling: Telling | None = None
        self.stages: list[tuple[SkillsConfig, NDArray[np.int64], NDArray[np.int64]]] = []  # configs, counts, failures

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        observation, _ = self.runs.reset(seed=seed)
        self.telling, self.stages = Telling(self.runs.learners.alone(0)), []
        self._note(self.telling.even())
        return first(observation), {}

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        telling = self._begun()
        if self.runs.ended[0]:
            raise gymnasium.error.ResetNeeded("the run is over: call reset() to begin the next")
        observation, rewards, ended, _, _ = self.runs.step(action[None])
        self._note(config_of(np.asarray(action, dtype=float), telling.names))
        return first(observation), float(rewards[0]), bool(ended[0]), False, {}

    @property
    def report(self) -> StageReport:
        """The report of the last stage, with its history."""
        telling, last = self._begun(), None
        for stage, (config, _, _) in enumerate(self.stages):
            last = telling.report(config, *self._tables(stage), last)
        assert last is not None
        return last

    @property
    def config(self) -> SkillsConfig:
        """The config of the last stage."""
        self._begun()
        return self.stages[-1][0]

    def action(self, config: SkillsConfig) -> NDArray[np.float32]:
        """The action for this config."""
        found = np.full(ACTION.shape, -1.0, np.float32)
        for place, name in enumerate(self._begun().names):
            skill = config.slices[name]
            found[place, 0] = 2 * skill.share - 1
            if skill.focus != "all":
                found[place, 1 + KINDS.index(skill.focus)] = 1.0
        return found

    def render(self) -> str | None:  # type: ignore[override]
        """The prompt for the next config, as a language model would be asked; needs the extra prompt."""
        if self.render_mode != "ansi":
            return None
        from engineers.model.answer_format import AnswerFormat
        from engineers.model.context import context_named
        from engineers.model.prompt import build_prompt

        answer_format = AnswerFormat(self.config, SkillsConfig.editable)
        asked = build_prompt(self.report, answer_format, context_named(self.context))
        return "\n\n".join(message["content"] for message in asked.messages)

    def _begun(self) -> Telling:
        if self.telling is None:
            raise gymnasium.error.ResetNeeded("no run has begun: call reset() first")
        return self.telling

    def _note(self, config: SkillsConfig) -> None:
        here = slice(0, len(self._begun().names))
        self.stages.append((config, self.runs.counts[:, 0, here].copy(), self.runs.failed[0, here].copy()))

    def _tables(self, stage: int) -> tuple[Counts, Counts]:
        """Validation and probe of a stage. Failures are counted together; their division between the two is drawn here, once."""
        _, (cases, validated, probed), failed = self.stages[stage]
        rng = np.random.default_rng([int(self.runs.seeds[0]), int(self.runs.episodes[0]), stage])
        lost = cases - validated
        first = np.array([rng.multivariate_hypergeometric(*pair) for pair in zip(failed, lost, strict=True)])
        return Counts(validated[None], first[None]), Counts(probed[None], (failed - first)[None])


def config_of(action: NDArray[np.floating[Any]], names: Sequence[str]) -> SkillsConfig:
    """The config of an action."""
    shares = np.clip((action[:, 0] + 1) / 2, 0.0, 1.0).tolist()
    focus = [FOCUS[1 + int(kinds.argmax())] if kinds.max() > 0 else FOCUS[0] for kinds in action[:, 1:]]
    return SkillsConfig.model_validate(
        {"slices": {name: {"share": shares[place], "focus": focus[place]} for place, name in enumerate(names)}}
    )


def first(observation: Observation) -> Observation:
    """The value of a batch's only environment."""
    return {name: values[0] for name, values in observation.items()}
