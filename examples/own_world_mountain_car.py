"""Your own world, on one of Gymnasium's environments with physical knobs: a car too weak for the hill must rock itself up.

python examples/own_world_mountain_car.py --engineer rules    # two minutes; then look at the page that it names
envtuning run examples/own_world_mountain_car.yaml --trust examples   # the same from the command line
"""

import argparse
from pathlib import Path

import gymnasium as gym
import numpy as np
from pydantic import BaseModel, Field

from envtuning.loop import start
from envtuning.runs.spec import load_spec
from envtuning.show.page import write_page
from envtuning.worlds.gym_world import GymWorld
from envtuning.worlds.world import About


class Hill(BaseModel):
    share: float = Field(1.0, ge=0, le=1, description="Part of the data.")
    power: float = Field(1.0, ge=0.5, le=4, description="Of the engine; 1, Gymnasium's, can't drive straight up.")
    gravity: float = Field(1.0, ge=0.5, le=1.2, description="1 is Gymnasium's.")


class HillsConfig(BaseModel):
    hills: dict[int, Hill] = Field(description="By the height of the flag, in percent of Gymnasium's.")


class HillsWorld(GymWorld[HillsConfig]):
    config_type = HillsConfig
    about = About(
        name="hills",
        environment="A car in a valley must reach the flag on the right slope within 200 steps. Where its engine is too weak "
        "to drive straight up, it has to swing: back up the left slope first. There is no reward before the flag.",
        legend="Success: the car reached the flag in time.",
        slice_label="flag at {} %",
    )

    def make(self, config: HillsConfig, slice: str) -> gym.Env:
        hill, env = config.hills[int(slice)], gym.make("MountainCar-v0")
        car = env.unwrapped
        car.force *= hill.power
        car.gravity *= hill.gravity
        car.goal_position = -0.5 + int(slice) / 100  # the valley's lowest point is at -0.5
        return gym.wrappers.RescaleObservation(
            env, np.float32(-1), np.float32(1)
        )  # position and velocity differ by a factor of 17

    def success(self, reward: float, terminated: bool, info: object) -> bool:
        return terminated  # only the flag ends an episode before its time


def main(engineer: str = "rules", out: str = "runs/hills", stages: int | None = None, **changes: object) -> Path:
    spec = load_spec(Path(__file__).with_suffix(".yaml"), changes={"engineer.name": engineer} | changes)
    run = start(spec if stages is None else spec.with_rounds(stages), out)
    for row in run.state.test.last if run.state.test else []:
        print(f"flag at {row.name} %: {row.metrics['success_rate']:.0%} of {row.episodes} test episodes")
    return write_page([run.path], run.path / "report.html")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engineer", default="rules")
    parser.add_argument("--out", default="runs/hills")
    print("page:", main(**vars(parser.parse_args())))
