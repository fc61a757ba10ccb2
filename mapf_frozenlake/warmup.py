"""``python -m mapf_frozenlake.warmup``: compile everything once per machine, so that later calls do not wait."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.compiling import notice
from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.evaluation import evaluate
from mapf_frozenlake.generator import generate
from mapf_frozenlake.generator.first_boards import MOST
from mapf_frozenlake.solvers import certify_batch, distance_fields, pibt, solve
from mapf_frozenlake.solvers.solve import Objective, Waits
from mapf_frozenlake.types import NUM_ACTIONS, Certificate
from mapf_frozenlake.world.batch import LakeBatch
from mapf_frozenlake.world.layers import OBSERVATIONS, ObservationName
from mapf_frozenlake.world.move import joint_move


def steps() -> Iterator[tuple[str, Callable[[], object]]]:
    """The kernels to compile, by name; each call compiles one, or finds it in the cache."""
    config = LakeConfig()
    set_of_two = generate(config, 2)
    lake = set_of_two[0]
    certificates: tuple[Certificate, ...] = ("reachable", "solvable", "exact")
    for certificate in certificates:
        yield f"boards, {certificate}", partial(generate, config, MOST + 1, certify=certificate, exclude=set_of_two)
    yield "quotas of a config", lambda: generate(LakeConfig.single(4, {2: 1, 3: 1}), 2)
    yield "certificates", lambda: certify_batch(lake.holes[None], lake.starts[None], lake.goals[None])
    for objective in get_args(Objective):
        for waits in get_args(Waits):
            yield f"solver, {objective}, waits {waits}", partial(solve, lake, objective=objective, waits=waits)
    yield "fast plans", lambda: pibt(lake)
    yield "distances", lambda: distance_fields(lake)
    for observation in OBSERVATIONS:
        yield f"environment, {observation}", partial(_play, config, observation)
        other_rules = config.model_copy(update={"on_goal": "next"})
        yield f"environment, {observation}, other rules", partial(_play, other_rules, observation)
    yield "evaluation of a network", lambda: evaluate(_AlwaysWaits(), set_of_two)
    yield "joint move", lambda: joint_move(lake.holes, lake.starts, np.zeros(len(lake.starts), np.int64))


class _AlwaysWaits:
    """A policy in the form of a network."""

    env_kwargs: dict[str, Any] = {}  # noqa: RUF012

    def act(self, observation: NDArray[Any]) -> NDArray[np.int64]:
        return np.full(observation.shape[:2], NUM_ACTIONS - 1)


def _play(config: LakeConfig, observation: ObservationName) -> None:
    batch = LakeBatch(config, observation=observation)
    batch.reset()
    batch.action_masks()
    batch.step(np.full((1, batch.max_agents), NUM_ACTIONS - 1))


def main(arguments: Sequence[str] | None = None) -> None:
    description = "Compile everything once for this machine, in a minute or two of CPU time. Kernels in the cache are not compiled again."
    argparse.ArgumentParser("python -m mapf_frozenlake.warmup", description=description).parse_args(arguments)
    notice.given = True  # the next line prints it
    began = time.perf_counter()
    print(
        f"compiling {Path(__file__).parent} for this machine: a minute or two of CPU time, once for each version",
        flush=True,
    )
    for name, compile_it in steps():
        print(f"{time.perf_counter() - began:5.1f} s  {name}", flush=True)
        compile_it()
    print(f"{time.perf_counter() - began:5.1f} s  done")


if __name__ == "__main__":
    main()
