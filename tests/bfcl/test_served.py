"""Tool use behind OpenEnv's interface."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from envtuning.worlds.registry import make_world
from tests.lazily import needed

needed("openenv", extra="openenv")


def test_tool_use_is_served_alike_in_many_threads(v4):
    from envtuning.openenv.environment import TextEnvironment
    from envtuning.openenv.models import TextAction

    world = make_world("tools")
    fields = {"slices": {"base": {}}, "feedback": "augmented", "max_turns": 2}
    config = world.config_type(**fields)

    def play(seed):
        served = TextEnvironment(world)
        first = served.reset(seed=seed, **fields)
        return (
            first.message,
            served.step(TextAction(message="[nothing(x=1)]")).message,
            served.state.config["max_turns"],
        )

    with ThreadPoolExecutor(8) as threads:
        played = list(threads.map(play, range(16)))
    for seed, (first, second, most) in enumerate(played):
        env = world.make_text_env(config, seed=0)
        assert env.reset(seed=seed)[0] == first
        assert env.step("[nothing(x=1)]")[0] == second
        assert most == 2
    assert len({first for first, _, _ in played}) > 4
