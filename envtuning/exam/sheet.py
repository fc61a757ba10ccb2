"""An exam's result as a file: all sittings with their scores. ``verify`` plays it again, and trusts nothing that it says."""

from __future__ import annotations

import platform
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engineers.shared.sentences import in_sentences
from engineers.shared.untrusted import NotReadable, parsed, read_bytes
from envtuning import atomic
from envtuning.errors import RunError
from envtuning.exam.families import is_what_it_says
from envtuning.exam.hall import root_by_root, workers
from envtuning.exam.scores import scores
from envtuning.exam.sitting import BOUNDS, NEVER_ASK, Paper, Sitting, replayed, sit

VERSION: Literal[1] = 1
TOLERANCE = 0.03  # of a sitting's mean success on another kind of machine, where sums are rounded otherwise


class Sheet(BaseModel):
    """What ``envtuning exam --json`` writes."""

    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = VERSION
    machine: str  # and what computes on it
    sittings: list[Sitting] = Field(min_length=1, max_length=100_000)
    scores: list[dict[str, Any]]


class Fault(NamedTuple):
    sitting: int  # its place in the file
    why: str


def this_machine() -> str:
    return f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}, numpy {np.__version__}"


def write(sittings: Sequence[Sitting], path: Path) -> None:
    sheet = Sheet(machine=this_machine(), sittings=list(sittings), scores=list(map(asdict, scores(sittings))))
    atomic.write_text(path, sheet.model_dump_json(indent=1) + "\n")


def read(path: Path) -> Sheet:
    """Raises ``RunError`` for what is no exam's result."""
    try:
        found = read_bytes(path)
        if found is None:
            raise RunError(f"{path} is missing: give a file that `envtuning exam --json` has written")
        return Sheet.model_validate(parsed(found))
    except ValidationError as error:
        raise RunError(f"{path} is no result of an exam: {in_sentences(error)}") from error
    except NotReadable as error:
        raise RunError(f"{path} is no result of an exam: {error}") from error


def verify(sheet: Sheet, jobs: int = 1, ray: bool = False) -> Generator[Fault | None]:
    """Plays every sitting again, so many at a time: None for one that holds, else what is wrong with it. They come as they end, the scores last.

    Shares are trained with again, whoever chose them. An engineer of this package that asks no model is asked again, too. On the kind of
    machine that made the file, all must be equal; elsewhere mean success must be within ``TOLERANCE``.
    """
    same, works = sheet.machine == this_machine(), list[tuple[Paper, Callable[[], Fault | None]]]()
    for place, sitting in enumerate(sheet.sittings):
        if why := senseless(sitting):  # told before its root is trained
            yield Fault(place, why)
        else:
            works.append((sitting.paper, partial(fault_of, place, sitting, same)))
    if jobs == 1 and not ray:
        yield from (work() for _, work in works)
    else:
        with workers(jobs, ray) as pool:
            yield from root_by_root(pool, works, len(works) if ray else jobs)
    try:
        hold = list(map(asdict, scores(sheet.sittings))) == sheet.scores
    except Exception:  # bounds are missing, or numbers are beyond all sums
        hold = False
    yield None if hold else Fault(len(sheet.sittings), "the scores are not those of the sittings")


def senseless(sitting: Sitting) -> str:
    """Why it can be no sitting, as far as that is seen without playing it; empty if nothing is."""
    paper = sitting.paper
    if not is_what_it_says(paper.family):
        return f"its family is not {paper.family.name}"
    if len(sitting.shares) != paper.decisions or any(len(part) != paper.family.tasks for part in sitting.shares):
        return "its shares are not those of its stages and tasks"
    if not all(min(part) >= 0 < sum(part) for part in sitting.shares):
        return "its shares are no parts of the data"
    if paper.engineer not in BOUNDS and len(set(sitting.shares[0])) > 1:
        return "its first stage does not draw evenly"
    return ""


def fault_of(place: int, sitting: Sitting, same: bool) -> Fault | None:
    try:
        why = wrong(sitting, same)
    except Exception as error:  # the file may ask for anything
        why = f"it cannot be played ({type(error).__name__}: {error!s:.200})"
    return Fault(place, why) if why else None


def wrong(sitting: Sitting, same: bool) -> str:
    """What differs when it is played again; empty if nothing does."""
    paper = sitting.paper
    asked_again = same and paper.engineer in NEVER_ASK
    if asked_again and sit(paper) == sitting:
        return ""
    again = replayed(paper, sitting.shares)
    if same and again != sitting.success:
        return f"a training with its shares ends at {np.mean(again):.4f}, not at {sitting.end:.4f}"
    if len(again) != len(sitting.success) or abs(float(np.mean(again)) - sitting.end) > TOLERANCE:
        return f"a training with its shares ends at {np.mean(again):.3f}, more than {TOLERANCE} from {sitting.end:.3f}"
    return f"{paper.engineer} decides otherwise" if asked_again else ""
