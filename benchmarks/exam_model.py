"""A large language model sits the exam: its stored answers, played again, ``python -m benchmarks.exam_model``.

A current large language model was the engineer of ``codes-slow``, by the product's own prompt (version 3), schema and guard, through an
OpenAI-compatible server: on eight roots it read successes and scores, on four of them, in other conversations, successes alone. Each training had
a conversation of its own, five questions long, and no answer was refused. The model's version is not known. It ran as an agent: it was told to
read its questions and nothing else, and could have read more. Every training was asked once. The transcripts are in
``benchmarks/exam_transcripts``; here they are replayed, beside the rules of ``python -m benchmarks.exam_rules`` on the same roots.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._command import arguments_of, command, errors_in_one_sentence, record_if_asked
from benchmarks._points import in_points
from benchmarks._record import RESULTS
from engineers.model.prompt import PROMPT_VERSION
from engineers.model.transcript import read_transcript
from engineers.shared.errors import UserError
from envtuning.exam.families import CODES
from envtuning.exam.hall import Hall
from envtuning.exam.reading import Reads
from envtuning.exam.sitting import BOUNDS, OPEN_LOOP, ORACLE, Paper
from envtuning.studies.intervals import t_mean

HERE = Path(__file__).parent
TRANSCRIPTS, KEPT = HERE / "exam_transcripts", HERE.parent / "runs" / "exam_model"
MODEL = "a large language model"
ROOTS: dict[Reads, tuple[int, ...]] = {"scores": tuple(range(1000, 1008)), "success": (1000, 1002, 1004, 1005)}


def asked_by() -> str:
    """The prompt's versions in the transcripts, where a replay would refuse them; else empty."""
    versions = sorted({one.prompt_version for one in read_transcript(TRANSCRIPTS)})
    return ", ".join(map(str, versions)) if versions != [PROMPT_VERSION] else ""


def arms(reads: Reads) -> dict[str, tuple[str, Reads, dict[str, Any]]]:
    """The model, and whom it is compared with: by name the engineer, what it reads and its options."""
    settings = json.loads((RESULTS / "exam_rules.json").read_text(encoding="utf-8"))["figures"]["settings"]
    return {
        MODEL: (f"replay/{TRANSCRIPTS.relative_to(HERE.parent) / reads}", reads, {}),
        **{bound: (bound, "scores", {}) for bound in BOUNDS},
        "rising": ("rising", reads, settings[f"rising, {reads}"]),
        "once": ("once", "success", settings["once, success"]),
        "reader": ("reader", reads, {}),
    }


def measured(hall: Hall, of: Reads) -> dict[str, Any]:
    ends, refused = {}, 0
    for name, (engineer, reads, options) in arms(of).items():
        asked = [Paper(engineer=engineer, options=options, family=CODES, root=root, reads=reads) for root in ROOTS[of]]
        found = hall.sittings(asked)
        ends[name] = np.array([sitting.end for sitting in found])
        refused += sum(len(sitting.failures) for sitting in found)
    gained, gap = ends[MODEL] - ends[OPEN_LOOP], ends[ORACLE] - ends[OPEN_LOOP]
    rows = {
        name: {
            "success": float(end.mean()), "per_root": end.round(4).tolist(),
            "model_minus": None if name == MODEL else asdict(t_mean((ends[MODEL] - end).tolist())),
        }
        for name, end in ends.items()
    }  # fmt: skip
    return {"rows": rows, "part_of_the_oracles_gain": float(gained.sum() / gap.sum()), "refused": refused}


def lines(found: dict[str, Any]) -> list[str]:
    return [
        f"| {name} | {100 * row['success']:.1f} | {in_points(row['model_minus']) if row['model_minus'] else ''} |"
        for name, row in found["rows"].items()
    ]


def main() -> None:
    arguments = arguments_of(command(__doc__))
    with errors_in_one_sentence():
        if asked_by():
            raise UserError(
                f"the transcripts were asked by version {asked_by()} of the prompt, which is version {PROMPT_VERSION} now: "
                "check out the commit that benchmarks/results/exam_model.json names"
            )
        found = {reads: measured(Hall(KEPT), reads) for reads in ROOTS}
    for reads, told in found.items():
        print(
            f"reads {reads}:",
            *lines(told),
            f"{100 * told['part_of_the_oracles_gain']:.0f} % of the oracle's gain",
            sep="\n",
        )
    record_if_asked(arguments, "exam_model", found)


if __name__ == "__main__":
    main()
