"""A large language model sits the exam: its stored answers, played again, ``python -m benchmarks.exam_model``.

A current large language model was the engineer, by the product's own prompt (version 4), schema and guard, through an OpenAI-compatible server. Each
training had a conversation of its own, five questions long, and one training seed. The model's version is not known. It ran as an agent: it was
told to read its questions and nothing else, and could have read more. A small local model was asked the same, by `envtuning exam --engineer
local/FOLDER --roots 4 --first 1000`. The transcripts are in ``benchmarks/exam_transcripts``, a folder for each sheet; here they are replayed,
beside the bounds and the rules, with their defaults, on the same roots. ``rising`` stands there once more, as a reader of successes alone that was
tuned as such. ``--configs`` writes the configs that resulted beside them.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from shutil import copyfile
from typing import Any, NamedTuple

import numpy as np

from benchmarks._command import arguments_of, command, errors_in_one_sentence, record_if_asked
from benchmarks._points import in_points
from engineers.model.prompt import PROMPT_VERSION
from engineers.model.transcript import read_transcript
from envtuning.errors import RunError
from envtuning.exam.families import named
from envtuning.exam.hall import Hall
from envtuning.exam.reading import Reads
from envtuning.exam.sitting import BOUNDS, OPEN_LOOP, ORACLE, Paper
from envtuning.studies.intervals import t_mean
from envtuning.studies.study import folder_name

HERE = Path(__file__).parent
TRANSCRIPTS, KEPT = HERE / "exam_transcripts", HERE.parent / "runs" / "exam_model"
MODEL, SMALL = "a large language model", "Qwen2.5-Coder-0.5B"


# ``rising`` as a reader of successes alone has settings of its own, which ``benchmarks.exam_rules`` has found.
ON_SUCCESSES = {"keep": 0.3, "sure": 1.0, "gap": 0.1, "flat": 0.1}


class Arm(NamedTuple):
    engineer: str
    reads: Reads
    options: dict[str, Any] = {}  # noqa: RUF012  never changed


class Sheet(NamedTuple):
    """What the model was asked about, and what it read."""

    family: str
    reads: Reads
    model: str = MODEL

    def roots(self, folder: str) -> list[int]:
        return sorted(int(of.name) for of in (TRANSCRIPTS / folder).iterdir())


SHEETS = {
    "scores": Sheet("codes-slow", "scores"),
    "again": Sheet("codes-slow", "scores"),  # four of these roots, asked a second time
    "third": Sheet("codes-slow", "scores"),  # the same four, asked a third time
    "success": Sheet("codes-slow", "success"),
    "yoked": Sheet("codes-slow", "yoked"),
    "reasoning": Sheet("reasoning", "scores"),  # tasks that nobody made for this
    "reasoning-yoked": Sheet("reasoning", "yoked"),
    "small": Sheet("codes-slow", "scores", SMALL),
}

SHOWN = {  # what the columns of the table are called
    "scores": "success and score", "success": "success alone", "yoked": "another training's rates", "reasoning": "`reasoning`",
    "reasoning-yoked": "`reasoning`, another training's rates", "small": SMALL,
}  # fmt: skip


def other_versions() -> str:
    """The prompt's versions in the transcripts, where a replay would refuse them; else empty."""
    versions = sorted({one.prompt_version for one in read_transcript(TRANSCRIPTS)})
    return ", ".join(map(str, versions)) if versions != [PROMPT_VERSION] else ""


def arms(name: str, sheet: Sheet) -> dict[str, Arm]:
    """The model, and whom it is compared with, by name."""
    return {
        sheet.model: Arm(f"replay/{TRANSCRIPTS.relative_to(HERE.parent) / name}", sheet.reads),
        **{bound: Arm(bound, "scores") for bound in BOUNDS},
        "rising": Arm("rising", sheet.reads),
        "rising, tuned for success alone": Arm("rising", "success", ON_SUCCESSES),
        "once": Arm("once", "success"),
        "reader": Arm("reader", sheet.reads),
    }


def keep_configs(hall: Hall, name: str, sheet: Sheet) -> None:
    """Beside each stored transcript, the configs that a replay in this folder has found."""
    engineer = arms(name, sheet)[sheet.model].engineer
    found = list((hall.folder / "transcripts" / folder_name(engineer)).rglob("configs_*.jsonl"))
    for one in found:
        copyfile(one, TRANSCRIPTS / name / one.parent.name.partition("-")[0] / one.name)
    if missing := len(sheet.roots(name)) - len(found):
        print(
            f"{name}: no configs written for {missing} sittings, which were kept by an earlier call: remove {hall.folder} and call again"
        )


def measured(hall: Hall, name: str, sheet: Sheet) -> dict[str, Any]:
    ends, refused, family, roots = {}, 0, named(sheet.family), sheet.roots(name)
    for arm, told in arms(name, sheet).items():
        found = hall.sittings([Paper(family=family, root=root, **told._asdict()) for root in roots])
        ends[arm] = np.array([sitting.end for sitting in found])
        refused += sum(len(sitting.failures) for sitting in found)
    gained, gap = ends[sheet.model] - ends[OPEN_LOOP], ends[ORACLE] - ends[OPEN_LOOP]
    rows = {
        arm: {
            "success": float(end.mean()), "per_root": end.round(4).tolist(),
            "model_minus": None if arm == sheet.model else asdict(t_mean((ends[sheet.model] - end).tolist())),
        }
        for arm, end in ends.items()
    }  # fmt: skip
    return {
        "roots": roots,
        "rows": rows,
        "part_of_the_oracles_gain": float(gained.sum() / gap.sum()),
        "refused": refused,
    }


def table(found: dict[str, Any]) -> list[str]:
    """A column for each sheet: the model's success, and the model minus each arm."""
    sheets = {name: found[name]["rows"] for name in SHOWN}
    arms = [arm for arm in sheets["scores"] if arm != MODEL]
    heads = [f"{title}, {len(found[name]['roots'])} roots" for name, title in SHOWN.items()]
    ends = [f"{100 * rows[SHEETS[name].model]['success']:.1f}" for name, rows in sheets.items()]
    gains = {arm: [in_points(rows[arm]["model_minus"]) for rows in sheets.values()] for arm in arms}
    lines = [
        ["points", *heads],
        ["---", *["---:"] * len(heads)],
        ["success, %", *ends],
        *([f"over {arm}", *of] for arm, of in gains.items()),
    ]
    return [f"| {' | '.join(line)} |" for line in lines]


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--configs", action="store_true", help="write the configs that resulted beside the transcripts")
    arguments = arguments_of(parser)
    hall, found = Hall(KEPT), dict[str, Any]()
    with errors_in_one_sentence():
        if old := other_versions():
            raise RunError(
                f"the transcripts were asked by version {old} of the prompt, which is version {PROMPT_VERSION} now: "
                "check out the commit that benchmarks/results/exam_model.json names"
            )
        for name, sheet in SHEETS.items():
            found[name] = told = measured(hall, name, sheet)
            part = f"{100 * told['part_of_the_oracles_gain']:.0f} % of the oracle's gain"
            print(f"{name}: {len(told['roots'])} roots, {part}", flush=True)
        print(*table(found), sep="\n")
    record_if_asked(arguments, "exam_model", found)
    if arguments.configs:
        for name, sheet in SHEETS.items():
            keep_configs(hall, name, sheet)


if __name__ == "__main__":
    main()
