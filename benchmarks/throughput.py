"""How fast the lake steps, beside FrozenLake, Stable-Baselines3 and POGEMA in the same run, in CPU time.

    python -m benchmarks.throughput --ratios --pogema-python PATH
    python -m benchmarks.throughput --threads 2

POGEMA pins other versions than this project, so it is measured by an interpreter of its own:

    python -m venv pogema && pogema/bin/pip install pogema "gymnasium<1"

Without one it is skipped with a note. Ours and the peers' measurements take turns, several rounds of them;
the best of each counts, because other work on the machine can only slow it down.

Agents walk at random over ice: their moves are recorded beforehand, so that what is timed is stepping, rewards, observations
and resets and nothing else. Steps that only reset an env do not count. Where it says "random", actions are drawn uniformly:
most episodes soon end in a hole, and resets weigh as much as steps: a vector env spends a quarter of its steps on them, unless
it resets within the step ("same step": Gymnasium's ``AutoresetMode.SAME_STEP``, which also returns the last observations).
The memory of an observation is reused when the caller has dropped it. "held": the number that the caller keeps while it steps.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from benchmarks._record import record
from mapf_frozenlake import LakeBatch, LakeConfig
from mapf_frozenlake.types import Action

HOLES, HORIZON, TAPE = 0.2, 64, 64
ROLLOUT = 16  # observations that a trainer holds at a time: more than the vector env keeps arrays for
PEER = Path(__file__).parent / "_pogema.py"


@dataclass(frozen=True)
class Goal:
    """A ratio to a peer: what it must at least be, and what is aimed at."""

    name: str
    ours: str
    peer: str
    least: float
    aim: float


POGEMA_4, POGEMA_64 = "POGEMA 4 agents 8×8 11×11", "POGEMA 64 agents 32×32 11×11"
GOALS = (
    Goal("4 agents, 8×8, 11×11 windows, over POGEMA", "4 agents 8×8 11×11", POGEMA_4, 25, 60),
    Goal("64 agents, 32×32, 11×11 windows, over POGEMA", "64 agents 32×32 11×11", POGEMA_64, 45, 60),
    Goal("native vector env, observations the caller's to keep, walks over ice, over POGEMA", "vector env, keeping", POGEMA_4, 45, 60),
    Goal("the same, random moves and resets", "vector env, random", POGEMA_4, 60, 60),
    Goal("the same, resets within the step", "vector env, random, same step", POGEMA_4, 60, 60),
    Goal("the same, the last observation held", "vector env, random, same step, 1 held", POGEMA_4, 45, 60),
    Goal(f"random moves and resets, the last {ROLLOUT} observations held", f"vector env, random, {ROLLOUT} held", POGEMA_4, 45, 60),
    Goal("one env by gym.make, 4 agents, walks over ice, over FrozenLake (env-steps)", "single env", "FrozenLake", 1.25, 2.0),
    Goal("the same, random actions and resets", "single env, random", "FrozenLake, random", 1.5, 2.0),
    Goal("the same, 11×11 windows", "single env, random, ego", "FrozenLake, random", 1.25, 1.5),
)  # fmt: skip


# -- ours ---------------------------------------------------------------------------------------------------------------


def lake(size: int, agents: int, **rules: Any) -> LakeConfig:
    holes = HOLES if size * size * (1 - HOLES) > 4 * agents else 0.0
    return LakeConfig.single(size, agents, hole_ratio=holes, horizon=HORIZON, **rules)


def make_batch(config: LakeConfig, envs: int, **kwargs: Any) -> LakeBatch:
    """A batch whose pool is drawn already: drawing boards is the generator's benchmark."""
    batch = LakeBatch(config, envs, certify="reachable", pool_size=256, **kwargs)
    batch.pool.ensure(np.arange(256))
    batch.seed(np.arange(envs))
    return batch


def random_walk(config: LakeConfig, envs: int, steps: int = TAPE) -> tuple[NDArray[np.int64], int]:
    """Actions int64[steps, envs, A] that lead agents over ice only, and how many env-steps of them are real steps."""
    scout = make_batch(config, envs, observation="ego", window=3, hints=True)
    legal = len(scout.layout.features) - 5  # the last five features say which moves enter ice
    rng = np.random.default_rng(0)
    tape = np.empty((steps, envs, config.max_agents), np.int64)
    scout.reset()
    real = 0
    for step in range(steps):
        free = scout.layout.split(scout.observation)[1][..., legal:] > 0
        tape[step] = (rng.random(free.shape) * free).argmax(-1)
        tape[step][~free.any(-1)] = Action.WAIT
        real += envs - scout.num_finished
        scout.step(tape[step])
    return tape, real


