"""Your own world, on MiniGrid: cross a room through gaps in rivers of lava, rooms of several sizes.

make worlds                                               # MiniGrid in an environment of its own, and this example's test
python examples/own_world_minigrid.py --engineer rules    # some minutes; then look at the page that it names
"""

import argparse
from pathlib import Path

import gymnasium as gym
import numpy as np
from minigrid.envs.crossing import CrossingEnv
from minigrid.wrappers import ImgObsWrapper
from pydantic import BaseModel, Field

from envtuning.loop import start
from envtuning.runs.spec import load_spec
from envtuning.show.page import write_page
from envtuning.worlds.gym_world import GymWorld
from envtuning.worlds.world import About, InfeasibleConfig


class Room(BaseModel):
    share: float = Field(1.0, ge=0, le=1, description="Part of the data.")
    rivers: int = Field(1, ge=0, le=4, description="Rivers of lava, each with one gap.")


class RoomsConfig(BaseModel):
    rooms: dict[int, Room] = Field(description="By the room's side, walls included: 5 to 15, odd.")


class LavaWorld(GymWorld[RoomsConfig]):
    config_type = RoomsConfig
    about = About(
        name="lava",
        environment="An agent that sees 7×7 cells ahead must turn and walk from the room's top left corner to the green square "
        "in the bottom right one. Stepping into lava ends the episode. There is no reward before the goal.",
        legend="Success: the agent stands on the goal.",
        failures={"failed": "the agent stepped into lava"},
        slice_label="{0}×{0}",
    )

    def make(self, config: RoomsConfig, slice: str) -> gym.Env:
        size = int(slice)
        env = CrossingEnv(size=size, num_crossings=config.rooms[size].rivers, max_steps=8 * size)
        env = gym.wrappers.FlattenObservation(ImgObsWrapper(env))
        box = gym.spaces.Box(0.0, 1.0, env.observation_space.shape, np.float32)
        return gym.wrappers.TransformObservation(env, lambda seen: np.float32(seen) / 10, box)

    def fingerprint(self, env: gym.Env, seed: int) -> bytes:
        return env.unwrapped.grid.encode().tobytes()  # many seeds dig the same rivers

    def picture(self, env: gym.Env) -> str:
        return env.unwrapped.pprint_grid()

    def check(self, config: RoomsConfig) -> None:
        for size, room in config.rooms.items():
            if size < 5 or size % 2 == 0 or (room.share and room.rivers > (size - 3) // 2):
                raise InfeasibleConfig(f"a {size}×{size} room with {room.rivers} rivers cannot be dug: at most {(size - 3) // 2} "
                                       "fit in, and the side is odd, at least 5")  # fmt: skip
        super().check(config)


def main(engineer: str = "rules", out: str = "runs/lava", stages: int | None = None, **changes: object) -> Path:
    spec = load_spec(Path(__file__).with_suffix(".yaml"), changes={"engineer.name": engineer} | changes)
    run = start(spec if stages is None else spec.with_rounds(stages), out)
    for row in run.state.test.last if run.state.test else []:
        print(f"{row.name}×{row.name}: {row.metrics['success_rate']:.0%} of {row.episodes} test episodes")
    return write_page([run.path], run.path / "report.html")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engineer", default="rules")
    parser.add_argument("--out", default="runs/lava")
    print("page:", main(**vars(parser.parse_args())))
