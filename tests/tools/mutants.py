"""``make mutants``: what the tests let pass. Random one-line faults are put into a copy of the code, and its tests are run.

Each mutant changes one place of one line (a comparison, a number, a branch, an operand left out) in a module of ``envtuning`` or
``engineers``; then the test files of that module run. A mutant that they pass is a *survivor*: either it changes nothing that
anybody could see (an equivalent one: ``equivalent_mutants.json`` lists those that a reader found, with the reason), or a rule
that no test states. Minutes to hours::

    python tests/tools/mutants.py --count 60 --seed 0 --jobs 2
    python tests/tools/mutants.py --only envtuning/loop/ask.py --count 20
    python tests/tools/mutants.py --seed 1 --keep verdicts.json   # interrupted: the same continues
    python tests/tools/mutants.py --seed 1 --keep verdicts.json --again   # survivors meet the tests that were written since
    python tests/tools/mutants.py --seed 1 --keep verdicts.json --record   # to benchmarks/results
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from forked import Forked
from mutations import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("engineers", "envtuning")
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
EVERYWHERE = "tests/project/test_encodings.py"  # a rule of every module

BFCL = ("tests/bfcl --ignore=tests/bfcl/test_language.py",)

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
    "engineers/plain/rising.py": ("tests/engineers/test_rising.py", "tests/engineers/test_unordered_on_lakes.py"),
    "engineers/plain/unordered.py": ("tests/engineers/test_rising.py", "tests/engineers/test_reader.py"),
    "engineers/backends": (
        "tests/engineers/backends/test_network_rules.py",
        "tests/engineers/backends/test_retrying.py",
        "tests/engineers/backends/test_sdk_rules.py",
        "tests/engineers/backends/test_extras.py",
        "tests/engineers/backends",
    ),
    "engineers/backends/live.py": (
        "tests/engineers/backends/test_live_rules.py",
        "tests/engineers/backends/test_local.py",
        "tests/engineers/backends/test_extras.py",
        "tests/language/test_live_engineers.py",
    ),
    "engineers/backends/local.py": (
        "tests/engineers/backends/test_live_rules.py",
        "tests/engineers/backends/test_local.py",
        "tests/engineers/backends/test_extras.py",
    ),
    "engineers/backends/litellm.py": (
        "tests/engineers/backends/test_litellm_rules.py",
        "tests/engineers/backends/test_extras.py",
        "tests/engineers/backends",
    ),
    "engineers/model/structured": (
        "tests/engineers/backends/test_structured_rules.py",
        "tests/engineers/backends/test_structured.py",
    ),
    "engineers/cli.py": ("tests/engineers/test_cli.py",),
    "engineers/__init__.py": ("tests/project/test_imports.py",),
    "engineers/shared/ending.py": ("tests/envtuning/cli/test_ending.py",),
    "engineers/shared/own.py": ("tests/engineers/test_own.py", "tests/engineers/test_registry.py"),
    "engineers/shared/terminal.py": ("tests/envtuning/runs/test_hostile_files.py",),
    "envtuning": ("tests/envtuning/loop/test_stages.py", "tests/envtuning/cli/test_cli.py"),
    "envtuning/openenv": ("tests/doors/test_openenv.py",),
    "envtuning/base_help.py": ("tests/project/test_base_help.py",),
    "envtuning/cli": (
        "tests/envtuning/cli/test_commands.py",
        "tests/envtuning/cli/test_cli.py",
        "tests/envtuning/runs/test_hostile_files.py",
    ),
    "envtuning/loop": (
        "tests/envtuning/runs/test_transitions.py",
        "tests/envtuning/runs/test_fading.py",
        "tests/envtuning/loop/test_bookkeeping.py",
        "tests/envtuning/loop/test_accounting.py",
        "tests/envtuning/loop/test_stage_rules.py",
        "tests/envtuning/loop/test_inside_rules.py",
        "tests/envtuning/loop/test_asking.py",
        "tests/envtuning/loop/test_stages.py",
        "tests/envtuning/loop/test_stages_failures.py",
        "tests/envtuning/loop/test_validation.py",
        "tests/envtuning/loop/test_observers.py",
        "tests/envtuning/loop/test_contract.py",
        "tests/envtuning/loop/test_recorded_runs.py",
    ),
    "envtuning/runs": (
        "tests/envtuning/runs/test_run_keys.py",
        "tests/envtuning/runs/test_checked.py",
        "tests/envtuning/test_atomic.py",
        "tests/envtuning/runs/test_unknown_fields.py",
        "tests/envtuning/loop/test_accounting.py",
        "tests/envtuning/loop/test_stage_rules.py",
        "tests/envtuning/loop/test_inside_rules.py",
        "tests/envtuning/loop/test_stages.py",
        "tests/envtuning/runs/test_runs_storage.py",
        "tests/envtuning/cli/test_cli.py",
        "tests/envtuning/runs/test_damaged_folders.py",
        "tests/envtuning/runs/test_hostile_files.py",
    ),
    "envtuning/runs/transitions.py": ("tests/envtuning/runs/test_transitions.py",),
    "envtuning/loop/__init__.py": ("tests/project/test_imports.py",),
    "envtuning/curriculum": (
        "tests/envtuning/curriculum/test_curriculum_rules.py",
        "tests/envtuning/curriculum/test_wrappers.py",
    ),
    "envtuning/curriculum/rllib_callback.py": (
        "tests/envtuning/curriculum/test_callback_rules.py",
        "tests/envtuning/curriculum/test_rllib_stock.py",
        "tests/envtuning/trainees/test_rllib_trainee.py",
    ),
    "envtuning/curriculum/sb3_callback.py": ("tests/envtuning/curriculum/test_sb3_callback.py",),
    "envtuning/curriculum/trl_callback.py": (
        "tests/envtuning/curriculum/test_callback_rules.py",
        "tests/language/test_trl_doors.py",
    ),
    "envtuning/show": (
        "tests/envtuning/show/test_console.py",
        "tests/envtuning/show",
        "tests/envtuning/show/test_tensorboard.py",
        "tests/envtuning/cli/test_cli.py",
    ),
    "envtuning/show/tensorboard.py": ("tests/envtuning/show/test_tensorboard.py",),
    "envtuning/show/page": ("tests/envtuning/show", "tests/envtuning/cli/test_cli.py"),
    "envtuning/__main__.py": ("tests/project/test_base_help.py", "tests/envtuning/cli/test_cli.py"),
    "envtuning/__init__.py": ("tests/project/test_imports.py",),
    "envtuning/studies": (
        "tests/envtuning/studies/test_study_parts.py",
        "tests/envtuning/studies/test_statistics.py",
        "tests/envtuning/studies/test_compare.py",
        "tests/envtuning/studies/test_study.py",
        "tests/envtuning/studies/test_tune.py",
    ),
    "envtuning/testing": ("tests/envtuning/testing/test_promises.py", "tests/envtuning/testing/test_testing.py"),
    "envtuning/trainees": ("tests/envtuning/loop/test_stages.py", "tests/envtuning/loop/test_validation.py"),
    "envtuning/trainees/__init__.py": ("tests/envtuning/trainees/test_kinds.py", "tests/envtuning/loop/test_stages.py"),
    "envtuning/trainees/lakes/options.py": ("tests/envtuning/trainees/test_options.py",),
    "envtuning/trainees/lakes": (
        "tests/envtuning/trainees/test_lake_network.py",
        "tests/envtuning/trainees/test_lake_sampling.py",
        "tests/envtuning/trainees/test_rllib_rollout.py",
        "tests/envtuning/trainees/test_ppo_trainee.py",
    ),
    "envtuning/trainees/language": ("tests/language",),
    "envtuning/trainees/language/collapse.py": ("tests/language/test_collapse.py",),
    "envtuning/cli/pretraining.py": ("tests/language/test_commands.py",),
    "envtuning/trainees/language/evaluate.py": ("tests/language/test_evaluate.py",),
    "envtuning/trainees/language/lm.py": ("tests/language/test_lm.py", "tests/language/test_state.py"),
    "envtuning/trainees/language/learner.py": (
        "tests/language/test_learner_rules.py",
        "tests/language/test_learner.py",
        "tests/language/test_rollouts.py",
    ),
    "envtuning/trainees/language/live_engineers.py": (
        "tests/language/test_asked_trainee.py",
        "tests/language/test_live_engineers.py",
    ),
    "envtuning/trainees/language/options.py": (
        "tests/envtuning/trainees/test_options.py",
        "tests/language/test_settings.py",
    ),
    "envtuning/trainees/language/outcomes.py": (
        "tests/language/test_outcomes.py",
        "tests/language/test_learner.py",
    ),
    "envtuning/trainees/language/policy.py": ("tests/language/test_policy.py",),
    "envtuning/trainees/language/pretrain.py": ("tests/language/test_pretrain.py",),
    "envtuning/trainees/language/quiet.py": ("tests/language/test_state.py",),
    "envtuning/trainees/language/rollouts.py": ("tests/language/test_rollouts.py",),
    "envtuning/trainees/privates/trl.py": (
        "tests/language/test_state.py",
        "tests/language/test_learner.py",
    ),
    "envtuning/trainees/language/trainers.py": (
        "tests/language/test_state.py",
        "tests/language/test_learner.py",
    ),
    "envtuning/trainees/language/small.py": ("tests/language/test_state.py",),
    "envtuning/trainees/language/state.py": (
        "tests/language/test_state.py",
        "tests/language/test_learner.py",
    ),
    "envtuning/trainees/language/tasks.py": (
        "tests/language/test_tasks.py",
        "tests/language/test_rollouts.py",
    ),
    "envtuning/trainees/language/tokenizer.py": ("tests/language/test_tokenizer.py",),
    "envtuning/trainees/language/trainee.py": ("tests/language/test_trainee_rules.py",),
    "envtuning/trainees/language/worker.py": ("tests/language/test_worker.py",),
    "envtuning/trainees/language/workers.py": ("tests/language/test_workers.py",),
    "envtuning/trainees/process_state.py": ("tests/envtuning/trainees/test_process_state.py",),
    "envtuning/trainees/scripted.py": (
        "tests/envtuning/trainees/test_scripted.py",
        "tests/envtuning/loop/test_stages.py",
        "tests/envtuning/loop/test_recorded_runs.py",
    ),
    "envtuning/trainees/ppo": (
        "tests/envtuning/trainees/test_ppo_parts.py",
        "tests/envtuning/trainees/test_ppo_trainee.py",
    ),
    "envtuning/trainees/tensors.py": ("tests/envtuning/trainees/test_tensors.py",),
    "envtuning/trainees/sb3": (
        "tests/envtuning/trainees/test_sb3_parts.py",
        "tests/envtuning/trainees/test_sb3_trainee.py",
    ),
    "envtuning/trainees/rllib": (
        "tests/envtuning/trainees/test_rllib_rules.py",
        "tests/envtuning/trainees/test_rllib_rollout.py",
        "tests/envtuning/trainees/test_rllib_runner.py",
        "tests/envtuning/trainees/test_rllib_trainee.py",
    ),
    "envtuning/trainees/rllib/ray_session.py": ("tests/envtuning/trainees/test_ray_session.py",),
    "envtuning/trainees/rllib/options.py": ("tests/envtuning/trainees/test_rllib_runner.py",),
    "envtuning/worlds": (
        "tests/envtuning/loop/test_validation.py",
        "tests/envtuning/worlds",
        "tests/envtuning/worlds/test_worlds_apart.py",
    ),
    "envtuning/worlds/lakes": (
        "tests/envtuning/worlds/test_lake_episodes.py",
        "tests/envtuning/worlds/test_summaries.py",
        "tests/envtuning/worlds/test_lakes_world.py",
        "tests/envtuning/loop/test_validation.py",
        "tests/envtuning/worlds/test_worlds_apart.py",
    ),
    "envtuning/worlds/lakes/supply.py": ("tests/envtuning/worlds/test_worlds_apart.py",),
    "envtuning/worlds/lakes/rllib_envs.py": ("tests/envtuning/curriculum/test_rllib_stock.py",),
    "envtuning/worlds/gym": (
        "tests/envtuning/worlds/test_gym_player.py",
        "tests/envtuning/worlds/test_gym_training.py",
        "tests/envtuning/worlds/test_gym_world.py",
    ),
    "envtuning/worlds/text": ("tests/envtuning/worlds/test_text_player.py",),
    "envtuning/worlds/episodes.py": (
        "tests/envtuning/worlds/test_episodes.py",
        "tests/envtuning/loop/test_validation.py",
    ),
    "envtuning/worlds/world.py": (
        "tests/envtuning/worlds/test_summaries.py",
        "tests/envtuning/worlds/test_lakes_world.py",
    ),
    "envtuning/worlds/registry.py": (
        "tests/envtuning/trainees/test_kinds.py",
        "tests/envtuning/worlds/test_worlds_apart.py",
    ),
    "envtuning/worlds/bfcl": BFCL,
    "envtuning/worlds/bfcl/bounds": ("tests/bfcl/test_bounds.py", *BFCL),
    "envtuning/worlds/bfcl/calls": ("tests/bfcl/test_calls.py", *BFCL),
    "envtuning/worlds/bfcl/check": ("tests/bfcl/test_check.py", *BFCL),
    "envtuning/worlds/bfcl/command": ("tests/bfcl/test_command.py", *BFCL),
    "envtuning/worlds/bfcl/config": ("tests/bfcl/test_config.py", *BFCL),
    "envtuning/worlds/bfcl/documents": ("tests/bfcl/test_documents.py", *BFCL),
    "envtuning/worlds/bfcl/env": ("tests/bfcl/test_env_arguments.py", "tests/bfcl/test_env.py", *BFCL),
    "envtuning/worlds/bfcl/episode": ("tests/bfcl/test_episode.py", *BFCL),
    "envtuning/worlds/bfcl/hints": ("tests/bfcl/test_hint_sentences.py", *BFCL),
    "envtuning/worlds/bfcl/package": (
        "tests/bfcl/test_package_import.py",
        "tests/bfcl/test_command.py",
        "tests/bfcl/test_package.py",
        *BFCL,
    ),
    "envtuning/worlds/bfcl/pool": ("tests/bfcl/test_pool.py", *BFCL),
    "envtuning/worlds/bfcl/prompts": ("tests/bfcl/test_prompts.py", *BFCL),
    "envtuning/worlds/bfcl/reply_format": ("tests/bfcl/test_reply_format.py", *BFCL),
    "envtuning/worlds/bfcl/rewards": ("tests/bfcl/test_rewards.py", *BFCL),
    "envtuning/worlds/bfcl/scripted": ("tests/bfcl/test_scripted.py", *BFCL),
    "envtuning/worlds/bfcl/splits": ("tests/bfcl/test_splits.py", *BFCL),
    "envtuning/worlds/bfcl/tasks": ("tests/bfcl/test_tasks.py", *BFCL),
    "envtuning/worlds/bfcl/tools": (
        "tests/bfcl/test_toolbox.py",
        "tests/bfcl/test_world_counts.py",
        "tests/bfcl/test_env.py",
        *BFCL,
    ),
    "envtuning/worlds/bfcl/transcript": ("tests/bfcl/test_transcript.py", *BFCL),
    "envtuning/worlds/bfcl/world": ("tests/bfcl/test_world_counts.py", "tests/bfcl/test_world.py", *BFCL),
    "envtuning/trainees/language/tool_lessons.py": ("tests/bfcl/test_language.py",),
}


def tests_of(path: str) -> tuple[str, ...]:
    """The test files of a module. One that is not there stops the command: a list that is out of date would test less."""
    prefix = max((prefix for prefix in TESTS if path.startswith(prefix)), key=len)
    return (EVERYWHERE, *TESTS[prefix])


def killer_of(mutant: Mutant, project: Forked) -> str | None:
    """The test of the mutant's module that finds it, if any.

    It fails on the mutant twice and passes on the code as it is: one that a busy machine made fail finds nothing.
    """
    file = project.copy / mutant.path
    original = file.read_text(encoding="utf-8")
    mutated = mutant.apply(original)
    tests = [word for test in tests_of(mutant.path) for word in test.split()]
    doubtful: list[str] = []
    try:
        while True:
            file.write_text(mutated, encoding="utf-8")
            found = project.failing(tests, doubtful)
            if found is None or "::" not in found:  # a file that cannot be imported
                return found
            again = project.failing([found])
            file.write_text(original, encoding="utf-8")
            if again is not None and project.failing([found]) is None:
                return found
            doubtful.append(found)
    finally:
        file.write_text(original, encoding="utf-8")


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


def run(mutants: list[Mutant], keep: Path | None, again: bool, jobs: int) -> list[dict[str, Any]]:
    """Each mutant's verdict; those that ``keep`` has are not run again, survivors only if they are to be."""
    known = json.loads(keep.read_text(encoding="utf-8")) if keep is not None and keep.exists() else []
    by_number: dict[int, dict[str, Any]] = {}
    for number, mutant in enumerate(mutants):
        description = described(mutant)
        kept = next((one for one in known if description_of(one) == description), None)
        if why := reason_of(description):
            by_number[number] = description | {"killed_by": None, "equivalent": why, "seconds": 0.0}
        elif kept is not None and (kept["killed_by"] or not again):
            by_number[number] = kept
    begin = time.monotonic()
    for number, found in _tried({n: one for n, one in enumerate(mutants) if n not in by_number}, jobs):
        by_number[number] = described(mutants[number]) | found
        print(
            f"{len(by_number)}/{len(mutants)} {time.monotonic() - begin:5.0f} s {told(by_number[number])}", flush=True
        )
        if keep is not None:
            done = [description_of(one) for one in by_number.values()]
            rest = [one for one in known if description_of(one) not in done]
            keep.write_text(json.dumps([*by_number.values(), *rest], indent=1) + "\n", encoding="utf-8")
    return [by_number[number] for number in range(len(mutants))]