def cpu_seconds(work: Callable[[], Any], least: float = 0.05) -> float:
    """CPU time of one call of ``work``, repeated until ``least`` seconds are filled."""
    begin, calls = time.process_time(), 0
    while time.process_time() - begin < least:
        work()
        calls += 1
    return (time.process_time() - begin) / calls


def stepper(config: LakeConfig, envs: int, **kwargs: Any) -> Callable[[], float]:
    """Measures a batch's agent-steps per CPU second, resets included."""
    tape, real = random_walk(config, envs)
    batch = make_batch(config, envs, **kwargs)

    def play() -> None:
        batch.seed(np.arange(envs))
        batch.reset()
        for actions in tape:
            batch.step(actions)

    play()
    return lambda: real * config.max_agents / cpu_seconds(play)


def single_env(agents: int = 4) -> Callable[[], float]:
    """Measures env-steps per CPU second of one env by ``gym.make``."""
    config = LakeConfig.single(8, agents, hole_ratio=HOLES)
    env = gym.make(
        "MAPFFrozenLake-v0", config=config, observation="compact", certify="reachable", pool_size=256
    )  # fmt: skip
    env.unwrapped.batch.pool.ensure(np.arange(256))
    episodes = [_walk_of_an_episode(config, seed) for seed in range(64)]

    def play() -> None:
        for seed, actions in enumerate(episodes):
            env.reset(seed=seed)
            for action in actions:
                env.step(action)

    steps = sum(len(actions) for actions in episodes)
    return lambda: steps / cpu_seconds(play, 0.2)


def at_random(make: Callable[[], gym.Env], actions: list[Any]) -> Callable[[], float]:
    """Measures env-steps per CPU second under random actions, with a reset whenever an episode ends: most end in a hole."""
    env = make()
    env.reset(seed=0)

    def play() -> None:
        for action in actions:
            *_, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    play()
    return lambda: len(actions) / cpu_seconds(play, 0.2)


def lake_at_random(observation: str, agents: int = 4) -> Callable[[], float]:
    def make() -> gym.Env:
        env = gym.make(
            "MAPFFrozenLake-v0", size=8, num_agents=agents, hole_ratio=HOLES, observation=observation,
            certify="reachable", pool_size=256,
        )  # fmt: skip
        env.unwrapped.batch.pool.ensure(np.arange(256))
        return env

    return at_random(make, list(np.random.default_rng(0).integers(0, 5, (5000, agents))))


def frozen_lake_at_random() -> Callable[[], float]:
    def make() -> gym.Env:
        return gym.make("FrozenLake-v1", map_name="8x8", is_slippery=False)

    return at_random(make, np.random.default_rng(0).integers(0, 4, 5000).tolist())


def _walk_of_an_episode(config: LakeConfig, seed: int) -> list[NDArray[np.int64]]:
    scout = make_batch(config, 1, observation="ego", window=3, hints=True, autoreset="disabled")
    legal = len(scout.layout.features) - 5
    rng = np.random.default_rng(seed)
    scout.seed([seed])
    scout.reset()
    actions = []
    while not scout.num_finished:
        free = scout.layout.split(scout.observation)[1][..., legal:] > 0
        actions.append((rng.random(free.shape) * free).argmax(-1)[0])
        scout.step(actions[-1][None])
    return actions


def make_vector(config: LakeConfig, envs: int, **kwargs: Any) -> Any:
    """By ``gym.make_vec``; its boards are drawn already."""
    made = {"config": config, "certify": "reachable", "pool_size": 256}
    vector = gym.make_vec("MAPFFrozenLake-v0", num_envs=envs, **made, **kwargs)
    vector.unwrapped.batch.pool.ensure(np.arange(256))
    return vector


def tape_of(config: LakeConfig, envs: int, random: bool) -> NDArray[np.int64]:
    if random:
        return np.random.default_rng(0).integers(0, 5, (TAPE, envs, config.max_agents))
    return random_walk(config, envs)[0]


def vector_env(
    envs: int = 1024, config: LakeConfig | None = None, *, random: bool = False, held: int = 0, **kwargs: Any
) -> Callable[[], float]:
    """Measures a native Gymnasium vector env's agent-steps per CPU second; its user holds the last ``held`` observations."""
    config = lake(8, 4) if config is None else config
    tape, vector = tape_of(config, envs, random), make_vector(config, envs, **kwargs)
    batch = vector.unwrapped.batch
    last: deque[Any] = deque(maxlen=held)

    def play() -> int:
        finished = 0  # env-steps that only reset
        vector.reset(seed=0)
        for actions in tape:
            finished += batch.num_finished
            last.append(vector.step(actions)[0])
        return tape[..., 0].size - finished

    real = play()
    return lambda: real * config.max_agents / cpu_seconds(play)


