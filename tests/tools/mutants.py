"""``make mutants``: what the tests let pass. Random one-line faults are put into a copy of the code, and its tests are run.

Each mutant changes one place of one line (a comparison, a number, a branch, an operand left out) in a module of ``envtuning`` or
``engineers``; then the test files of that module run. A mutant that they pass is a *survivor*: either it changes nothing that
anybody could see (an equivalent one: ``equivalent_mutants.json`` lists those that a reader found, with the reason), or a rule
that no test states. Minutes to hours::

    python tests/tools/mutants.py --count 60 --seed 0
    python tests/tools/mutants.py --only envtuning/loop/ask.py --count 20
    python tests/tools/mutants.py --seed 1 --keep verdicts.json   # interrupted: the same continues
    python tests/tools/mutants.py --seed 1 --keep verdicts.json --again   # survivors meet the tests that were written since
    python tests/tools/mutants.py --seed 1 --keep verdicts.json --record   # to benchmarks/results
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("engineers", "envtuning")
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
EVERYWHERE = "tests/project/test_encodings.py"  # a rule of every module
TIMEOUT = 3600  # seconds; a mutant that hangs a test is killed by that test's own limit long before

# The tests of a module, by the longest prefix of its path; cheap files first, because the first failure ends the question.
TESTS: dict[str, tuple[str, ...]] = {
    "engineers": ("tests/engineers --ignore=tests/engineers/backends",),
    "engineers/plain": (
        "tests/engineers/test_steps.py",
        "tests/engineers/test_rules.py",
        "tests/engineers/test_way.py",
        "tests/engineers/test_able.py",
        "tests/engineers/test_plain.py",
        "tests/engineers/test_registry.py",
    ),
    "engineers/backends": ("tests/engineers/backends",),
    "engineers/backends/live.py": ("tests/engineers/backends/test_extras.py", "tests/language/test_live_engineers.py"),
    "engineers/model/structured": ("tests/engineers/backends/test_structured.py",),
    "engineers/cli.py": ("tests/engineers/test_cli.py",),
    "engineers/__init__.py": ("tests/project/test_moved.py", "tests/project/test_imports.py"),
    "engineers/ending.py": ("tests/envtuning/test_ending.py",),
    "engineers/moved.py": ("tests/project/test_moved.py",),
    "engineers/own.py": ("tests/engineers/test_own.py", "tests/engineers/test_registry.py"),
    "engineers/terminal.py": ("tests/envtuning/test_hostile_files.py",),
    "envtuning": ("tests/envtuning/test_stages.py", "tests/envtuning/test_cli.py"),
    "envtuning/atlas": ("tests/atlas/test_parts.py", "tests/atlas"),
    "envtuning/base_help.py": ("tests/project/test_base_help.py",),
    "envtuning/cli": (
        "tests/envtuning/test_commands.py",
        "tests/envtuning/test_cli.py",
        "tests/envtuning/test_hostile_files.py",
    ),
    "envtuning/loop": (
        "tests/envtuning/test_transitions.py",
        "tests/envtuning/test_fading.py",
        "tests/envtuning/test_bookkeeping.py",
        "tests/envtuning/test_accounting.py",
        "tests/envtuning/test_stage_rules.py",
        "tests/envtuning/test_inside_rules.py",
        "tests/envtuning/test_asking.py",
        "tests/envtuning/test_stages.py",
        "tests/envtuning/test_stages_failures.py",
        "tests/envtuning/test_validation.py",
        "tests/envtuning/test_observers.py",
        "tests/envtuning/test_contract.py",
        "tests/envtuning/test_recorded_runs.py",
    ),
    "envtuning/runs": (
        "tests/envtuning/test_run_keys.py",
        "tests/envtuning/test_checked.py",
        "tests/envtuning/test_runs_atomic.py",
        "tests/envtuning/test_unknown_fields.py",
        "tests/envtuning/test_accounting.py",
        "tests/envtuning/test_stage_rules.py",
        "tests/envtuning/test_inside_rules.py",
        "tests/envtuning/test_stages.py",
        "tests/envtuning/test_runs_storage.py",
        "tests/envtuning/test_cli.py",
        "tests/envtuning/test_damaged_folders.py",
        "tests/envtuning/test_hostile_files.py",
    ),
    "envtuning/loop/__init__.py": ("tests/project/test_moved.py",),
    "envtuning/curriculum": ("tests/envtuning/test_curriculum_rules.py", "tests/envtuning/test_wrappers.py"),
    "envtuning/curriculum/rllib_callback.py": (
        "tests/envtuning/test_rllib_stock.py",
        "tests/envtuning/test_rllib_trainee.py",
    ),
    "envtuning/curriculum/sb3_callback.py": ("tests/envtuning/test_sb3_callback.py",),
    "envtuning/curriculum/trl_callback.py": ("tests/language/test_trl_doors.py",),
    "envtuning/show": (
        "tests/envtuning/test_console.py",
        "tests/page",
        "tests/envtuning/test_tensorboard.py",
        "tests/envtuning/test_cli.py",
    ),
    "envtuning/show/page": ("tests/page", "tests/envtuning/test_cli.py"),
    "envtuning/extras.py": ("tests/envtuning/test_cli.py",),
    "envtuning/__main__.py": ("tests/project/test_base_help.py", "tests/envtuning/test_cli.py"),
    "envtuning/__init__.py": ("tests/project/test_moved.py", "tests/project/test_imports.py"),
    "envtuning/studies": (
        "tests/envtuning/test_study_parts.py",
        "tests/envtuning/test_statistics.py",
        "tests/envtuning/test_compare.py",
        "tests/envtuning/test_study.py",
        "tests/envtuning/test_tune.py",
    ),
    "envtuning/studies/credit.py": ("tests/envtuning/test_study_parts.py", "tests/atlas/test_credit.py"),
    "envtuning/studies/readers.py": ("tests/envtuning/test_study_parts.py", "tests/language/test_readers.py"),
    "envtuning/testing": ("tests/envtuning/test_promises.py", "tests/envtuning/test_testing.py"),
    "envtuning/trainees": ("tests/envtuning/test_stages.py", "tests/envtuning/test_validation.py"),
    "envtuning/trainees/__init__.py": ("tests/envtuning/test_kinds.py", "tests/envtuning/test_stages.py"),
    "envtuning/trainees/lakes/options.py": ("tests/envtuning/test_options.py",),
    "envtuning/trainees/lakes": (
        "tests/envtuning/test_level_rules.py",
        "tests/envtuning/test_rllib_rollout.py",
        "tests/envtuning/test_levels.py",
        "tests/envtuning/test_ppo_trainee.py",
    ),
    "envtuning/trainees/language": ("tests/language",),
    "envtuning/trainees/language/collapse.py": ("tests/language/test_collapse.py",),
    "envtuning/trainees/language/outcomes.py": ("tests/language/test_outcomes.py", "tests/language/test_learner.py"),
    "envtuning/trainees/language/evaluate.py": ("tests/language/test_evaluate.py",),
    "envtuning/trainees/language/options.py": ("tests/envtuning/test_options.py", "tests/language/test_settings.py"),
    "envtuning/trainees/language/pretrain.py": ("tests/language/test_pretrain.py",),
    "envtuning/trainees/language/workers.py": ("tests/language/test_workers.py", "tests/language/test_run.py"),
    "envtuning/trainees/menu.py": ("tests/bfcl",),
    "envtuning/trainees/process_state.py": ("tests/envtuning/test_process_state.py",),
    "envtuning/trainees/scripted.py": (
        "tests/envtuning/test_scripted.py",
        "tests/envtuning/test_stages.py",
        "tests/envtuning/test_recorded_runs.py",
    ),
    "envtuning/trainees/ppo": ("tests/envtuning/test_ppo_trainee.py",),
    "envtuning/trainees/sb3": ("tests/envtuning/test_sb3_parts.py", "tests/envtuning/test_sb3_trainee.py"),
    "envtuning/trainees/rllib": (
        "tests/envtuning/test_rllib_rollout.py",
        "tests/envtuning/test_rllib_runner.py",
        "tests/envtuning/test_rllib_trainee.py",
    ),
    "envtuning/trainees/rllib/options.py": ("tests/envtuning/test_rllib_runner.py",),
    "envtuning/worlds": ("tests/envtuning/test_validation.py", "tests/worlds", "tests/envtuning/test_worlds_apart.py"),
    "envtuning/worlds/gym": ("tests/envtuning/test_gym_player.py", "tests/envtuning/test_gym_world.py"),
    "envtuning/worlds/text": ("tests/worlds/test_text_player.py",),
    "envtuning/worlds/bfcl": ("tests/bfcl --ignore=tests/bfcl/test_language.py",),
    "envtuning/worlds/bfcl/lessons.py": ("tests/bfcl/test_language.py",),
}


@dataclass(frozen=True)
class Mutant:
    """One place of one line, written otherwise."""

    path: str  # within the project
    line: int  # 1-based
    start: int  # bytes of the line
    end: int
    new: str

    def apply(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        line = lines[self.line - 1].encode()
        lines[self.line - 1] = (line[: self.start] + self.new.encode() + line[self.end :]).decode()
        return "".join(lines)


COMPARED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
CALCULATED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*"}


def mutants_of(path: str, text: str) -> Iterator[Mutant]:
    """Every one-line mutant of a module, in the order of its text. None of them breaks its syntax."""
    tree = ast.parse(text)
    ignored = _prose(tree)
    for node in ast.walk(tree):
        if id(node) in ignored:
            continue
        for mutant in _of_node(path, node):
            try:
                ast.parse(mutant.apply(text))
            except SyntaxError:
                continue
            yield mutant


def _of_node(path: str, node: ast.AST) -> Iterator[Mutant]:
    def instead(of: ast.expr | ast.stmt, new: str) -> Iterator[Mutant]:
        if of.lineno == of.end_lineno:
            assert of.end_col_offset is not None
            yield Mutant(path, of.lineno, of.col_offset, of.end_col_offset, new)

    def source(one: ast.expr) -> str:
        return f"({ast.unparse(one)})"

    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from instead(node, f"({source(node.left)} {COMPARED[type(node.ops[0])]} {source(node.comparators[0])})")
    elif isinstance(node, ast.BoolOp):
        for left_out in node.values:
            kept = [value for value in node.values if value is not left_out]
            word = " and " if isinstance(node.op, ast.And) else " or "
            yield from instead(node, f"({word.join(map(source, kept))})")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from instead(node, source(node.operand))
    elif isinstance(node, ast.BinOp) and type(node.op) in CALCULATED and not _about_text(node):
        yield from instead(node, f"({source(node.left)} {CALCULATED[type(node.op)]} {source(node.right)})")
    elif isinstance(node, ast.IfExp):
        yield from instead(node, source(node.body))
        yield from instead(node, source(node.orelse))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield from instead(node, str(not node.value))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield from instead(node, repr(node.value + 1))
    elif isinstance(node, ast.Call) and node.keywords:
        for left_out in node.keywords:
            if left_out.arg not in (None, "description", "help"):  # whole sentences for readers
                kept_words = [word for word in node.keywords if word is not left_out]
                shorter = ast.Call(func=node.func, args=node.args, keywords=kept_words)
                yield from instead(node, ast.unparse(shorter))
    elif isinstance(node, ast.AugAssign | ast.Break | ast.Continue) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield from instead(node, "pass")


def _about_text(node: ast.BinOp) -> bool:
    """Whether a text stands on one side: joined texts and paths, which fail at once when they are calculated otherwise."""
    texts = [side for side in (node.left, node.right) if isinstance(side, ast.JoinedStr | ast.Constant)]
    return any(isinstance(side, ast.JoinedStr) or isinstance(side.value, str) for side in texts)


def _prose(tree: ast.AST) -> set[int]:
    """Nodes that no test can tell apart: annotations, messages of errors, descriptions, decorators, f-strings."""
    found: set[int] = set()
    for node in ast.walk(tree):
        hidden: list[ast.AST] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            hidden += [*node.decorator_list, *([node.returns] if node.returns else [])]
            hidden += [
                argument.annotation
                for argument in ast.walk(node.args)
                if isinstance(argument, ast.arg) and argument.annotation
            ]
        elif isinstance(node, ast.ClassDef):
            hidden += node.decorator_list
        elif isinstance(node, ast.AnnAssign):
            hidden.append(node.annotation)
        elif isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
            hidden += list(ast.iter_child_nodes(node))
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            hidden.append(node)
        for one in hidden:
            found.update(id(inside) for inside in ast.walk(one))
    return found


def tests_of(path: str) -> tuple[str, ...]:
    """The test files of a module; those of them that there are."""
    prefix = max((prefix for prefix in TESTS if path.startswith(prefix)), key=len)
    return tuple(test for test in (EVERYWHERE, *TESTS[prefix]) if (ROOT / test.split()[0]).exists())


def failing(copy: Path, tests: Sequence[str], without: Sequence[str] = ()) -> str | None:
    """The first of these tests that fails on the copy; None where all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider", *tests]
    command += [word for test in without for word in ("--deselect", test)]
    environment = os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode not in (0, 1, 2, 3):  # 2: a test file cannot be imported any more
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-2000:]}")
    named = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return None if done.returncode == 0 else named[1] if named else "pytest itself"


