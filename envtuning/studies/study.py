"""Carries out a study: arms that differ in one thing, with the same budget, seeds and boards, several runs at a time.

An arm is a run's spec without its seed. Arms with the same first stage share it: it is trained once per seed, copied into every
such arm's run, and charged there in full. Each run has its own folder, ``OUT/ARM/seedN``, so neither the order of the runs nor the
number of processes changes a figure. An interrupted study continues where it stopped.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engineers.shared.own import trust, trusted
from envtuning import atomic
from envtuning.loop import run as loop
from envtuning.loop.observer import Observer
from envtuning.runs import checked
from envtuning.runs.log import RunLog, runs_below
from envtuning.runs.plan import Plan
from envtuning.runs.resolve import resolve
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.runs.tasks import next_task
from envtuning.show.pace import Pace

FIRST_STAGE = "first-stage"  # the folders of shared stages, beside those of the arms

Arms = Mapping[str, RunSpec]


@dataclass(frozen=True)
class Job:
    """One run, or a first stage that several runs share."""

    arm: str  # FIRST_STAGE-… for a first stage
    spec: RunSpec
    out: Path
    shared: str | None = None  # the first stage that the run begins with

    @property
    def folder(self) -> Path:
        return self.out / folder_name(self.arm) / f"seed{self.spec.seed}"

    @property
    def is_first_stage(self) -> bool:
        return self.arm.startswith(FIRST_STAGE)

    @property
    def begun_with(self) -> Path | None:
        return None if self.shared is None else self.out / self.shared / f"seed{self.spec.seed}"


def execute(
    arms: Arms,
    seeds: Sequence[int],
    out: Path,
    *,
    jobs: int = 1,
    ray: bool = False,
    observer: Observer | None = None,
    kept: Callable[[Sequence[Job]], None] = lambda runs: None,
    began: Callable[[Job], None] = lambda job: None,
    ended: Callable[[Job, Pace], None] = lambda job, pace: None,
) -> None:
    """Do all unfinished runs, ``jobs`` at a time; with ``ray`` as many as a Ray cluster has room for.

    They are done seed by seed, so that an interrupted study has paired runs. ``observer`` gets the events inside a run if the runs
    are done one after the other in this process. ``kept`` is called once, with the runs that were finished before. ``began`` and
    ``ended`` are called for every job; ``ended`` also gets the number of finished runs, without shared first stages.
    """
    checked.raise_on_links_to_runs(out)
    planned = list(plan(arms, seeds, out))
    done = {job.folder: is_done(job) for job in planned}
    waiting = [job for job in planned if not done[job.folder]]
    kept([job for job in planned if done[job.folder] and not job.is_first_stage])
    pace = Pace(sum(not job.is_first_stage for job in waiting), noun="runs")

    def over(job: Job) -> None:
        ended(job, pace if job.is_first_stage else pace.step())

    if (jobs == 1 and not ray) or not waiting:
        for job in waiting:
            began(job)
            do(job, observer)
            over(job)
        return
    with left_at_once(_cluster(waiting) if ray else processes(jobs)) as pool:
        _do_at_once(waiting, len(waiting) if ray else jobs, pool, began, over)


def _do_at_once(
    jobs: Sequence[Job], most: int, pool: Executor, began: Callable[[Job], None], over: Callable[[Job], None]
) -> None:
    """Do these jobs in the pool, at most so many at a time, each once the first stage that it begins with is finished."""
    waiting, running = list(jobs), dict[Future[None], Job]()
    while waiting or running:
        for job in _ready(waiting, list(running.values()), most):
            waiting.remove(job)
            running[pool.submit(do, job)] = job
            began(job)
        for done in wait(running, return_when=FIRST_COMPLETED).done:
            job = running.pop(done)
            done.result()
            over(job)


# Pools left by an error: one that nobody holds any more would carry out what waits, and not cancel it.
LEFT: list[Executor] = []


@contextmanager
def left_at_once(pool: Executor) -> Iterator[Executor]:
    """The pool, which is left by an error at once: what waits is cancelled, and the same command continues it.

    Processes that are at work finish that work, after an error. Ctrl-C ends them in the middle of it.
    """
    others = multiprocessing.active_children()
    try:
        yield pool
    except BaseException as error:
        # Once: a further call of shutdown, as at the end of ``with pool``, would take the cancelling back.
        pool.shutdown(wait=False, cancel_futures=True)
        LEFT.append(pool)
        if not isinstance(error, Exception):
            for process in set(multiprocessing.active_children()).difference(others):
                process.terminate()
        raise
    pool.shutdown()


def processes(count: int) -> Executor:
    """So many, which trust what this one trusts and end with it."""
    spawned = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=spawned, initializer=begin_process, initargs=(trusted(),))


def _cluster(waiting: Sequence[Job]) -> Executor:
    from envtuning.studies.on_ray import Cluster

    return Cluster(job.spec.trainee for job in waiting)


def comparable(spec: RunSpec) -> RunSpec:
    """The run without the guard's limit on dropping working slices. Baselines that draw whole configs would be refused by it."""
    return spec.model_copy(update={"guard": spec.guard.model_copy(update={"max_drop": None})})


