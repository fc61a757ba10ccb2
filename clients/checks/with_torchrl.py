# /// script
# dependencies = ["torchrl"]
# [tool.client]
# title = "TorchRL"
# how = '`GymEnv("MAPFFrozenLake-v0")`; `PettingZooWrapper(mfl.parallel_env(fixed_roster=True), use_mask=False)`'
# ///
"""TorchRL's spec checks, rollouts and one training step."""

import torch
from tensordict.nn import TensorDictModule
from torchrl.envs import GymEnv, PettingZooWrapper
from torchrl.envs.utils import check_env_specs
from torchrl.modules import OneHotCategorical, ProbabilisticActor

import mapf_frozenlake as mfl

PACKAGES = ["torchrl", "torch"]


def check_gym_env():
    """`GymEnv`: `check_env_specs`, rollouts; an actor trains on `discrete`"""
    check_env_specs(GymEnv("MAPFFrozenLake-v0", size=4, num_agents=2))
    env = GymEnv("MAPFFrozenLake-v0", size=3, num_agents=1, discrete=True, flat=True, reward="shaped")
    check_env_specs(env)
    network = torch.nn.Linear(env.observation_spec["observation"].shape[-1], 5)
    actor = ProbabilisticActor(
        TensorDictModule(network, ["observation"], ["logits"]), in_keys=["logits"], distribution_class=OneHotCategorical,
        return_log_prob=True,
    )  # fmt: skip
    before = network.weight.detach().clone()
    optimizer = torch.optim.Adam(actor.parameters(), lr=0.01)
    for _ in range(3):
        played = env.rollout(20, actor)
        chosen = actor.get_dist(played).log_prob(played["action"])
        loss = -(chosen * played["next", "reward"].sum()).mean() - 0.1 * actor.get_dist(played).entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert not torch.equal(before, network.weight)


def check_pettingzoo():
    """`PettingZooWrapper` on one crowd and, by `fixed_roster`, on one that varies; masks by `use_mask`"""
    for kwargs in ({"num_agents": 2}, {"num_agents": {1: 1, 3: 1}, "fixed_roster": True}):
        env = PettingZooWrapper(mfl.parallel_env(size=4, **kwargs), use_mask=False)
        check_env_specs(env)
        for _ in range(5):
            env.rollout(30)
        masked = PettingZooWrapper(mfl.parallel_env(size=4, **kwargs), use_mask=True)
        for _ in range(5):
            masked.rollout(30)


if __name__ == "__main__":
    import _checks

    _checks.run(globals())