def threads(count: int, rounds: int, envs: int = 1024) -> dict[str, Any]:
    """How many times the steps per second of the clock ``count`` threads make, of ``gym.make_vec`` with 4 agents on 8×8.

    One thread and several take turns; the ratio is the median over the turns, and beside it that of the fastest of each.
    Steps that only reset an env count here.
    """
    config = lake(8, 4)
    kinds: dict[str, dict[str, Any]] = {
        "11×11": {"window": 11}, "5×5": {"window": 5}, "compact": {"observation": "compact"},
        "11×11, random": {"window": 11, "random": True},
    }  # fmt: skip
    table = {}
    for name, kwargs in kinds.items():
        tape = tape_of(config, envs, kwargs.pop("random", False))
        vectors = [make_vector(config, envs, num_threads=number, **kwargs) for number in (1, count)]
        for vector in vectors:  # everything is compiled
            _seconds_by_the_clock(vector, tape)
        seconds = np.array([[_seconds_by_the_clock(vector, tape) for vector in vectors] for _ in range(rounds)])
        alone, together = (envs * config.max_agents * len(tape) / seconds.min(axis=0) / 1e6).tolist()
        table[name] = {
            "ratio": round(float(np.median(seconds[:, 0] / seconds[:, 1])), 2),
            "ratio_of_the_fastest": round(together / alone, 2),
            "million_agent_steps_per_second": {"1": round(alone, 2), str(count): round(together, 2)},
        }
    return {"threads": count, "envs": envs, "rounds": rounds, "kinds": table}


def _seconds_by_the_clock(vector: Any, tape: NDArray[np.int64]) -> float:
    vector.reset(seed=0)
    begin = time.perf_counter()
    for actions in tape:
        vector.step(actions)
    return time.perf_counter() - begin


# -- peers --------------------------------------------------------------------------------------------------------------


def frozen_lake() -> Callable[[], float]:
    """Measures env-steps per CPU second of Gymnasium's FrozenLake on its 8×8 map, walking at random over ice."""
    env = gym.make("FrozenLake-v1", map_name="8x8", is_slippery=False)
    moves = env.unwrapped.P
    holes = {state for state, actions in moves.items() if env.unwrapped.desc.ravel()[state] == b"H"}
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(64):
        state, over, actions = env.reset(seed=0)[0], False, []
        while not over:
            actions.append(int(rng.choice([a for a in range(4) if moves[state][a][0][1] not in holes])))
            state, _, terminated, truncated, _ = env.step(actions[-1])
            over = terminated or truncated
        episodes.append(actions)

    def play() -> None:
        for actions in episodes:
            env.reset(seed=0)
            for action in actions:
                env.step(action)

    steps = sum(len(actions) for actions in episodes)
    return lambda: steps / cpu_seconds(play, 0.2)


