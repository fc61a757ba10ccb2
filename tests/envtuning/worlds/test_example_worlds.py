"""The examples of one's own world keep what the loop counts on, run shortened, and are short. MiniGrid's needs `make worlds`."""

from __future__ import annotations

import inspect
import re
from html import escape
from importlib import import_module
from pathlib import Path

import pytest

from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import load_spec
from envtuning.testing import check_world

pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install 'mapf-frozenlake[sb3]'")

EXAMPLES = Path(__file__).parents[3] / "examples"
WORLDS_PAGE = EXAMPLES.parent / "docs" / "worlds.md"
SHORT = {f"suites.{name}_per_slice": 4 for name in ("validation", "test", "probe")} | {"trainee.options.num_envs": 4}


@pytest.fixture(params=["mountain_car", "minigrid"])
def example(request):
    if request.param == "minigrid":
        pytest.importorskip("minigrid", reason="minigrid has an environment of its own: make worlds")
    return import_module(f"examples.own_world_{request.param}")


def test_it_keeps_what_the_loop_counts_on(example):
    plan = Plan.of(load_spec(EXAMPLES / f"{example.__name__.rpartition('.')[2]}.yaml"))
    for config in plan.written:
        check_world(plan.world, config)


def test_it_takes_at_most_sixty_lines(example):
    """The config's models and the world: what a user writes."""
    own = [thing for thing in vars(example).values() if inspect.isclass(thing) and thing.__module__ == example.__name__]
    lines = [line for thing in own for line in inspect.getsource(thing).splitlines() if line.strip()]
    assert len(own) == 3
    assert len(lines) <= 60


def test_the_page_shows_the_whole_minigrid_example():
    """Its models and its world as they stand in the file, below imports of the file; runs where MiniGrid is not installed."""
    source = (EXAMPLES / "own_world_minigrid.py").read_text(encoding="utf-8")
    shown = re.findall(r"```python\n(.*?)```", WORLDS_PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    imports, own = re.fullmatch(r"(.*?)\n\n\n(class Room.*)", shown, re.DOTALL).groups()
    assert own.strip() == source[source.index("class Room(") : source.index("def main(")].strip()
    assert set(imports.splitlines()) <= set(source.splitlines())
    assert len([line for line in own.splitlines() if line.strip()]) <= 60


def test_the_pages_python_runs():
    pytest.importorskip("minigrid", reason="minigrid has an environment of its own: make worlds")
    namespace: dict = {}
    for block in re.findall(r"```python\n(.*?)```", WORLDS_PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, "docs/worlds.md", "exec"), namespace)


def test_the_pages_own_score_is_that_of_every_training_episode():
    """Of two cars that miss the flag, the one that came nearer scores more."""
    shown = re.findall(r"```python\n(.*?)```", WORLDS_PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = [one for one in shown if "score_in_words" in one]
    namespace: dict = {}
    exec(compile(block, "docs/worlds.md", "exec"), namespace)
    world = namespace["ScoredHills"]()
    config = world.config_type(hills={100: {}})
    check_world(world, config)
    env = world.make_env(config, exclude=(), capacity=world.capacity([config]), seed=0)

    def outcome(act):
        observation, _ = env.reset(seed=1)
        ended = False
        while not ended:
            observation, _, terminated, truncated, info = env.step(act(observation))
            ended = terminated or truncated
        return world.outcome(info)

    standing, pushing = outcome(lambda seen: 1), outcome(lambda seen: 2)
    swinging = outcome(lambda seen: 2 if seen[1] > 0 else 0)
    assert [one.success for one in (standing, pushing, swinging)] == [False, False, True]
    assert 0 <= standing.score < pushing.score < swinging.score == 1
    assert world.about.score_in_words


def test_it_runs_and_has_a_page(example, tmp_path):
    budgets = {f"stages.{number}.budget": 4_000 for number in range(2)}
    page = example.main("uniform", str(tmp_path / "run"), stages=2, **SHORT, **budgets)
    run = RunLog.open(tmp_path / "run")
    assert len(run.state.done) == 2
    assert not run.state.incidents()
    text = page.read_text()
    assert run.plan.world.about.label(run.state.test.last[0].name) in text
    assert "gradient norm" not in text  # Stable-Baselines3 tells none: the loss is drawn
    assert "<h4>loss in training</h4>" in text
    cases = run.state.done[-1].report.failure_cases
    assert ("Failed" in text) == bool(cases)
    assert all(escape(case.explanation) in text for case in cases)  # a world without films shows them in words


def test_minigrids_failures_are_shown_as_pictures():
    pytest.importorskip("minigrid", reason="minigrid has an environment of its own: make worlds")
    example = import_module("examples.own_world_minigrid")
    world, config = example.LavaWorld(), example.RoomsConfig(rooms={9: {"rivers": 2}})
    cases = world.draw(config, 3, seed=0, purpose="validation", exclude=())

    class Forward:
        def act(self, observations):
            return [2] * len(observations)

    episodes = world.play(Forward(), cases, config, seed=0)
    assert {episode.failure for episode in episodes} <= {"failed", "out_of_time"}
    shown = world.explain(cases, episodes[0])
    assert len(shown.picture.splitlines()) == 9
    assert "WG" in shown.picture
