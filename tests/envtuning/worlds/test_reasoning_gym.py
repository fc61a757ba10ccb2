"""reasoning-gym's datasets as tasks: what is offered keeps a world's promises, and what is not offered is named with the reason."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from engineers.knobs import find_knobs
from envtuning.testing import check_world
from envtuning.worlds import UnknownWorld, make_world
from envtuning.worlds.reasoning_gym import LEFT_OUT, USED, reasoning_gym_world
from envtuning.worlds.text_world import QuestionEnv, ask
from envtuning.worlds.world import InfeasibleConfig
from tests.envtuning.worlds.test_text_world import HOSTILE, PAID

QUICK = ("chain_sum", "spell_backward", "letter_counting", "basic_arithmetic", "syllogism", "caesar_cipher")
EVERY = [*QUICK, *(pytest.param(name, marks=pytest.mark.prove) for name in USED if name not in QUICK)]


@pytest.fixture(scope="module")
def world():
    pytest.importorskip("reasoning_gym", reason="needs reasoning-gym: pip install 'mapf-frozenlake[reasoning-gym]'")
    return reasoning_gym_world()


def config_of(world, **tasks):
    return world.config_type.model_validate({"tasks": tasks})


def highest(task) -> dict[str, int]:
    """The highest level of each knob."""
    knobs = find_knobs(task.knobs())
    return {knob.field: int(knob.bounds[1]) for knob in knobs if knob.field != "share"}


def test_every_dataset_is_offered_or_left_out_with_a_reason(world):
    from reasoning_gym.factory import DATASETS

    assert not set(USED) & LEFT_OUT.keys()
    assert set(USED) | LEFT_OUT.keys() == DATASETS.keys()
    assert len(set(USED)) == len(USED) == len(world.tasks)


@pytest.mark.parametrize("name", EVERY)
def test_a_dataset_keeps_a_world_s_promises(world, name):
    check_world(world, config_of(world, **{name: {}}))


@pytest.mark.parametrize("name", EVERY)
def test_its_own_answer_scores_1_at_every_level_that_can_be_drawn(world, name):
    task = world.tasks[name]
    most = highest(task)
    for level in range(1 + max(most.values(), default=0)):
        knobs = {field: min(level, top) for field, top in most.items()}
        config = config_of(world, **{name: knobs})
        try:
            world.check(config)
        except InfeasibleConfig:
            assert level, "the first level of a curriculum can be drawn"
            continue
        for seed in range(20 if level == 0 else 2):
            asked = ask(task, config.tasks[name], seed)
            assert task.score(asked.answer, asked) == task.score(asked.answer, asked) == 1.0, (level, seed)


@pytest.mark.parametrize("name", EVERY)
def test_no_hostile_reply_keeps_its_scorer_busy_or_is_paid(world, name):
    env = QuestionEnv(world.tasks[name], config_of(world, **{name: {}}).tasks[name])
    env.reset(seed=0)
    for kind, reply in HOSTILE.items():
        begin = time.process_time()
        _, reward, _, _, _ = env.step(reply.replace("{}", env.asked.answer))
        assert time.process_time() - begin < 1.0, kind
        assert (reward == 1.0) == (kind in PAID), kind


def test_a_level_of_its_curriculum_is_a_knob(world):
    [share, terms, digits] = find_knobs(config_of(world, chain_sum={"num_digits": 3}))
    assert (share.field, terms.field, digits.field) == ("share", "num_terms", "num_digits")
    assert terms.bounds == (0, 10)
    assert digits.value == 3
    config = config_of(world, chain_sum={"num_terms": 0, "num_digits": 0})
    easy = [ask(world.tasks["chain_sum"], config.tasks["chain_sum"], seed).question for seed in range(20)]
    assert all(sum(sign.isdigit() for sign in question) <= 6 for question in easy)


def test_the_page_names_every_dataset_that_is_left_out():
    page = (Path(__file__).parents[3] / "docs" / "tasks.md").read_text(encoding="utf-8")
    assert not [name for name in LEFT_OUT if not re.search(rf"\b{name}\b", page)]
    assert f"{len(USED)} of its {len(USED) + len(LEFT_OUT)} datasets" in page


def test_a_share_says_nothing_of_the_questions(world):
    one, other = (config_of(world, chain_sum={"share": share}).tasks["chain_sum"] for share in (0.2, 0.9))
    assert ask(world.tasks["chain_sum"], one, 5).question == ask(world.tasks["chain_sum"], other, 5).question


def test_a_level_that_its_own_check_refuses_is_an_infeasible_config(world):
    task = world.tasks["caesar_cipher"]
    with pytest.raises(InfeasibleConfig):
        world.check(config_of(world, caesar_cipher=highest(task)))


def test_without_the_extra_the_world_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    monkeypatch.setitem(sys.modules, "reasoning_gym.factory", None)
    with pytest.raises(UnknownWorld, match=r"mapf-frozenlake\[reasoning-gym\]"):
        make_world("reasoning-gym")