def pogema(python: str | None, settings: dict[str, Any]) -> Callable[[], Any] | None:
    """Measures POGEMA in another interpreter; None, with a note, where it does not run."""
    if python is None:
        print(f"skipped: POGEMA {settings} (no interpreter given)", file=sys.stderr)
        return None

    def measure() -> Any:
        command = [python, str(PEER), json.dumps(settings)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    try:
        measure()
    except (OSError, subprocess.SubprocessError) as error:
        print(f"skipped: POGEMA {settings} ({getattr(error, 'stderr', '') or error})"[-400:], file=sys.stderr)
        return None
    return measure


# -- tables -------------------------------------------------------------------------------------------------------------


def compare(args: argparse.Namespace) -> dict[str, Any]:
    """Everything with a peer, in turns."""
    big = 64 if not args.quick else 16
    runs: dict[str, Callable[[], Any] | None] = {
        "4 agents 8×8 11×11": stepper(lake(8, 4), 1024, window=11),
        "64 agents 32×32 11×11": vector_env(big, lake(32, 64), window=11),
        "single env": single_env(),
        "FrozenLake": frozen_lake(),
        "single env, random": lake_at_random("compact"),
        "single env, random, ego": lake_at_random("ego"),
        "FrozenLake, random": frozen_lake_at_random(),
        "vector env, keeping": vector_env(window=11),
        "vector env, random": vector_env(window=11, random=True),
        "vector env, random, same step": vector_env(window=11, random=True, autoreset_mode="SameStep"),
        "vector env, random, same step, 1 held": vector_env(window=11, random=True, autoreset_mode="SameStep", held=1),
        f"vector env, random, {ROLLOUT} held": vector_env(window=11, random=True, held=ROLLOUT),
    }
    for agents, size, steps in ((4, 8, 2000), (64, 32, 200)):
        settings = {"agents": agents, "size": size, "radius": 5, "holes": HOLES, "horizon": HORIZON, "steps": steps}
        runs[f"POGEMA {agents} agents {size}×{size} 11×11"] = pogema(args.pogema_python, settings)

    speeds: dict[str, list[float]] = {name: [] for name, run in runs.items() if run is not None}
    for turn in range(args.rounds):
        for name in speeds:
            speeds[name].append(runs[name]())  # type: ignore[misc]
        print(f"round {turn + 1} of {args.rounds}", file=sys.stderr)
    return {
        "steps_per_cpu_second": {name: {"best": max(each), "all": each} for name, each in speeds.items()},
        "goals": [_judged(goal, speeds) for goal in GOALS if goal.peer in speeds],
    }


def _judged(goal: Goal, speeds: dict[str, list[float]]) -> dict[str, Any]:
    ratio = max(speeds[goal.ours]) / max(speeds[goal.peer])
    return {
        "name": goal.name,
        "ratio": round(ratio, 2),
        "least": goal.least,
        "aim": goal.aim,
        "met": ratio >= goal.least,
    }


def stable_baselines3(envs: int = 64, steps: int = 100) -> dict[str, dict[str, float]]:
    """Env-steps per second of SB3's vector interfaces under random actions: by the clock, and by CPU time of all processes."""
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    import mapf_frozenlake as mfl

    kwargs: dict[str, Any] = {"size": 8, "num_agents": 4, "hole_ratio": HOLES, "certify": "reachable", "pool_size": 256}
    # make_vec_env asks for "rgb_array" unless told; then every step is recorded for a film.
    copies = kwargs | {"render_mode": None}
    cores = max(2, os.cpu_count() or 2)
    made = {
        "sb3_vec_env": (envs, lambda: mfl.sb3_vec_env(envs, **kwargs)),
        "DummyVecEnv": (envs, lambda: make_vec_env("MAPFFrozenLake-v0", envs, env_kwargs=copies, vec_env_cls=DummyVecEnv)),
        f"SubprocVecEnv, {cores} processes": (
            cores, lambda: make_vec_env("MAPFFrozenLake-v0", cores, env_kwargs=copies, vec_env_cls=SubprocVecEnv)
        ),
        "SubprocVecEnv, 16 processes": (
            16, lambda: make_vec_env("MAPFFrozenLake-v0", 16, env_kwargs=copies, vec_env_cls=SubprocVecEnv)
        ),
    }  # fmt: skip
    table = {}
    for name, (count, make) in made.items():
        vector = make()
        tape = np.random.default_rng(0).integers(0, 5, (steps, count, 4))
        vector.reset()
        for actions in tape:  # boards are drawn, everything is compiled
            vector.step(actions)
        processes = [one.pid for one in getattr(vector, "processes", [])]
        clock, cpu, played = time.perf_counter(), _cpu_seconds_with(processes), 0
        while time.perf_counter() - clock < 3:
            for actions in tape:
                vector.step(actions)
            played += steps * count
        by_clock, by_cpu = time.perf_counter() - clock, _cpu_seconds_with(processes) - cpu
        vector.close()
        table[name] = {"per_second": round(played / by_clock), "per_cpu_second": round(played / by_cpu)}
    return table


def _cpu_seconds_with(processes: list[int]) -> float:
    """What this process and those have spent."""
    ticks = 0
    for pid in processes:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.throughput",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pogema-python", metavar="PATH", help="an interpreter that has pogema")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of the comparison (default 5)")
    table = parser.add_mutually_exclusive_group(required=True)
    table.add_argument("--ratios", action="store_true", help="the comparisons, to throughput_ratios.json")
    table.add_argument(
        "--threads", type=int, metavar="N", help="N threads against one, by the clock, to throughput_threads.json"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, nothing written")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    if args.quick:
        args.rounds = 2
    if args.threads:
        figures = threads(args.threads, 10 * args.rounds)
        for name, row in figures["kinds"].items():
            print(f"{name}: {row}")
    else:
        figures = {"compared": compare(args), "stable_baselines3": stable_baselines3()}
        for goal in figures["compared"]["goals"]:
            print(f"{goal['name']}: {goal['ratio']}× (at least {goal['least']}×, aim {goal['aim']}×)")
        print(f"Stable-Baselines3's vector interfaces, env-steps: {figures['stable_baselines3']}")
    if not args.quick:
        sys.argv = _without_places(args)
        name = "throughput_threads" if args.threads else "throughput_ratios"
        print(record(name, figures | {"load_average": os.getloadavg()[0]}))


def _without_places(args: argparse.Namespace) -> list[str]:
    """The command without where this machine keeps the peer's interpreter."""
    return [Path(word).name if word == args.pogema_python else word for word in sys.argv]


if __name__ == "__main__":
    main()
