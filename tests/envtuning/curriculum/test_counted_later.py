"""A vector environment's episodes are kept in arrays and summed later: the same as to count each one at once."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given
from hypothesis import strategies as st

from envtuning import CurriculumVectorEnv
from envtuning.curriculum.curriculum import Curriculum
from envtuning.curriculum.engineer_curriculum import EngineerCurriculum
from envtuning.outcomes import Outcome
from tests.envtuning.curriculum.test_engineer_curriculum import Stub, Tasks

COPIES = 6
ENDING = st.tuples(
    st.integers(0, COPIES - 1), st.sampled_from(["easy", "middle", "hard"]), st.booleans(), st.integers(0, 8)
)
STEPS = st.lists(
    st.tuples(
        st.lists(ENDING, max_size=COPIES, unique_by=lambda one: one[0]), st.sampled_from(["", "", "read", "save"])
    ),
    max_size=40,
)


class Scripted(gym.vector.VectorEnv):
    """Ends the episodes that a test says, and takes every config."""

    num_envs = COPIES
    single_observation_space = single_action_space = gym.spaces.Discrete(2)

    def __init__(self, mode: AutoresetMode) -> None:
        self.metadata = {"autoreset_mode": mode}
        self.ending: dict[int, tuple[str, bool, float]] = {}

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        return np.zeros(COPIES, int), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        nothing, over = np.zeros(COPIES), np.zeros(COPIES, bool)
        over[list(self.ending)] = True
        infos: dict[str, Any] = {"slice": np.full(COPIES, None, object), "is_success": over & False, "score": nothing}
        for copy, (name, success, score) in self.ending.items():
            infos["slice"][copy], infos["is_success"][copy], infos["score"][copy] = name, success, score
        infos |= dict.fromkeys(("_slice", "_is_success", "_score"), over)
        if self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            infos = {"final_info": infos, "_final_info": over}
        return np.zeros(COPIES, int), nothing, over, over & False, infos

    def set_config(self, config: Any) -> None:
        pass


def looked_at(curriculum: Curriculum, look: str) -> None:
    if look == "read":
        curriculum.metrics()
    if look == "save":
        curriculum.load_state_dict(json.loads(json.dumps(curriculum.state_dict())))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@given(STEPS)
def test_episodes_that_are_summed_later_count_as_if_each_were_counted_at_once(mode, steps):
    """Only those that began on the config in force count, also those that end in a swap's own step. Scores are multiples of 1/8, whose
    sums are exact in any order. Halves are left out: a whole step belongs to one half.
    """
    later, at_once = (EngineerCurriculum(Stub(), Tasks(), every=10) for _ in range(2))
    env = Scripted(mode)
    envs = CurriculumVectorEnv(env, later)
    envs.reset()
    begun = [0] * COPIES  # the version of the config on which each copy's episode began
    resting: set[int] = set()  # copies that this step only resets
    for endings, look in steps:
        env.ending = {copy: (name, won, score / 8) for copy, name, won, score in endings if copy not in resting}
        envs.step(np.zeros(COPIES, int))
        before = at_once.version
        for copy, (name, won, score) in env.ending.items():
            if begun[copy] == before:
                at_once.observe(Outcome(name, won, score))
        at_once.next()
        same_step = mode is AutoresetMode.SAME_STEP
        for copy in env.ending:
            begun[copy] = before if same_step else at_once.version
        resting = set() if same_step else set(env.ending)
        looked_at(later, look)
        assert (later.version, later.config, later.stage) == (at_once.version, at_once.config, at_once.stage)
        if look:
            assert later.metrics() == at_once.metrics()
    assert envs.get_config() == at_once.config
    assert without_halves(later) == without_halves(at_once)


def without_halves(curriculum: EngineerCurriculum) -> dict[str, Any]:
    state = curriculum.state_dict()
    del state["halves"]
    for stage in state["history"]:
        for row in stage["training_results"]:
            del row["halves"]
    return state | {
        "metrics": curriculum.metrics(),
        "rows": [row.model_dump(exclude={"halves"}) for row in curriculum.report.training_results],
    }
