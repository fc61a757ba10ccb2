"""An engineer inside your own single-file training script, in CleanRL's manner: the lines marked ← are all it takes.

python examples/own_cleanrl.py --steps 200000    # less than a minute on two cores
"""

import argparse
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from torch import nn

import mapf_frozenlake as mfl
from envtuning import CurriculumVectorEnv, EngineerCurriculum  # ←

START = mfl.LakeConfig(slices={3: {}, 5: {"share": 0}}, num_agents=2, reward="shaped")  # ←
TARGET = mfl.LakeConfig(slices={3: {"share": 0}, 5: {}}, num_agents=2, reward="shaped")  # ←


class Agent(nn.Module):
    """What every agent is, one network for all: a categorical over its moves, and a value."""

    def __init__(self, envs: gym.vector.VectorEnv) -> None:
        super().__init__()
        seen, moves = int(np.prod(envs.single_observation_space.shape)), int(envs.single_action_space.n)
        self.trunk = nn.Sequential(nn.Linear(seen, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
        self.actor, self.critic = nn.Linear(128, moves), nn.Linear(128, 1)

    def forward(self, observation: torch.Tensor) -> tuple[torch.distributions.Categorical, torch.Tensor]:
        embedding = self.trunk(observation)
        return torch.distributions.Categorical(logits=self.actor(embedding)), self.critic(embedding).squeeze(1)


def main(
    steps: int = 200_000, num_lakes: int = 64, rollout: int = 32, seed: int = 0, folder: str | Path | None = None
) -> dict[str, float]:
    torch.manual_seed(seed)
    curriculum = EngineerCurriculum("rules", START, target=TARGET, every=1000)  # ← or "openai/…", "local/…"
    envs = mfl.parallel_vec_env(num_lakes, config=START, max_size=5, window=5)  # in place of SyncVectorEnv
    envs = CurriculumVectorEnv(envs, curriculum)  # ← each lake follows at its next reset
    agent = Agent(envs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
    if folder is not None and (Path(folder) / "agent.pt").exists():  # the weights and the curriculum go on together
        agent.load_state_dict(torch.load(Path(folder) / "agent.pt"))
        curriculum.load(Path(folder) / "curriculum.json")  # before the reset: from there on it is in force
    observation, info = envs.reset(seed=seed)
    for update in range(steps // (envs.num_envs * rollout)):  # a row for every agent of every lake
        data = []
        for _ in range(rollout):
            seen = torch.from_numpy(observation)
            with torch.no_grad():
                chances, value = agent(seen)
            action = chances.sample()
            active = info["active"]  # of the lake that acts now: False in the rows of empty slots
            observation, reward, terminated, truncated, info = envs.step(action.numpy())
            ended, counts = terminated | truncated, info["moved"] & active  # the step after an end only resets
            data.append([seen, action, chances.log_prob(action), value, reward, terminated, ended, counts])
        with torch.no_grad():
            learn(agent, optimizer, data, agent(torch.from_numpy(observation))[1])
        if update % 10 == 0:
            print(f"after {update} updates", curriculum.metrics(), flush=True)
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        torch.save(agent.state_dict(), Path(folder) / "agent.pt")
        curriculum.save(Path(folder) / "curriculum.json")
    return curriculum.metrics()


@torch.enable_grad()
def learn(agent: Agent, optimizer: torch.optim.Optimizer, data: list, beyond: torch.Tensor) -> None:
    """PPO: generalised advantages, four passes, clipped ratios."""
    observations, actions, log_probs, values, rewards, terminated, ended, counts = (
        torch.stack([torch.as_tensor(part) for part in column]) for column in zip(*data)
    )
    advantages, later, following = torch.zeros_like(values), torch.zeros_like(beyond), beyond
    for t in reversed(range(len(data))):
        surprise = rewards[t].float() + 0.99 * following * ~terminated[t] - values[t]
        later = surprise + 0.99 * 0.95 * later * ~ended[t]
        advantages[t], following = later, values[t]
    kept = counts.flatten()
    flat = [part.flatten(0, 1)[kept] for part in (observations, actions, log_probs, advantages, advantages + values)]
    flat[3] = (flat[3] - flat[3].mean()) / (flat[3].std() + 1e-6)
    for _ in range(4):
        for rows in torch.randperm(int(kept.sum())).split(512):
            seen, action, before, advantage, target = (part[rows] for part in flat)
            chances, value = agent(seen)
            ratio = (chances.log_prob(action) - before).exp()
            policy_loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            loss = policy_loss + 0.5 * (value - target).square().mean() - 0.01 * chances.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--num-lakes", type=int, default=64)
    parser.add_argument("--folder", help="keep weights and curriculum there, and go on from them")
    main(**vars(parser.parse_args()))