def killer_of(copy: Path, mutant: Mutant) -> str | None:
    """The test of the mutant's module that finds it, if any.

    It fails on the mutant twice and passes on the code as it is: one that a busy machine made fail finds nothing.
    """
    file = copy / mutant.path
    original = file.read_text(encoding="utf-8")
    mutated = mutant.apply(original)
    tests = [word for test in tests_of(mutant.path) for word in test.split()]
    doubtful: list[str] = []
    try:
        while True:
            file.write_text(mutated, encoding="utf-8")
            found = failing(copy, tests, doubtful)
            if found is None or "::" not in found:  # a file that cannot be imported
                return found
            again = failing(copy, [found])
            file.write_text(original, encoding="utf-8")
            if again is not None and failing(copy, [found]) is None:
                return found
            doubtful.append(found)
    finally:
        file.write_text(original, encoding="utf-8")


def _not_copied(folder: str, names: list[str]) -> set[str]:
    """What no test reads: caches, environments, and at the top the runs of whoever works here."""
    top = Path(folder) == ROOT
    return {name for name in names if name == "__pycache__" or (top and (name.startswith(".") or name == "runs"))}


def drawn(only: str, count: int, seed: int) -> list[Mutant]:
    """So many mutants of the modules whose path begins like ``only``: the same for the same code and seed."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    modules = [path for file in files if (path := str(file.relative_to(ROOT))).startswith(only)]
    every = [mutant for path in modules for mutant in mutants_of(path, (ROOT / path).read_text(encoding="utf-8"))]
    print(f"{min(count, len(every))} of {len(every):,} mutants in {len(modules)} modules, seed {seed}", flush=True)
    return random.Random(seed).sample(every, min(count, len(every)))


def described(mutant: Mutant) -> dict[str, Any]:
    """A mutant by its line before and after, which other lines of the file cannot shift."""
    original = (ROOT / mutant.path).read_text(encoding="utf-8")
    before, after = (text.splitlines()[mutant.line - 1].strip() for text in (original, mutant.apply(original)))
    return {"path": mutant.path, "before": before, "after": after}


def reason_of(description: dict[str, Any]) -> str | None:
    """Why nobody could see this mutant, where a reader has said so."""
    listed = json.loads(EQUIVALENT.read_text(encoding="utf-8")) if EQUIVALENT.exists() else []
    return next((one["why"] for one in listed if description_of(one) == description), None)


def description_of(one: dict[str, Any]) -> dict[str, Any]:
    return {key: one[key] for key in ("path", "before", "after")}


def run(mutants: list[Mutant], keep: Path | None, again: bool) -> list[dict[str, Any]]:
    """Each mutant's verdict; those that ``keep`` has are not run again, survivors only if they are to be."""
    known = json.loads(keep.read_text(encoding="utf-8")) if keep is not None and keep.exists() else []
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=_not_copied)
        for number, mutant in enumerate(mutants):
            description = described(mutant)
            kept = next((one for one in known if description_of(one) == description), None)
            verdicts.append(
                kept if kept is not None and (kept["killed_by"] or not again) else description | verdict(copy, mutant)
            )
            print(f"{number:3} {told(verdicts[-1])}", flush=True)
            if keep is not None:
                done = [description_of(one) for one in verdicts]
                rest = [one for one in known if description_of(one) not in done]
                keep.write_text(json.dumps(verdicts + rest, indent=1) + "\n", encoding="utf-8")
    return verdicts


