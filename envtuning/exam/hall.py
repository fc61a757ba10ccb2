"""Carries out sittings, several at a time; each is kept as soon as it ends, so an interrupted exam continues where it stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from engineers.registry import PLAIN_ENGINEERS, own_code
from engineers.shared.untrusted import NotReadable, parsed_lines, read_bytes
from envtuning import atomic
from envtuning.errors import RunError
from envtuning.exam.families import DECISIONS, Family
from envtuning.exam.reading import Reads
from envtuning.exam.roots import root
from envtuning.exam.session import Start
from envtuning.exam.sitting import BOUNDS, NEVER_ASK, SAMPLERS, Paper, Sitting, sit
from envtuning.studies.study import folder_name, left_at_once, processes

READS_NOTHING = ("fixed", "uniform", "schedule", "ladder", "target-only", "warm-target", "mixture", "near-uniform")
WITHOUT_A_MODEL = (*(name for name in PLAIN_ENGINEERS if name not in READS_NOTHING), *SAMPLERS)
KEPT = "sittings.jsonl"
Done = TypeVar("Done")


def papers(
    engineers: Sequence[str], families: Sequence[Family], starts: Sequence[Start], *,
    decisions: int = DECISIONS, reads: Reads = "scores",
) -> list[Paper]:  # fmt: skip
    """The bounds and the engineers, root by root, so that an exam that is cut short has whole roots."""
    for family in families:
        family.stage(decisions)
    codes = [(name, own_code(name)) for name in (*BOUNDS, *engineers)]
    return [
        Paper(
            engineer=name, code=code, family=family, root=start.root, training=start.training, decisions=decisions,
            reads="scores" if name in BOUNDS else reads,
        )
        for family in families for start in starts for name, code in codes
    ]  # fmt: skip


@dataclass(frozen=True)
class Hall:
    """A folder of sittings."""

    folder: Path
    jobs: int = 1
    ray: bool = False
    max_cost: float | None = None  # of all questions together, in US dollars
    timeout: float = 600.0  # seconds of one answer

    def kept(self) -> dict[str, Sitting]:
        """What is done, by paper. A last line that is not whole is left out, and left: another process may be writing it."""
        path = self.folder / KEPT
        try:
            found = [Sitting.model_validate(line) for line in parsed_lines(read_bytes(path) or b"")]
        except (NotReadable, ValidationError) as error:
            raise RunError(f"{path} is damaged ({type(error).__name__}): remove it, or give another folder") from error
        return {sitting.paper.key: sitting for sitting in found}

    def sittings(self, asked: Sequence[Paper], ended: Callable[[Sitting], None] = lambda one: None) -> list[Sitting]:
        """All of them, in order; those that are not kept yet are carried out."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic.in_turn(self.folder):
            done, path = self.kept(), self.folder / KEPT
            # Or the next line would follow one that a kill has cut off.
            atomic.whole_lines(path, (read_bytes(path) or b"").decode())
            waiting = [paper for paper in asked if paper.key not in done]
            # Closed, or its processes would outlive an interruption.
            with closing(self._carried_out(waiting, done)) as carried_out:
                for sitting in carried_out:
                    atomic.append_line(path, sitting.model_dump(mode="json"))
                    done[sitting.paper.key] = sitting
                    ended(sitting)
        return [done[paper.key] for paper in asked]

    def _carried_out(self, waiting: Sequence[Paper], done: dict[str, Sitting]) -> Generator[Sitting]:
        if (self.jobs == 1 and not self.ray) or not waiting:
            yield from (sit(paper, **self._told(paper, done.values())) for paper in waiting)
            return
        with workers(self.jobs, self.ray) as pool:
            capped = [paper for paper in waiting if self.max_cost is not None and paper.engineer not in NEVER_ASK]
            free = [paper for paper in waiting if paper not in capped]
            works = [(paper, partial(sit, paper, **self._told(paper, done.values()))) for paper in free]
            yield from root_by_root(pool, works, len(works) if self.ray else self.jobs)
            for paper in capped:  # one after the other, so that each knows what those before it have spent
                yield pool.submit(partial(sit, paper, **self._told(paper, done.values()))).result()

    def _told(self, paper: Paper, done: Iterable[Sitting]) -> dict[str, Any]:
        """What a sitting is told beyond its paper: where to keep the questions, and what may still be spent."""
        if paper.engineer in (*BOUNDS, *SAMPLERS):
            return {}
        limits: dict[str, Any] = {"timeout": self.timeout}
        if self.max_cost is not None:  # whoever asks no model ignores it
            limits["max_cost"] = max(0.0, self.max_cost - sum(one.usage.cost or 0.0 for one in done))
        if paper.engineer in NEVER_ASK:  # one of one's own may ask: whoever asks nothing writes nothing
            return {"limits": limits}
        # What was asked before a change of one's own code is no answer of the engineer that it is now.
        place = self.folder / "transcripts" / folder_name(paper.engineer) / paper.code / paper.family.name
        unlike = paper.model_dump(include={"options", "decisions", "reads"}, exclude_defaults=True).values()
        run = folder_name("-".join(map(str, (paper.root, paper.training, *unlike))))
        return {"transcript": place / run / "transcript.jsonl", "limits": limits}


def workers(jobs: int, ray: bool) -> AbstractContextManager[Executor]:
    """So many processes, or a Ray cluster."""
    return left_at_once(_cluster() if ray else processes(jobs))


def root_by_root(pool: Executor, works: Iterable[tuple[Paper, Callable[[], Done]]], ahead: int) -> Iterator[Done]:
    """What these works return, each as soon as it ends. Those on a root begin once it is trained, so that no two processes train the same one.

    So many roots are trained ahead of the works: enough for every process, and the first works need not wait for the last root.
    """
    on: dict[tuple[Family, int], list[Callable[[], Done]]] = {}
    for paper, work in works:
        on.setdefault((paper.family, paper.root), []).append(work)
    untrained, running = iter(on), dict[Future[Any], list[Callable[[], Done]] | None]()

    def train(count: int) -> None:
        running.update({pool.submit(root, *of): on[of] for of in islice(untrained, count)})

    train(ahead)
    while running:
        for done in wait(running, return_when=FIRST_COMPLETED).done:
            follow = running.pop(done)
            if follow is None:
                yield done.result()
            else:  # a root that cannot be trained fails again in its works, which say so
                running |= {pool.submit(work): None for work in follow}
                train(1)


def available_cores() -> int:
    """The cores this process may run on. As in ``mapf_frozenlake.threads``, whose import would load Numba into an exam that needs none."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cluster() -> Executor:
    from envtuning.studies.on_ray import Tasks

    return Tasks()
