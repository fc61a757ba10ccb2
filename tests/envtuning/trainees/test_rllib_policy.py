"""``rllib_policy``: what an Algorithm's module infers is what ``evaluate`` plays, with one controller and with an agent's own policy."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import mapf_frozenlake as mfl
from tests.lazily import Lazy, needed

needed("ray", "torch", extra="rllib")
pytestmark = pytest.mark.ray
ppo, lakes, torch = (Lazy(name) for name in ("ray.rllib.algorithms.ppo", "envtuning.worlds.lakes.rllib_envs", "torch"))

CONFIG = mfl.LakeConfig.single(4, 2, horizon=6)
BOARDS = mfl.generate(CONFIG, n=6, seed=2)
ROOM = {"config": CONFIG, "max_size": 5, "window": 3, "hints": True}
FORMS = {
    "lakes": {},
    "lake-agents": {"policies": {"shared"}, "policy_mapping_fn": lambda agent, episode, **_: "shared"},
    "lake-pettingzoo": {"policies": {"shared"}, "policy_mapping_fn": lambda agent, episode, **_: "shared"},
}


def trained(form: str):
    lakes.register_lakes()
    settings = ppo.PPOConfig().environment(form, env_config=ROOM).env_runners(num_env_runners=0)
    settings = settings.training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
    if FORMS[form]:
        settings = settings.multi_agent(**FORMS[form])
    algorithm = settings.debugging(log_level="ERROR", seed=0).build_algo()
    algorithm.train()
    return algorithm


@pytest.mark.parametrize("form", FORMS)
def test_it_plays_the_boards_as_the_module_does_in_an_env_of_its_own(ray_session, form):
    algorithm = trained(form)
    name = "shared" if FORMS[form] else "default_policy"
    table = mfl.evaluate(mfl.rllib_policy(algorithm, name), BOARDS, config=CONFIG)
    assert table.name == "PPO"
    env, module = gym.make("MAPFFrozenLake-v0", **ROOM), algorithm.get_module(name)
    for board, record in zip(BOARDS, table.per_instance, strict=True):
        seen, _ = env.reset(options={"instance": board})
        over, made = False, []
        while not over:
            rows = torch.as_tensor(np.asarray(seen, np.float32).reshape(-1, *module.observation_space.shape))
            logits = module.forward_inference({"obs": rows})["action_dist_inputs"]
            action = (
                logits.reshape(env.unwrapped.batch.max_agents, 5).argmax(-1).numpy()
            )  # the likeliest, agent by agent
            made.append(action)
            seen, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        assert np.array(record.plan).T[: len(made)].tolist() == [a[:2].tolist() for a in made]
        assert record.valid == info["valid"]
    sampled = mfl.rllib_policy(algorithm, name, deterministic=False)
    torch.manual_seed(0)
    assert (
        len({tuple(map(tuple, mfl.evaluate(sampled, BOARDS, config=CONFIG).per_instance[0].plan)) for _ in range(5)})
        > 1
    )
    if FORMS[form]:  # an Algorithm with one policy has it under any name
        with pytest.raises(mfl.LakeError, match=r"no policy 'banana': name one"):
            mfl.rllib_policy(algorithm, "banana")
    algorithm.stop()
