"""Build a tree: every node is a run with given configs that starts at the end of its parent's run.

So a node equals a real run with the same configs, seed and budgets, and a killed build continues as runs do.
Children of a node are trained with the same random numbers: they differ only in the config.
"""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from engineers.shared.own import trust_only, trusted
from envtuning import atomic
from envtuning.atlas.spec import AtlasSpec, Path_
from envtuning.atlas.store import as_key, is_stored, raise_unless_stored_of, write_tree
from envtuning.errors import RunError
from envtuning.loop import run as loop
from envtuning.runs import checked
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.studies.outcomes import played_on
from envtuning.worlds.episodes import Rate

Ended = Callable[[str], None]


def build(
    spec: AtlasSpec,
    folder: Path,
    work: Path,
    *,
    seeds: Sequence[int] | None = None,
    jobs: int = 1,
    ray: bool = False,
    ended: Ended = lambda line: None,
) -> None:
    """Train and store every seed that is not stored yet, ``jobs`` at a time, or as many as fit on a Ray cluster. ``work`` holds unfinished runs.

    Raises ``RunError`` for a seed that is not in the file, and for one that was built from another file or preset.
    """
    wanted = list(seeds or spec.seeds)
    if strangers := [seed for seed in wanted if seed not in spec.seeds]:
        raise RunError(
            f"{strangers[0]} is not a seed of {spec.name}: its file has {', '.join(map(str, spec.seeds))}; add it there"
        )
    waiting = [seed for seed in wanted if not is_stored(folder, seed)]
    for seed in set(wanted) - set(waiting):
        raise_unless_stored_of(folder, spec, seed)
    if (jobs == 1 and not ray) or not waiting:
        for seed in waiting:
            build_seed(spec, folder, work, seed, ended)
        return
    with _cluster(spec, waiting) if ray else _processes(jobs) as pool:
        running = {pool.submit(build_seed, spec, folder, work, seed): seed for seed in waiting}
        for done in as_completed(running):
            done.result()
            ended(f"seed {running[done]} is stored")


def _processes(count: int) -> Executor:
    spawned = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=spawned, initializer=trust_only, initargs=(trusted(),))


def _cluster(spec: AtlasSpec, waiting: Sequence[int]) -> Executor:
    from envtuning.studies.on_ray import Cluster

    return Cluster(waiting, lambda seed: spec.run.trainee)


def build_seed(spec: AtlasSpec, folder: Path, work: Path, seed: int, ended: Ended = lambda line: None) -> None:
    """Build one seed's tree, and store it when it is complete; then remove its runs."""
    place = work / f"{spec.name}-{spec.digest}" / f"seed{seed}"
    _grow(spec, seed, place, (), None, ended)
    paths = [path for length in range(spec.depth + 1) for path in spec.paths(length)]
    found = {path: checked.figures(_node_file(place, path), _Node) for path in paths}
    reports = {path: node["report"] for path, node in found.items()}
    write_tree(folder, spec, seed, reports, {path: node["tested"] for path, node in found.items()})
    shutil.rmtree(place)


class _Node(TypedDict):
    """The record of a trained node."""

    report: dict[str, Any]
    tested: Rate


def _grow(spec: AtlasSpec, seed: int, place: Path, path: Path_, parent: RunLog | None, ended: Ended) -> None:
    """Train a node and all nodes below it. Its run is kept until all below it are trained."""
    if _is_grown(spec, place, path):
        return
    run = RunLog.create(_run_folder(place, path), Plan.of(spec.along(seed, path)))
    if parent is not None:
        run.begin_with(parent, len(path))
    loop.continue_run(run, stages=len(path) + 1)
    if not _node_file(place, path).exists():
        atomic.make_folder(place / "nodes")
        atomic.write_json(_node_file(place, path), measured(run))
        ended(f"seed {seed}: {as_key(path) or 'root'}")
    if len(path) < spec.depth:
        for name in spec.menu:
            _grow(spec, seed, place, (*path, name), run, ended)
    shutil.rmtree(run.path)


def _is_grown(spec: AtlasSpec, place: Path, path: Path_) -> bool:
    """Whether the node and all below it are measured."""
    below = (path + more for length in range(spec.depth - len(path) + 1) for more in spec.paths(length))
    return all(_node_file(place, one).exists() for one in below)


def measured(run: RunLog) -> dict[str, Any]:
    """The record of a node: the report without its history, and success on the test."""
    last = run.state.done[-1]
    assert last.report is not None
    report = last.report.model_copy(update={"history": [], "run": ""})
    success = played_on(run, run.plan.target, run.cases("test"))
    return {"report": report.model_dump(mode="json"), "tested": round(float(np.mean(success)), 6)}


def _run_folder(place: Path, path: Path_) -> Path:
    return place / "runs" / (as_key(path) or "root")


def _node_file(place: Path, path: Path_) -> Path:
    return place / "nodes" / f"{as_key(path) or 'root'}.json"