def raise_unless_comparable(arms: Arms) -> dict[str, Plan]:
    """The arms' plans. Raises ``SpecError`` before the first run for anything that would stop a later one, or leave it without a test."""
    for spec in arms.values():
        if not spec.suites.test_per_slice:
            raise SpecError("suites.test_per_slice is 0: arms are compared on the test suite, so give it at least 1")
    folders: dict[str, str] = {}
    for name in arms:
        other = folders.setdefault(folder_name(name), name)
        if other != name:
            raise SpecError(
                f"arms {other!r} and {name!r} would share the folder {folder_name(name)}: rename one of them"
            )
    return {name: resolve(spec) for name, spec in arms.items()}


def begin_process(names: frozenset[str]) -> None:
    """Trust what the study's process trusts, and end with that process, even if it is killed."""
    trust(names)
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, name="end with parent", daemon=True).start()


def _ready(waiting: Sequence[Job], running: Sequence[Job], jobs: int) -> list[Job]:
    """The next jobs whose first stage is finished, up to the number of free processes."""
    unfinished = {job.folder for job in (*waiting, *running) if job.is_first_stage}
    free = [job for job in waiting if job.begun_with not in unfinished]
    return free[: jobs - len(running)]


def plan(arms: Arms, seeds: Sequence[int], out: Path) -> Iterator[Job]:
    """Every job of the study; a shared first stage comes before its runs."""
    beginnings = {name: beginning(Plan.of(spec)) for name, spec in arms.items()}
    often = Counter(beginnings.values())
    for seed in seeds:
        given: set[str] = set()
        for name, spec in arms.items():
            seeded, shared = spec.model_copy(update={"seed": seed}), None
            if often[beginnings[name]] > 1:
                shared = f"{FIRST_STAGE}-{beginnings[name]}"
                if shared not in given:
                    given.add(shared)
                    yield Job(shared, seeded, out)
            yield Job(name, seeded, out, shared)


def beginning(plan: Plan) -> str:
    """Equal for plans with the same first stage. The engineer, the later stages and the names do not count.

    The engineer's ``space`` does count, because a redrawn first config is drawn from it.
    """
    spec, capacity = plan.spec, plan.world.capacity(plan.written)
    alike = spec.model_dump(mode="json", exclude={"name", "description", "engineer", "stages", "guard", "seed"})
    first, count = spec.stages[0].model_dump(mode="json"), len(spec.stages)
    options = spec.engineer.model_dump(mode="json")["options"]
    drawn_from = [options["space"]] if spec.stages[0].redraw and "space" in options else []
    return hashlib.sha256(repr((alike, first, count, capacity, *drawn_from)).encode()).hexdigest()[:8]


def is_done(job: Job) -> bool:
    run = begun(job)
    if run is None:
        return False
    return bool(run.state.done) if job.is_first_stage else next_task(run.plan, run.state) is None


def begun(job: Job) -> RunLog | None:
    """The job's run on disk; None if there is none. Raises ``RunError`` if its folder holds another run.

    A shared first stage may be in the run of any arm that began it, as long as it is the same first stage.
    """
    if not (job.folder / "run.json").exists():
        return None
    run = RunLog.open(job.folder)
    wanted = Plan.of(job.spec)
    if not job.is_first_stage:
        run.raise_unless_of(wanted)
    elif (beginning(run.plan), run.plan.spec.seed) != (beginning(wanted), job.spec.seed):
        raise run.holds_another()
    return run


def do(job: Job, observer: Observer | None = None) -> None:
    """Finish one job in this process. If another process works on it, wait for that."""
    with atomic.in_turn(job.folder):
        run = begun(job) or RunLog.create(job.folder, Plan.of(job.spec))
        if job.is_first_stage:
            loop.continue_run(run, observer, stages=1)
        elif next_task(run.plan, run.state) is not None:
            if job.begun_with is not None:
                run.begin_with(RunLog.open(job.begun_with))
            loop.continue_run(run, observer)


def folder_name(arm: str) -> str:
    """The arm's name as a folder's name, without ``..`` or slashes, which would lead out of the study's folder."""
    named = "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in arm)
    return f"_{named[1:]}" if named.startswith(".") else named


def run_folders(out: Path) -> list[Path]:
    """The runs that a folder holds: of `envtuning run --seeds`, or of the arms of a study; empty for any other folder."""
    checked.raise_on_links_to_runs(out)
    held = [] if out.name.startswith(FIRST_STAGE) else sorted(record.parent for record in out.glob("*/run.json"))
    return held + [path for path in runs_below(out) if not path.parent.name.startswith(FIRST_STAGE)]