def verdict(copy: Path, mutant: Mutant) -> dict[str, Any]:
    """Whether the tests of the mutant's module find it. One that is known to change nothing is not run."""
    if why := reason_of(described(mutant)):
        return {"killed_by": None, "equivalent": why, "seconds": 0.0}
    begin = time.monotonic()
    return {
        "killed_by": killer_of(copy, mutant),
        "equivalent": None,
        "seconds": round(time.monotonic() - begin, 1),
    }


def told(one: dict[str, Any]) -> str:
    said = "killed" if one["killed_by"] else "equivalent" if one["equivalent"] else "SURVIVED"
    lines = f"\n      - {one['before']}\n      + {one['after']}"
    return f"{said:10} {one['seconds']:5.0f} s  {one['path']}{'' if one['killed_by'] else lines}"


def figures(verdicts: list[dict[str, Any]], seed: int) -> dict[str, Any]:
    killed = [one for one in verdicts if one["killed_by"]]
    equivalent = [one for one in verdicts if one["equivalent"]]
    return {
        "seed": seed,
        "mutants": len(verdicts),
        "killed": len(killed),
        "equivalent": equivalent,
        "survived": [one for one in verdicts if one not in killed and one not in equivalent],
        "killed_of_those_that_are_not_equivalent": round(len(killed) / max(1, len(verdicts) - len(equivalent)), 4),
        "killed_by": killed,
    }


