"""Runs as tasks of a Ray cluster. Ray schedules them. If a node is lost, its run continues from its folder on another node.

Every node must see the runs' folder and the command's working folder under the same paths.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from typing import Any

from engineers.shared import own
from engineers.shared.current_folder import import_nothing_from_here
from engineers.shared.extras import needs
from envtuning.errors import RunError, SpecError
from envtuning.runs.spec import TraineeSpec
from envtuning.trainees import TraineeKind
from envtuning.trainees.rllib.ray_session import start_ray

try:
    import ray
    from ray.util import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
except ImportError as error:
    raise needs("--ray", error, "rllib") from error

LOSSES = 3  # of its node that a run may have while the command is there

Bundle = dict[str, float]  # amounts of Ray's resources on one node


class Tasks(Executor):
    """A process pool on Ray: on the cluster at RAY_ADDRESS, or on a new local one. Each job has a CPU."""

    def __init__(self) -> None:
        start_ray()
        self.runs = list[ray.ObjectRef]()

    def submit(self, work: Callable[..., Any], /, *given: Any) -> Future[Any]:  # type: ignore[override]
        return self._submit(ray.remote(num_cpus=1, max_retries=LOSSES)(_in_a_worker), None, work, given)

    def _submit(self, task: Any, held: Any, work: Callable[..., Any], given: tuple[Any, ...]) -> Future[Any]:
        self.runs.append(task.remote(work, given, own.trusted(), os.getcwd()))
        return _told(self.runs[-1], held)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the running and waiting tasks; the same command continues them."""
        for run in self.runs:
            ray.cancel(run, force=True)


class Cluster(Tasks):
    """For runs, each with the resources of its trainee."""

    def __init__(self, trainees: Iterable[TraineeSpec]) -> None:
        """``trainees``: those of the jobs to come. Raises ``SpecError`` if one of them can never begin."""
        super().__init__()
        for trainee in trainees:
            raise_unless_room(trainee)

    def submit(self, work: Callable[..., Any], /, *given: Any) -> Future[Any]:  # type: ignore[override]
        """``given`` ends with the job."""
        own_process, *actors = bundles = bundles_of(given[-1].spec.trainee)
        others = {what: amount for what, amount in own_process.items() if what not in ("CPU", "GPU")}
        task = ray.remote(
            num_cpus=own_process.get("CPU", 0), num_gpus=own_process.get("GPU", 0), resources=others, max_retries=LOSSES
        )(_in_a_worker)
        held = placement_group(bundles) if actors else None  # otherwise runs wait for ever for a place for their actors
        if held is not None:
            within = PlacementGroupSchedulingStrategy(held, 0, placement_group_capture_child_tasks=True)
            task = task.options(scheduling_strategy=within)
        return self._submit(task, held, work, given)


def _in_a_worker(work: Callable[..., Any], given: tuple[Any, ...], trusted: frozenset[str], here: str) -> Any:
    """Carry out one run, with the trust and the working folder of the command's process."""
    try:
        os.chdir(here)
    except OSError as error:
        raise RunError(
            f"the node {platform.node()} has no folder {here}: start in a folder that all nodes share"
        ) from error
    import_nothing_from_here()
    own.trust(trusted)
    return work(*given)


def _told(run: ray.ObjectRef, held: Any) -> Future[Any]:
    """The run's result as a process pool's future gives it, with the run's own error if it raised one."""
    told: Future[Any] = Future()

    def tell(done: Future[Any]) -> None:
        if held is not None:  # in another thread: this one is Ray's, which would wait for itself
            threading.Thread(target=remove_placement_group, args=(held,)).start()
        error = done.exception()
        if error is None:
            told.set_result(done.result())
        elif isinstance(error, ray.exceptions.RayTaskError):
            told.set_exception(error.cause)
        else:
            told.set_exception(
                RunError(f"Ray lost a run too often ({type(error).__name__}): repeat the command to go on")
            )

    run.future().add_done_callback(tell)
    return told


def bundles_of(trainee: TraineeSpec) -> list[Bundle]:
    """The resources of a run, its own process first. GPUs only if the cluster has any."""
    left_out = () if "GPU" in ray.cluster_resources() else ("GPU",)
    asked = TraineeKind.named(trainee.kind).declared.resources(**trainee.options)
    return [
        found for one in asked if (found := {what: n for what, n in one.items() if n and what not in left_out})
    ] or [{}]


def raise_unless_room(trainee: TraineeSpec) -> None:
    """Raises ``SpecError`` if a bundle is larger than every node, or all bundles together are larger than the cluster."""
    bundles = bundles_of(trainee)
    together = {what: sum(one.get(what, 0) for one in bundles) for bundle in bundles for what in bundle}
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    each_fits = all(any(_holds(node, bundle) for node in nodes) for bundle in bundles)
    if not (each_fits and _holds(ray.cluster_resources(), together)):
        has = [{what: node.get(what, 0) for what in together} for node in nodes]
        raise SpecError(
            f"a run of the trainee {trainee.kind!r} needs {bundles}, but the nodes of the cluster have {has}: "
            "add a node, or request less in trainee.options"
        )


def _holds(room: Bundle, amounts: Bundle) -> bool:
    return all(room.get(what, 0) >= amount for what, amount in amounts.items())
