"""``python -m benchmarks.bfcl TABLE --version v4``: figures of the tool-use world, stored in benchmarks/results unless --no-record is given."""

from __future__ import annotations

import argparse
import importlib
import json

from benchmarks._record import record
from engineers.shared.ending import ends_when_asked
from engineers.shared.printing import printing_any_character
from envtuning.worlds.bfcl.reply_format import REPLY_FORMATS

TABLES = (
    "ground-truth",
    "agreement",
    "baselines",
    "memory",
    "actionability",
    "four-stages",
    "ablations",
    "held-out",
    "model",
    "language",
)

OPTIONS = (
    "fork",
    "traces",
    "out",
    "jobs",
    "seeds",
    "budget",
    "model",
    "answers",
    "reply_format",
    "max_cost",
    "max_tokens",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bfcl", description=__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--version", default="v4", choices=["v4", "v3-paper"], help="one per process")
    parser.add_argument("--no-record", action="store_true", help="print only")
    parser.add_argument("--json", action="store_true", help="print all figures as they are stored, instead of a table")
    parser.add_argument("--fork", help="actionability: a folder of tool classes whose messages get rows of their own")
    parser.add_argument("--traces", help="actionability: a stage's episodes.json, whose mistakes weight the rows")
    parser.add_argument("--out", help="ablations, held-out: where the runs are kept; finished ones are not run again")
    parser.add_argument("--model", help="model: openai/NAME, server/http://HOST:PORT/v1#NAME, local/FOLDER, …")
    parser.add_argument("--answers", help="model: the file that keeps the replies; what it holds is not asked again")
    parser.add_argument("--reply-format", choices=REPLY_FORMATS, help="model: how replies must be written")
    parser.add_argument("--max-cost", type=float, help="model: US dollars for the whole file")
    parser.add_argument("--max-tokens", type=int, help="model: of one reply")
    parser.add_argument("--seeds", type=int, help="ablations, held-out: only the first so many seeds")
    parser.add_argument("--budget", type=float, help="ablations, held-out: only this part of the preset's budgets")
    parser.add_argument("--jobs", type=int, help="ablations, held-out: so many runs at once")
    arguments = parser.parse_args()
    if arguments.table == "model" and arguments.model is None:
        parser.error("the table model needs --model")
    name = arguments.table.replace("-", "_")
    module = importlib.import_module(f"benchmarks.bfcl.{name}")
    options = {option: given for option in OPTIONS if (given := getattr(arguments, option))}
    figures = module.run(arguments.version, **options)
    as_table = hasattr(module, "table") and not arguments.json
    print(module.table(figures) if as_table else json.dumps(figures, indent=1))
    if not arguments.no_record:
        record(f"bfcl_{name}_{arguments.version}", figures)


if __name__ == "__main__":
    with printing_any_character(), ends_when_asked("interrupted"):
        main()