def store(found: dict[str, Any]) -> None:
    """``benchmarks/results/mutants.json``."""
    sys.path.insert(0, str(ROOT))
    from benchmarks import readme
    from benchmarks._record import RESULTS, conditions

    command = {"command": f"make mutants COUNT={found['mutants']} SEED={found['seed']}"}
    text = json.dumps(conditions() | command | {"figures": found}, indent=1)
    (RESULTS / "mutants.json").write_text(text + "\n", encoding="utf-8")
    readme.main()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="modules whose path begins like this")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    parser.add_argument("--keep", type=Path, help="a file for the verdicts, from which the same command continues")
    parser.add_argument("--again", action="store_true", help="run those that survived once more")
    parser.add_argument("--record", action="store_true", help="store the figures in benchmarks/results")
    given = parser.parse_args()
    mutants = drawn(given.only, given.count, given.seed)
    if given.list:
        for one in map(described, mutants):
            print(f"{one['path']}\n      - {one['before']}\n      + {one['after']}")
        return
    found = figures(run(mutants, given.keep, given.again), given.seed)
    equivalent = len(found["equivalent"])
    print(
        f"{found['killed']} of {found['mutants']} killed, {equivalent} change nothing, {len(found['survived'])} survived"
    )
    if given.record:
        store(found)


if __name__ == "__main__":
    main()
