"""A large language model as the engineer of training by reward, ``python -m benchmarks.reward_model``.

It is an arm of ``benchmarks.reward_study``, on the first six of its roots with the first seed: the same learner, budget and tests, and the
same eleven decisions. It had the product's own prompt (version 4, with intervals by question), schema and guard. Each training had a
conversation of its own. The model's version is not known. It ran as an agent that was told to read its questions and nothing else, and could
have read more. A control is *yoked*, on the first three roots: the counts are its own, and the rates are those of a run of ``rising`` on
another root. Six roots and three were planned before the first question was asked.

The transcripts are in ``benchmarks/reward_transcripts``, a folder for each root, with the configs that came of the answers. Here these configs are
trained on, beside the study's arms on the same roots. (The questions are not asked again: another kind of processor rounds in another way, and after
a hundred updates a count in a question is 430 instead of 429. ``reward_model`` has the trainings in which the model was asked, ``reward_model_again`` those
of the same configs on such a processor.) ``--ask URL --root R`` asks the OpenAI-compatible server at this address and writes
root R's transcript, ``--yoked`` that of the control.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    RISING,
    ROOTS,
    STAGES,
    Arm,
    Point,
    Run,
    Runs,
    by_root,
    by_task,
    paper_of,
    points_of,
    runs_of,
)
from engineers import Engineer, Proposal, StageReport
from engineers.proposal import ConfigT
from envtuning.curriculum.engineer_curriculum import EngineerCurriculum
from envtuning.errors import RunError
from envtuning.exam.roots import tasks_of
from envtuning.exam.session import Start
from envtuning.exam.sitting import examined

HERE = Path(__file__).parent
TRANSCRIPTS = HERE / "reward_transcripts"
ASKED, YOKED = ROOTS[:6], ROOTS[:3]
MODEL, CONTROL = "a large language model", "a large language model, yoked"
PATIENCE = 3600.0  # seconds of one answer


class AsChosen(Engineer):
    """Answers with the config that came of the recorded answer to the same stage."""

    name = "as-chosen"

    def __init__(self, configs: Mapping[int, Mapping[str, Any]]) -> None:
        self.configs = configs

    def propose(
        self, report: StageReport, current: ConfigT, editable: Sequence[str] | None = None
    ) -> Proposal[ConfigT]:
        return Proposal(config=type(current).model_validate(self.configs[report.stage]), engineer=self.name)


def followed(
    engineer: str | Engineer, root: int, transcript: Path | None = None, *, yoked: bool = False
) -> tuple[list[Point], list[str]]:
    """The tests of a run under this engineer's decisions, and the decisions that were refused."""
    start = Start(root)
    learner = Learner(FAMILY, start, STAGES, refill=False)
    name, given = (engineer, None) if isinstance(engineer, str) else (engineer.name, engineer)
    curriculum = examined(paper_of(Arm(name), start), learner.session, transcript, {"timeout": PATIENCE}, given)
    assert isinstance(curriculum, EngineerCurriculum)
    points = points_of(Arm(RISING, yoked=yoked), learner, curriculum)  # a donor's run is that of ``rising``
    return points, [incident.message for incident in curriculum.incidents]


def folder_of(root: int, *, yoked: bool = False) -> Path:
    return TRANSCRIPTS / "yoked" / str(root) if yoked else TRANSCRIPTS / str(root)


def configs_of(root: int, *, yoked: bool = False) -> dict[int, Mapping[str, Any]]:
    """The config that came of each answer, by the stage that it was asked about."""
    lines = (folder_of(root, yoked=yoked) / "configs_transcript.jsonl").read_text(encoding="utf-8").splitlines()
    return {line["stage"]: line["config"] for line in map(json.loads, lines)}


def as_chosen(root: int, *, yoked: bool = False) -> Run:
    points, refused = followed(AsChosen(configs_of(root, yoked=yoked)), root)
    if refused:
        raise RunError(f"root {root}: {refused[0]}")
    return Run(points, tasks_of(FAMILY, root).kind)


def beside_the_study(jobs: int, kept: Path) -> tuple[Runs, Runs]:
    """The model's runs and those of the study's arms on the same roots; the same with the control, on its roots."""
    arms = dict(runs_of(ASKED, (0,), jobs, kept))
    asked: dict[str, Any] = {MODEL: [[as_chosen(root)] for root in ASKED]} | arms
    control: dict[str, Any] = {CONTROL: [[as_chosen(root, yoked=True)] for root in YOKED]}
    return asked, control | {arm: of[: len(YOKED)] for arm, of in asked.items()}


def table(runs: Runs, replies: int) -> dict[str, Any]:
    """The arms at one place, and the difference of the first to each."""
    first = next(iter(runs))
    found = {arm: by_root(of, "replies", replies) for arm, of in runs.items()}
    return {
        arm: {name: float(columns[name].mean()) for name in MEASURES}
        | {
            "per_root": columns["all"].round(4).tolist(),
            "model_minus": None if arm == first else compared(found[first]["all"], columns["all"]),
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
    parser.add_argument("--name", default="reward_model", help="of the stored figures")
    parser.add_argument("--ask", metavar="URL", help="ask this server, and write the transcript")
    parser.add_argument("--root", type=int, choices=ASKED, help="with --ask: the root")
    parser.add_argument("--yoked", action="store_true", help="with --ask: the control")
    arguments = arguments_of(parser)
    with errors_in_one_sentence():
        if arguments.ask:
            if arguments.root is None:
                parser.error("--ask needs --root: which training the answers are for")
            place = folder_of(arguments.root, yoked=arguments.yoked) / "transcript.jsonl"
            followed(f"server/{arguments.ask}#model", arguments.root, place, yoked=arguments.yoked)
            return
        asked, control = beside_the_study(arguments.jobs, KEPT / "runs.jsonl")
        tables = [{f"{amount} replies": table(runs, amount) for amount in (BUDGET, LAST)} for runs in (asked, control)]
        for replies, rows in [*tables[0].items(), *tables[1].items()]:
            print(f"at {replies}:", *lines(rows), sep="\n", flush=True)
        tasks = {f"{amount} replies": by_task(asked[MODEL], "replies", amount) for amount in (BUDGET, LAST)}
    figures = {
        "roots": list(ASKED),
        "by task": tasks,
        "tables": tables[0],
        "yoked": {"roots": list(YOKED), "tables": tables[1]},
    }
    record_if_asked(arguments, arguments.name, figures)


if __name__ == "__main__":
    main()
