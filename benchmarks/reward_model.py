"""A large language model as the engineer of training by reward, ``python -m benchmarks.reward_model``.

It is an arm of ``benchmarks.reward_study``, on the first three of its roots with the first seed: the same learner, budget and tests, and the
same eleven decisions. It had the product's own prompt (version 4), schema and guard. Each training had a conversation of its own. The
model's version is not known. It ran as an agent that was told to read its questions and nothing else, and could have read more. Three roots
were all that was planned, so this shows what is possible, and no more.

The transcripts are in ``benchmarks/reward_transcripts``, a folder for each root. Here they are replayed, beside the study's arms on the same
roots. ``--ask URL --root R`` asks the OpenAI-compatible server at this address and writes root R's transcript.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks._command import arguments_of, command, errors_in_one_sentence, record_if_asked
from benchmarks._points import in_points
from benchmarks.exam_rules import compared
from benchmarks.reward_learner import Learner
from benchmarks.reward_study import (
    BUDGET,
    FAMILY,
    KEPT,
    LAST,
    MEASURES,
    ROOTS,
    STAGES,
    Arm,
    Point,
    Run,
    Runs,
    by_root,
    paper_of,
    points_of,
    runs_of,
)
from engineers.model.transcript import TranscriptError
from envtuning.curriculum.engineer_curriculum import EngineerCurriculum
from envtuning.exam.roots import tasks_of
from envtuning.exam.session import Start
from envtuning.exam.sitting import examined

HERE = Path(__file__).parent
TRANSCRIPTS = HERE / "reward_transcripts"
ASKED = ROOTS[:3]
MODEL = "a large language model"
PATIENCE = 3600.0  # seconds of one answer


def followed(engineer: str, root: int, transcript: Path | None = None) -> tuple[list[Point], list[str]]:
    """The tests of a run under this engineer's decisions, and the decisions that were refused."""
    arm, start = Arm(engineer), Start(root)
    learner = Learner(arm.family, start, STAGES, refill=False)
    curriculum = examined(paper_of(arm, start), learner.session, transcript, {"timeout": PATIENCE})
    assert isinstance(curriculum, EngineerCurriculum)
    points = points_of(arm, learner, curriculum)
    return points, [incident.message for incident in curriculum.incidents]


def replayed(root: int) -> list[Point]:
    points, refused = followed(f"replay/{TRANSCRIPTS.relative_to(HERE.parent)}/{root}", root)
    if refused:
        raise TranscriptError(f"root {root} does not replay: {refused[0]}")
    return points


def beside_the_study(jobs: int, kept: Path) -> Runs:
    """The model's runs, and those of the study's arms on the same roots."""
    runs: dict[str, Any] = {MODEL: [[Run(replayed(root), tasks_of(FAMILY, root).kind)] for root in ASKED]}
    return runs | dict(runs_of(ASKED, (0,), jobs, kept))


def table(runs: Runs, replies: int) -> dict[str, Any]:
    found = {arm: by_root(of, "replies", replies) for arm, of in runs.items()}
    return {
        arm: {name: float(columns[name].mean()) for name in MEASURES}
        | {
            "per_root": columns["all"].round(4).tolist(),
            "model_minus": None if arm == MODEL else compared(found[MODEL]["all"], columns["all"]),
        }
        for arm, columns in found.items()
    }


def lines(rows: Mapping[str, Any]) -> list[str]:
    return [
        f"| {arm} | {' | '.join(f'{100 * row[name]:.1f}' for name in MEASURES)} | "
        f"{in_points(row['model_minus']) if row['model_minus'] else ''} |"
        for arm, row in rows.items()
    ]


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (2)")
    parser.add_argument("--ask", metavar="URL", help="ask this server, and write the transcript")
    parser.add_argument("--root", type=int, choices=ASKED, help="with --ask: the root")
    arguments = arguments_of(parser)
    with errors_in_one_sentence():
        if arguments.ask:
            if arguments.root is None:
                parser.error("--ask needs --root: which training the answers are for")
            followed(
                f"server/{arguments.ask}#model",
                arguments.root,
                TRANSCRIPTS / str(arguments.root) / "transcript.jsonl",
            )
            return
        runs = beside_the_study(arguments.jobs, KEPT / "runs.jsonl")
        tables = {f"{amount} replies": table(runs, amount) for amount in (BUDGET, LAST)}
        for place, rows in tables.items():
            print(f"at {place}:", *lines(rows), sep="\n", flush=True)
    record_if_asked(arguments, "reward_model", {"roots": list(ASKED), "tables": tables})


if __name__ == "__main__":
    main()