_project: Forked | None = None  # of a worker's process


def _tried(mutants: dict[int, Mutant], jobs: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The verdicts of these mutants, as they come, by so many processes with a copy of the project each."""
    with tempfile.TemporaryDirectory() as folder:
        pool = ProcessPoolExecutor(jobs, get_context("fork"), initializer=_prepare, initargs=(Path(folder),))
        with pool:
            futures = {pool.submit(_verdict, mutant): number for number, mutant in mutants.items()}
            for future in as_completed(futures):
                yield futures[future], future.result()


def _prepare(folder: Path) -> None:
    global _project
    own = Path(tempfile.mkdtemp(dir=folder))
    _project = Forked(ROOT, own)


def _verdict(mutant: Mutant) -> dict[str, Any]:
    assert _project is not None
    begin = time.monotonic()
    killer = killer_of(mutant, _project)
    return {"killed_by": killer, "equivalent": None, "seconds": round(time.monotonic() - begin, 1)}


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
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side, with a copy of the project each")
    parser.add_argument("--again", action="store_true", help="run those that survived once more")
    parser.add_argument("--record", action="store_true", help="store the figures in benchmarks/results")
    given = parser.parse_args()
    mutants = drawn(given.only, given.count, given.seed)
    if given.list:
        for one in map(described, mutants):
            print(f"{one['path']}\n      - {one['before']}\n      + {one['after']}")
        return
    found = figures(run(mutants, given.keep, given.again, given.jobs), given.seed)
    equivalent = len(found["equivalent"])
    print(
        f"{found['killed']} of {found['mutants']} killed, {equivalent} change nothing, {len(found['survived'])} survived"
    )
    if given.record:
        store(found)


if __name__ == "__main__":
    main()
