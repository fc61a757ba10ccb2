"""A comparison on a Ray cluster of two nodes has the figures of one process, also where a node is lost in the middle of a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envtuning.errors import SpecError
from envtuning.runs.spec import load_spec
from envtuning.studies.compare import compare, write
from envtuning.trainees import KINDS, TraineeKind
from tests.lazily import Lazy, needed

needed("ray", extra="rllib")

on_ray = Lazy("envtuning.studies.on_ray")

ENGINEERS, SEEDS, STAGES = ("fixed", "uniform", "rules"), 2, 3  # six runs
STORE = 80 * 1024**2
PLANTED = "from pathlib import Path\nPath(__file__).with_name('it_ran').touch()\n"


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head and a second node, with room for one run each."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE})
    made.second = made.add_node(num_cpus=1, object_store_memory=STORE)
    try:
        yield made
    finally:
        made.shutdown()


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A folder to start in, whose modules are called like those that workers import."""
    folder = tmp_path / "stranger"
    folder.mkdir()
    for name in ("numpy", "pydantic", "yaml", "engineers", "envtuning"):
        (folder / f"{name}.py").write_text(PLANTED)
    return folder


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_six_runs_on_two_nodes_one_lost_in_the_middle_have_the_figures_of_one_process(cluster, stranger, tmp_path):
    script = tmp_path / "bin" / "command.py"  # elsewhere, as an installed command is
    script.parent.mkdir()
    script.write_text("if __name__ == '__main__':\n    from envtuning.__main__ import main; main()\n")
    arguments = [
        "--engineers",
        ",".join(ENGINEERS),
        "--seeds",
        str(SEEDS),
        "--stages",
        str(STAGES),
        "--out",
        "runs",
        "--ray",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = subprocess.Popen(
        [sys.executable, str(script), "compare", "scripted", *arguments],
        cwd=stranger,
        env=environment | {"RAY_ADDRESS": cluster.address, "RAY_USAGE_STATS_ENABLED": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        lost, worker = stopped_in_a_run(stranger / "runs", cluster.second, command)
        cluster.remove_node(cluster.second, allow_graceful=False)
        os.kill(worker, signal.SIGKILL)
        assert not (lost / "test.json").exists()
        said, _ = command.communicate(timeout=400)
    finally:
        command.kill()
    assert command.returncode == 0, said
    assert int((lost / ".owner").read_text()) != worker
    assert not (stranger / "it_ran").exists()
    one = compare(load_spec("scripted").with_rounds(STAGES), ENGINEERS, range(SEEDS), tmp_path / "one")
    assert (stranger / "runs" / "comparison.json").read_text() == write(one, tmp_path / "one").read_text()


def stopped_in_a_run(out: Path, node: Any, command: subprocess.Popen[str]) -> tuple[Path, int]:
    """The first run that a worker of this node is at, its first stage not yet done, and the worker, which is stopped there."""
    raylet = node.all_processes["raylet"][0].process.pid
    deadline = time.monotonic() + 400
    while time.monotonic() < deadline and command.poll() is None:
        for owner in out.glob("*/seed*/.owner"):
            worker = int(owner.read_text() or 0)
            if worker and parent_of(worker) == raylet and (owner.parent / "stages").exists():
                os.kill(worker, signal.SIGSTOP)
                if not (owner.parent / "test.json").exists():
                    return owner.parent, worker
                os.kill(worker, signal.SIGCONT)
        time.sleep(0.005)
    command.kill()
    raise AssertionError(f"no run was met on the second node: {command.communicate()[0]}")


def parent_of(process: int) -> int | None:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return None


ASKED = {
    "exam": [({}, [{"CPU": 1}])],
    "scripted": [({}, [{"CPU": 1}])],
    "ppo": [({}, [{"CPU": 1}]), ({"torch_threads": 2}, [{"CPU": 2}])],
    "lm": [({"torch_threads": None}, [{"CPU": 1}])],
    "sb3": [({"device": "cuda", "torch_threads": 3}, [{"CPU": 3, "GPU": 1}])],
    "grpo": [
        ({"model": "m", "processes": 2}, [{"CPU": 2, "GPU": 2}]),
        ({"model": "m", "grpo": {"use_cpu": True}, "torch_threads": 4}, [{"CPU": 4}]),
    ],
    "rllib": [
        ({"gpus_per_learner": 1}, [{"CPU": 1, "GPU": 1}]),
        (
            {"num_env_runners": 2, "num_learners": 1, "gpus_per_learner": 1},
            [{"CPU": 1}, {"CPU": 1}, {"CPU": 1}, {"CPU": 1, "GPU": 1}],
        ),
    ],
}


def test_every_trainee_says_what_it_takes():
    assert ASKED.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", ASKED)
def test_what_a_trainee_takes(kind, monkeypatch):
    try:
        TraineeKind.named(kind)
    except SpecError as error:  # its extra is not installed
        pytest.skip(str(error))
    for options, bundles in ASKED[kind]:
        trainee = SimpleNamespace(kind=kind, options=options)
        nodes_are(monkeypatch, {"CPU": 64.0, "GPU": 8.0})
        assert on_ray.bundles_of(trainee) == bundles
        nodes_are(monkeypatch, {"CPU": 64.0})
        assert on_ray.bundles_of(trainee) == [{k: n for k, n in one.items() if k != "GPU"} for one in bundles]


@pytest.mark.parametrize(
    ("nodes", "fits"),
    [
        ([{"CPU": 3}], True),
        ([{"CPU": 1}] * 3, True),
        ([{"CPU": 1}] * 2, False),
        ([{"CPU": 0.5}] * 6, False),
        ([], False),
    ],
)
def test_a_run_that_could_never_begin_is_refused(nodes, fits, monkeypatch):
    nodes_are(monkeypatch, *nodes)
    trainee = SimpleNamespace(kind="rllib", options={"num_env_runners": 2})
    if fits:
        on_ray.raise_unless_room(trainee)
    else:
        with pytest.raises(SpecError):
            on_ray.raise_unless_room(trainee)


def nodes_are(monkeypatch: pytest.MonkeyPatch, *nodes: dict[str, float]) -> None:
    together = {what: sum(node.get(what, 0) for node in nodes) for one in nodes for what in one}
    monkeypatch.setattr("ray.nodes", lambda: [{"Alive": True, "Resources": node} for node in nodes])
    monkeypatch.setattr("ray.cluster_resources", lambda: together)
