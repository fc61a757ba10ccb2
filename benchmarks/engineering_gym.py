"""Runs of simulated learners that the engineering environment plays in a second: ``python -m benchmarks.engineering_gym``.

CPU time of one core, best of three. Actions are drawn beforehand, so that only the environment is timed.
"""

from __future__ import annotations

import time

import gymnasium

import envtuning.gym
from benchmarks._command import arguments_of, command, record_if_asked

ENVIRONMENTS, STEPS = 256, 200
FAMILIES = ("development", "held-out", "rates", "transfer+causes", "null")


def episodes_a_second(family: str) -> dict[str, float]:
    batch = gymnasium.make_vec(envtuning.gym.ENV_ID, num_envs=ENVIRONMENTS, family=family)
    batch.reset(seed=0)
    actions = [batch.action_space.sample() for _ in range(8)]
    for action in actions:
        batch.step(action)
    found = []
    for _ in range(3):
        began, ended = time.process_time(), 0
        for number in range(STEPS):
            ended += int(batch.step(actions[number % len(actions)])[2].sum())
        took = time.process_time() - began
        found.append({"episodes": ended / took, "stages": ENVIRONMENTS * STEPS / took})
    return max(found, key=lambda one: one["episodes"])


def main() -> None:
    arguments = arguments_of(command(__doc__))
    found = {family: episodes_a_second(family) for family in FAMILIES}
    for family, rates in found.items():
        print(f"{family}: {rates['episodes']:,.0f} episodes and {rates['stages']:,.0f} stages a CPU second")
    record_if_asked(arguments, "engineering_gym", {"environments": ENVIRONMENTS, "per_cpu_second": found})


if __name__ == "__main__":
    main()
