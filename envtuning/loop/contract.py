"""The trainee's contract. A breach becomes an error of one sentence, so that no run crashes or loops for ever."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from engineers.shared.places import with_place
from engineers.shared.sentences import in_sentences
from engineers.shared.timeouts import NotEnded, run_with_timeout
from envtuning.errors import RunError
from envtuning.outcomes import Tally
from envtuning.runs.checked import Files
from envtuning.runs.spec import Unit
from envtuning.trainees.base import OUTCOMES, Metrics, Trainee, TrainingDiverged, WorkerLost
from envtuning.worlds.episodes import Amounts
from envtuning.worlds.world import InfeasibleConfig

UNITS: tuple[str, ...] = get_args(Unit)
MOST = 10**15  # the largest amount that one call may report as spent
CLOSING = 60.0  # seconds


class TraineeFailed(RunError):
    """The trainee broke its contract or raised an undeclared error; the message says how."""


PASSED_ON = (TrainingDiverged, WorkerLost, InfeasibleConfig, RunError)


@contextmanager
def as_trainee_failed(method: str) -> Iterator[None]:
    """Turns errors of a trainee's method that its contract does not allow into ``TraineeFailed``."""
    try:
        yield
    except PASSED_ON:
        raise
    except Exception as error:
        raise TraineeFailed(f"{method} raised {with_place(error)}") from error


def close(trainee: Trainee) -> None:
    """Close the trainee within ``CLOSING`` seconds. Raises ``TraineeFailed``.

    If a worker has died, a trainee may wait for it for ever (as Gymnasium's ``AsyncVectorEnv`` does); then it is abandoned.
    """
    try:
        run_with_timeout(CLOSING, "closing", trainee.close)
    except NotEnded as error:
        raise TraineeFailed(f"close had not ended after {CLOSING:g} s: the trainee is left as it is") from error
    except Exception as error:
        raise TraineeFailed(f"close raised {with_place(error)}") from error


def read_metrics(given: Any, method: str) -> tuple[Metrics, list[str]]:
    """The numbers among a trainee's metrics, and a sentence for every other value but the outcomes. Infinity and NaN count as numbers."""
    if not isinstance(given, Mapping):
        raise TraineeFailed(f"{method} gave {type(given).__name__} as metrics: give a dict of names and numbers")
    numbers: Metrics = {}
    odd: list[str] = []
    for name, value in given.items():
        if name == OUTCOMES:
            continue
        try:
            if isinstance(value, str | bytes):
                raise TypeError
            numbers[str(name)] = float(value)
        except (TypeError, ValueError, OverflowError):
            odd.append(f"{method} gave {name}={value!r:.60}, which is not a number: left out")
    return numbers, odd


def read_outcomes(given: Mapping[Any, Any], method: str, slices: Collection[str]) -> Tally:
    """The outcomes among a trainee's metrics; without any, an empty tally. ``slices`` are those of the config."""
    told = given.get(OUTCOMES)
    try:
        tally = Tally.model_validate({} if told is None else told)
    except ValidationError as error:
        raise TraineeFailed(f"{method}: {in_sentences(error, OUTCOMES)}") from error
    if strangers := sorted((tally.first.keys() | tally.repeats.keys()).difference(slices)):
        raise TraineeFailed(
            f"{method} gave outcomes of slice {strangers[0]!r:.60}, and the stage's config has {', '.join(slices):.200}: name the "
            "slices as the config does"
        )
    return tally


def amounts_in(metrics: Metrics, method: str) -> Amounts:
    """The amounts spent, by unit, from the metrics. Raises ``TraineeFailed`` for a value that cannot be an amount."""
    found: Amounts = {}
    for unit in UNITS:
        value = metrics.get(unit, 0.0)
        if not 0 <= value <= MOST:  # NaN too
            raise TraineeFailed(f"{method} reported {unit}={value}: report what was spent, from 0 to {MOST:.0e}")
        if value:
            found[unit] = round(value)
    return found


def raise_unless_spent(trained: Amounts, unit: str, asked: int) -> None:
    """Raises ``TraineeFailed`` if a call spent nothing: it would be repeated for ever."""
    if trained.get(unit, 0) > 0:
        return
    other = ", ".join(f"{amount:,} {name}" for name, amount in trained.items() if amount)
    raise TraineeFailed(
        f"train was given {asked:,} {unit} to spend and reported {other or 'nothing'} spent: report {unit!r} in the metrics "
        "that it returns or gives to on_iteration, or set the run's `unit` to one that it reports"
    )


def load_checkpoint(trainee: Trainee, files: Files, folder: Path) -> None:
    """Load a checkpoint into the trainee. Raises ``RunError`` if the files are damaged, ``TraineeFailed`` if the trainee cannot load them."""
    files.raise_unless_as_written(folder)
    with as_trainee_failed(f"load of {folder}"):
        trainee.load(folder)


def save_checkpoint(save: Callable[[Path], None], draft: Path) -> None:
    """Let the trainee write into the draft. Raises ``TraineeFailed`` if it wrote nothing."""
    with as_trainee_failed("save"):
        save(draft)
    if not any(path.is_file() for path in draft.rglob("*")):
        raise TraineeFailed("save wrote nothing into its folder: write all that load needs there")
