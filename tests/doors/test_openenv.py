"""A world's text environment behind OpenEnv's interface, session by session; the server and its folder as a client sees them."""

from __future__ import annotations

import json

import gymnasium as gym
import pytest
import yaml
from typer.testing import CliRunner

import mapf_frozenlake as mfl
from envtuning.cli import app as command_line
from envtuning.worlds.lakes.world import LakeWorld
from envtuning.worlds.registry import make_world
from tests.envtuning.gym_worlds import CorridorWorld
from tests.lazily import needed

needed("openenv", extra="openenv")

FIELDS = {"num_agents": 3, "slices": {"5": {"hole_ratio": 0.3}}, "reward": "progress"}


@pytest.fixture
def session():
    from envtuning.openenv.environment import TextEnvironment

    def begin(world=None, **options):
        return TextEnvironment(world or LakeWorld(**options))

    return begin


def reply(text):
    from envtuning.openenv.models import TextAction

    return TextAction(message=text)


@pytest.mark.parametrize("mode", ["plan", "turns"])
def test_an_episode_is_the_one_that_gym_makes(session, mode):
    env = gym.make("MAPFFrozenLakeText-v0", mode=mode, config=mfl.LakeConfig(**FIELDS))
    served = session(mode=mode)
    for seed in (7, 8):
        question, _ = env.reset(seed=seed)
        begun = served.reset(seed=seed, **FIELDS)
        assert (begun.message, begun.done, begun.reward) == (question, False, None)
        said = mfl.format_plan(mfl.solve(mfl.from_text(question)).plan)
        observation, reward, terminated, truncated, info = env.step(said)
        stepped = served.step(reply(said))
        assert (stepped.message, stepped.reward) == (observation, reward)
        assert stepped.done == (terminated or truncated) == (mode == "plan")
        assert stepped.metadata["parse_error"] == info["parse_error"]
        assert json.loads(stepped.model_dump_json())["metadata"] == stepped.metadata


def test_each_reset_says_how_difficult_its_episode_is(session):
    served = session()
    sizes = [mfl.from_text(served.reset(seed=1, **fields).message).height for fields in ({}, FIELDS, {})]
    assert sizes == [4, 5, 4]


def test_the_state_makes_an_episode_again(session):
    served = session()
    first = served.reset(seed=3, episode_id="one", **FIELDS)
    served.step(reply("?"))
    state = served.state
    assert (state.episode_id, state.step_count, state.seed) == ("one", 1, 3)
    assert session().reset(seed=state.seed, **state.config).message == first.message


def test_without_a_seed_a_session_deals_a_sequence_of_its_own(session):
    one, other = session(), session()
    dealt = [[served.reset().message for _ in range(4)] for served in (one, other)]
    assert len({question for questions in dealt for question in questions}) == 8


def test_what_cannot_be_played_is_refused_and_the_session_goes_on(session):
    served = session()
    with pytest.raises(RuntimeError, match="reset"):
        served.step(reply("Agent 0: up"))
    with pytest.raises(ValueError, match=r"'holes'.*num_agents"):
        served.reset(holes=3)
    with pytest.raises(ValueError, match=r"slices\.4\.hole_ratio=7"):
        served.reset(slices={4: {"hole_ratio": 7}})
    with pytest.raises(ValueError, match="num_agents=9"):
        served.reset(num_agents=9)
    served.reset(seed=0)
    assert served.step(reply("?")).done
    with pytest.raises(mfl.LakeError, match="reset"):
        served.step(reply("?"))
    assert not served.reset(seed=0).done


def test_the_server_answers_when_all_is_compiled(monkeypatch):
    from openenv.core.env_server import http_server

    from envtuning.openenv.app import make_app
    from mapf_frozenlake import warmup

    done = []
    steps = [(str(number), lambda number=number: done.append(number)) for number in range(3)]
    monkeypatch.setattr(warmup, "steps", lambda: iter(steps))
    monkeypatch.setattr(http_server, "create_app", lambda *_, **__: list(done))
    assert make_app("lakes") == [0, 1, 2]


def test_a_world_without_words_is_refused(monkeypatch):
    from envtuning.openenv import app

    monkeypatch.setattr(app, "make_world", lambda name: CorridorWorld())
    with pytest.raises(TypeError, match="'corridors'"):
        app.make_app("corridors")


def test_the_folder(tmp_path):
    prepared = {"lakes": "RUN python -m mapf_frozenlake.warmup", "tools": "RUN python -m envtuning.worlds.bfcl install"}
    for world, said in prepared.items():
        made = tmp_path / f"my-{world}"
        ran = CliRunner().invoke(command_line, ["openenv", "export", str(made), "--world", world])
        assert ran.exit_code == 0, ran.output
        assert yaml.safe_load((made / "openenv.yaml").read_text())["name"] == f"my_{world}"
        assert f"make_app('{world}', {{}}, name='my_{world}')" in (made / "server/app.py").read_text()
        assert said in (made / "Dockerfile").read_text()
    again = CliRunner().invoke(command_line, ["openenv", "export", str(made)])
    assert again.exit_code == 1
    assert "my-tools" in again.output


def test_the_folder_of_reasoning_gym_has_its_extra_and_a_compiler(tmp_path, monkeypatch):
    from envtuning.openenv import export

    monkeypatch.setattr(
        export, "make_world", lambda name: make_world("small-skills")
    )  # the tests do without the package
    made = export.export(tmp_path / "sums", "reasoning-gym")
    assert "mapf-frozenlake[openenv,reasoning-gym]>=" in (made / "pyproject.toml").read_text()
    assert "install -y --no-install-recommends curl gcc libc6-dev &&" in (made / "Dockerfile").read_text()


@pytest.mark.slow
def test_64_sessions_of_an_exported_folder():
    from clients.checks import with_openenv

    with_openenv.check_plans()
