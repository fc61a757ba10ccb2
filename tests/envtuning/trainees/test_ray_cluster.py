"""Two nodes, by Ray's own test cluster: a run completes, a lost node is survived while training and told while building."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import mapf_frozenlake as mfl
from envtuning.loop import run as loop
from envtuning.runs.spec import RunSpec
from envtuning.runs.tasks import next_task
from envtuning.trainees import make_trainee
from envtuning.trainees.base import WorkerLost
from tests.lazily import needed

needed("ray", "torch", extra="rllib")

pytestmark = [pytest.mark.prove, pytest.mark.ray, pytest.mark.timeout(1_200)]

EASY = mfl.LakeConfig.single(3, num_agents=1, reward="shaped")
HARD = mfl.LakeConfig.single(4, num_agents=2, reward="shaped")
SMALL = {"num_envs": 16, "rollout": 16, "minibatch": 128, "hidden": (32,), "window": 5}
SPREAD = SMALL | {"num_env_runners": 2, "cpus_per_env_runner": 1}
ROOM = {"max_size": 4, "max_agents": 2}
STORE = 80 * 1024**2


@pytest.fixture
def cluster(monkeypatch) -> Iterator[Any]:
    """A head and a second node with a CPU each: one EnvRunner fits on either."""
    import ray
    from ray.cluster_utils import Cluster

    assert not ray.is_initialized(), "these tests need a process without a Ray of its own"
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE})
    made.second = made.add_node(num_cpus=1, object_store_memory=STORE)
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def nodes_of(trainee: Any) -> list[str]:
    """Where the remote runners are; the first is the local one."""
    import ray

    found = trainee.algorithm.ask_runners(lambda _: ray.get_runtime_context().get_node_id(), timeout=120)
    return found[1:]


def test_a_run_completes_on_two_nodes(cluster, tmp_path):
    spec = {
        "target": {"num_agents": 2, "slices": {3: {"hole_ratio": 0.1}}},
        "trainee": {"kind": "rllib", "options": SPREAD},
        "engineer": {"name": "rules"},
        "suites": {"validation_per_slice": 4, "test_per_slice": 4, "probe_per_slice": 2, "failure_cases": 1},
        "stages": [{"budget": 1500, "config": {"num_agents": 2, "slices": {3: {"hole_ratio": 0.1}}}}, {"budget": 1500}],
    }
    run = loop.start(RunSpec.model_validate(spec), tmp_path / "run")
    assert next_task(run.plan, run.state) is None
    assert not run.state.incidents()
    assert all(
        line["workers"] == 2 for stage in run.state.stages for line in stage.metrics() if line["kind"] == "iteration"
    )


def test_a_node_lost_while_training_is_survived_told_once_and_replaced(cluster):
    trainee = make_trainee("rllib", capacity=ROOM, seed=0, **SPREAD | {"sample_timeout": 20.0})
    assert len(set(nodes_of(trainee))) == 2
    told: list[dict[str, float]] = []

    def second_iteration_loses_the_node(metrics: dict[str, float]) -> None:
        told.append(metrics)
        if len(told) == 2:
            cluster.remove_node(cluster.second, allow_graceful=False)

    begin = time.monotonic()
    trainee.train(HARD, 6_000, seed=0, on_iteration=second_iteration_loses_the_node)
    assert time.monotonic() - begin < 300
    assert told[0]["workers"] == told[1]["workers"] == 2
    assert told[-1]["workers"] == 1
    assert sum(metrics.get("workers_lost", 0) for metrics in told) == 1
    assert len(told) >= 8  # many an iteration without the node, and nothing said of it again

    cluster.add_node(num_cpus=1, object_store_memory=STORE)
    deadline = time.monotonic() + 400  # a new runner imports Ray and torch first
    while trainee._once()["workers"] < 2 and time.monotonic() < deadline:
        time.sleep(1)
    configs = trainee.algorithm.ask_runners(lambda runner: runner.env and runner.env.get_config(), timeout=120)
    assert configs == [None, HARD, HARD]  # made from what lies in the object store, and brought up to date
    trainee.train(EASY, 500, seed=1)
    trainee.close()


def test_a_node_lost_while_the_runners_are_built_is_told_in_time(cluster):
    threading.Timer(1.5, lambda: cluster.remove_node(cluster.second, allow_graceful=False)).start()
    begin = time.monotonic()
    with pytest.raises(WorkerLost, match=r"[01] of num_env_runners=2 were up within build_timeout=60 s"):
        make_trainee("rllib", capacity=ROOM, seed=0, **SPREAD | {"build_timeout": 60.0})
    assert time.monotonic() - begin < 200
    again = make_trainee("rllib", capacity=ROOM, seed=0, **SMALL)  # what was half-built is in nobody's way
    again.train(EASY, 300, seed=0)
    again.close()
