"""A study's figures do not depend on who runs which run when; what is shared is shared; the preregistration says what it needs."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mapf_frozenlake as mfl
from engineers.common_options import COMMON_OPTIONS
from envtuning.cli.studies import seeds_of
from envtuning.errors import RunError
from envtuning.loop.validation import draw_test, draw_validation
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.resolve import resolve
from envtuning.runs.spec import EngineerSpec, SpecError, SuiteSpec, load_spec
from envtuning.runs.tasks import next_task
from envtuning.studies import beyond, closed_loop
from envtuning.studies.closed_loop import gain
from envtuning.studies.compare import comparison_from, comparison_of, markdown, notes
from envtuning.studies.outcomes import Outcome, finished, played_on
from envtuning.studies.preregistered import ArmSpec, StudySpec, arm_of, load_study, part_of
from envtuning.studies.study import _ready, do, execute, is_done, left_at_once, plan, processes, run_folders
from tests.envtuning.commands import called
from tests.envtuning.counting_runs import spec_of


@pytest.fixture(scope="module")
def arms():
    suites = SuiteSpec(validation_per_slice=6, test_per_slice=10, probe_per_slice=3, failure_cases=1)
    base = load_spec("scripted").with_rounds(3).model_copy(update={"suites": suites})
    names = ("fixed", "uniform", "rules")
    specs = {name: arm_of(base, ArmSpec(engineer=EngineerSpec(name=name))) for name in names}
    return specs | {"target": arm_of(base, ArmSpec(engineer=EngineerSpec(name="fixed"), start="target"))}


def is_alive(process_id):
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def outcome(out):
    """Every file of every run that says what came of it."""
    names = (
        "test.json",
        "stages/*/config.json",
        "stages/*/report.json",
        "stages/*/episodes.json",
        "stages/*/metrics.jsonl",
    )
    return {
        str(file.relative_to(out)): file.read_bytes()
        for run in run_folders(out)
        for name in names
        for file in run.glob(name)
    }


def test_two_processes_write_what_one_writes(arms, tmp_path):
    three = {name: arms[name] for name in ("fixed", "uniform", "target")}
    execute(three, [0, 1], tmp_path / "one")
    execute(three, [1, 0], tmp_path / "two", jobs=2)
    assert outcome(tmp_path / "one") == outcome(tmp_path / "two")
    assert len(run_folders(tmp_path / "one")) == 6
    execute(three, [0, 1], tmp_path / "one", jobs=2)  # nothing is left to do


def test_the_processes_of_a_study_that_was_killed_end_with_it():
    """``kill -9`` gives the study's own process no chance to end them."""
    study = """
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
from envtuning.studies.study import begin_process
if __name__ == "__main__":
    spawned = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=spawned, initializer=begin_process, initargs=((),))
    print(pool.submit(os.getpid).result(), flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", study], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        worker = int(process.stdout.readline())
        process.kill()
    end = time.monotonic() + 20
    while is_alive(worker):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_processes_of_a_study_that_is_asked_to_end_end_with_it(arms, tmp_path):
    begun = []

    def asked_to_end(job):
        begun.append(job)
        if len(begun) == 2:
            raise KeyboardInterrupt

    before = set(multiprocessing.active_children())
    with pytest.raises(KeyboardInterrupt):
        execute(arms, [0, 1], tmp_path, jobs=2, began=asked_to_end)
    end = time.monotonic() + 5  # left alone, they would begin and work for longer
    while set(multiprocessing.active_children()) - before:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_work_that_waits_is_cancelled_by_an_error():
    runs, before = [], set(multiprocessing.active_children())

    def fails():
        with left_at_once(processes(1)) as pool:
            runs.extend(pool.submit(time.sleep, 0.1) for _ in range(20))
            runs[0].result()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    end = time.monotonic() + 20
    while set(multiprocessing.active_children()) - before:  # it finishes what it has begun
        assert time.monotonic() < end
        time.sleep(0.05)
    assert sum(run.cancelled() for run in runs) > 12  # all but the first and what already lay before the process


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_not_trusted_here_is_not_imported_by_a_process_of_the_study(arms, jobs, tmp_path, monkeypatch):
    (tmp_path / "somebodys.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef make(): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    theirs = {"theirs": arms["fixed"].model_copy(update={"engineer": EngineerSpec.model_validate("somebodys:make")})}
    with pytest.raises(Exception, match="--trust somebodys"):
        execute(theirs, [0], tmp_path / "runs", jobs=jobs)
    assert not (tmp_path / "ran").exists()


def test_the_table_holds_what_is_finished_and_says_what_is_not(tmp_path, monkeypatch):
    (tmp_path / "two.yaml").write_text(STUDY.replace("seeds: [3, 4]", "seeds: [3, 4, 5, 6]"))
    study = load_study(tmp_path / "two.yaml")
    execute(study.specs(), [3, 4, 5], tmp_path / "runs")
    summary = comparison_of(study, tmp_path / "runs")
    assert summary.missing == {"uniform": [6], "rules": [6], "written": [6]}
    runs = {(one.arm, one.seed): one.success for one in summary.runs}
    assert len(runs) == 9
    means = {row.arm: row.success.mean for row in summary.rows}
    assert means == {arm: pytest.approx(sum(runs[arm, seed] for seed in (3, 4, 5)) / 3) for arm in means}
    rules = next(row for row in summary.rows if row.arm == "rules")
    assert rules.against["uniform"].mean == pytest.approx(means["rules"] - means["uniform"])
    columns = {arm: [runs[arm, seed] for seed in (3, 4, 5)] for arm in means}
    assert rules.above_open_loop == gain(columns, "rules", ["uniform", "written"])
    assert summary.headroom == replace(rules.above_open_loop, matched=True)
    text = markdown(summary)
    assert "| `rules` | 5 | 3 |" in text
    assert closed_loop.in_words(summary.headroom) in text
    assert "n was chosen without a pilot." in text
    assert "Preregistered runs that are not finished: uniform 1; rules 1; written 1." in text
    assert json.loads(json.dumps(asdict(summary)))["rows"][0]["arm"] == "uniform"
    again = comparison_from(study, [Outcome(**one) for one in asdict(summary)["runs"]], {})
    assert markdown(again) == text, "the outcomes alone make the table"


def test_arms_that_begin_alike_share_their_first_stage(arms, tmp_path):
    jobs = list(plan(arms, [0, 1], tmp_path))
    first = [job for job in jobs if job.is_first_stage]
    assert [job.spec.seed for job in first] == [0, 1]
    assert [job.arm for job in jobs if job.begun_with == first[0].folder] == ["fixed", "uniform", "rules"]
    assert [job.arm for job in jobs if not job.is_first_stage and job.begun_with is None] == ["target"] * 2
    assert not next(plan({"fixed": arms["fixed"]}, [0], tmp_path)).is_first_stage, "nobody to share it with"


def test_a_shared_first_stage_is_done_when_that_stage_is_and_a_run_when_all_of_it_is(arms, tmp_path):
    first, run, *_ = plan({"fixed": arms["fixed"], "rules": arms["rules"]}, [0], tmp_path)
    assert not is_done(first)
    do(first)
    assert is_done(first)
    begun = RunLog.open(first.folder)
    assert len(begun.state.stages) == 1
    assert next_task(begun.plan, begun.state) is not None, "as a run it has just begun"
    do(run)
    assert is_done(run)


def test_a_finished_run_of_another_spec_is_not_taken_as_this_studys(tmp_path):
    spec = spec_of({}, {})
    execute({"fixed": spec}, [0], tmp_path)
    reworded, changed = (
        spec.model_copy(update={"description": "in other words"}),
        spec.model_copy(update={"retries": 1}),
    )
    assert list(finished({"fixed": reworded}, [0, 1], tmp_path)) == [("fixed", 0)]
    assert is_done(next(plan({"fixed": reworded}, [0], tmp_path)))
    for use in (execute, finished):
        with pytest.raises(RunError, match="fixed/seed0 already holds another run: choose another --out"):
            use({"fixed": changed}, [0], tmp_path)


def test_a_shared_first_stage_is_anybodys_who_begins_with_the_same_work(tmp_path):
    """The run that holds it is of the arm that began it; another arm may be the first one next time."""
    spec = spec_of({}, {})
    slow = spec.model_copy(update={"engineer": spec.engineer.model_copy(update={"timeout": 7.0})})
    first = next(plan({"fixed": spec, "slow": slow}, [0], tmp_path))
    RunLog.create(first.folder, Plan.of(first.spec))  # interrupted before anything was trained
    execute({"slow": slow, "fixed": spec}, [0], tmp_path)
    assert is_done(first)
    shutil.copytree(first.folder, first.folder.with_name("seed1"))
    for change in ({"retries": 1}, {"seed": 1}):
        with pytest.raises(RunError, match="already holds another run"):
            is_done(replace(first, spec=spec.model_copy(update=change)))


def test_nobody_starts_before_the_stage_that_it_begins_with_and_nobody_waits_for_it_idly(arms, tmp_path):
    jobs = list(plan(arms, [0, 1], tmp_path))
    assert [job.arm.split("-")[0] for job in _ready(jobs, [], 3)] == ["first", "target", "first"]
    begun = jobs.pop(0)
    assert [job.arm for job in _ready(jobs, [begun], 2)] == ["target"]
    assert [(job.arm, job.spec.seed) for job in _ready(jobs, [], 2)] == [("fixed", 0), ("uniform", 0)]


def test_an_arm_gets_the_options_that_concern_everybody():
    base = load_spec("corridors")
    assert "space" in COMMON_OPTIONS
    for name in ("uniform", "half-success"):
        arm = arm_of(base, ArmSpec(engineer=EngineerSpec(name=name)))
        assert arm.engineer.options["space"] == base.engineer.options["space"]


def test_a_random_first_config_keeps_to_the_space(tmp_path):
    from envtuning.loop.ask import redraw

    spec = arm_of(load_spec("corridors"), ArmSpec(engineer=EngineerSpec(name="fixed"), start="random"))
    for seed in range(3):
        plan = Plan.of(spec.model_copy(update={"seed": seed}))
        config = redraw(plan, plan.configs[0])
        assert all(piece.min_distance <= size for size, piece in config.slices.items())


STUDY = """
name: two
question: which
preset: scripted
seeds: [3, 4]
trivial: [uniform]
arms:
  uniform: {engineer: {name: uniform}}
  rules: {engineer: {name: rules}}
  written: {engineer: {name: schedule, options: {parts: [0.5]}}}
"""


def test_a_study_has_a_test_of_its_own_whatever_the_presets_is(tmp_path):
    def study(text):
        (tmp_path / "two.yaml").write_text(text)
        return load_study(tmp_path / "two.yaml")

    own = STUDY.replace("preset: scripted", "preset: small-corridors")
    theirs = load_spec("small-corridors")
    assert theirs.suites.test_seed is not None
    before, seeded = study(own), study(own + "test_seed: 77\n")
    assert {spec.suites.test_seed for spec in before.specs().values()} == {None}  # that of the suites: as it was run
    assert {spec.suites.test_seed for spec in seeded.specs().values()} == {77}
    assert seeded.base.suites.seed == before.base.suites.seed
    few = {"test_per_slice": 3, "validation_per_slice": 1}
    specs = [
        Plan.of(spec.model_copy(update={"suites": spec.suites.model_copy(update=few)}))
        for spec in (theirs, before.base, seeded.base)
    ]
    validation = draw_validation(specs[0])
    tests = [[mfl.to_text(board) for board in draw_test(spec, validation)] for spec in specs]
    assert all(one != other for one, other in combinations(tests, 2))


def test_every_study_from_now_on_names_its_test():
    """Those that do not were run before: their test was their preset's, which has had another since."""
    from benchmarks.store import HERE

    studies = {path.stem: load_study(path) for path in HERE.glob("*.yaml")}
    of_before = {"corridors", "small-corridors", "own-world", "own-world-weak-car"}
    assert {name for name, study in studies.items() if study.test_seed is None} == of_before
    for study in [*studies.values(), load_study(HERE.parent / "quick.yaml")]:
        theirs = load_spec(study.preset).suites
        assert study.base.suites.seed_of_test != theirs.seed_of_test


def test_what_was_written_down_later_is_said_to_be(tmp_path):
    (tmp_path / "two.yaml").write_text(
        STUDY.replace("[3, 4]", "[3]")
        + "added_later: {rules: no run of it was made}\npilot: The sd was 4, which asks for n = 5.\ntest_seed: 7\n"
    )
    text = notes(comparison_of(load_study(tmp_path / "two.yaml"), tmp_path / "runs"))
    assert "`rules` (no run of it was made)." in text
    assert "The sd was 4, which asks for n = 5." in text
    assert "drawn from seed 7" in text
    (tmp_path / "two.yaml").write_text(STUDY + "added_later: {luck: none}\n")
    with pytest.raises(SpecError, match="luck is neither an arm nor `beyond`: the arms are uniform, rules, written"):
        load_study(tmp_path / "two.yaml")


def test_stored_outcomes_stay_when_an_arm_is_added_elsewhere(tmp_path, monkeypatch):
    from benchmarks import store as benchmark

    (tmp_path / "two.yaml").write_text(STUDY.replace("[3, 4]", "[3]"))
    study = load_study(tmp_path / "two.yaml")
    first, later = (part_of(study, arms) for arms in ("uniform,rules", "written"))
    execute(first, study.seeds, tmp_path / "here")
    execute(later, study.seeds, tmp_path / "there")
    commits = iter(["aaa", "bbb"])
    monkeypatch.setattr(benchmark, "conditions", lambda: {"commit": next(commits)})
    monkeypatch.setattr(benchmark, "stored_at", lambda study: tmp_path / f"study_{study.name}.json")
    monkeypatch.setattr(benchmark, "record", _written_to(tmp_path))
    benchmark.store(study, tmp_path / "here")
    picture = (tmp_path / "study_two.png").read_bytes()
    alone = benchmark.from_stored(study)
    assert alone.missing == {"written": [3]}
    benchmark.store(study, tmp_path / "there")
    both = benchmark.from_stored(study)
    assert not both.missing
    assert [run for run in both.runs if run.arm != "written"] == list(alone.runs)
    assert benchmark.figures_of(study)["commits_of_runs"] == {
        "uniform/seed3": "aaa", "rules/seed3": "aaa", "written/seed3": "bbb",
    }  # fmt: skip
    assert (tmp_path / "study_two.png").read_bytes() == picture  # it needs every run's folder
    assert [one["command"] for one in benchmark.figures_of(study)["added_to"]] == ["python -m study, 1st time"]


def _written_to(folder: Path):
    times = iter(("1st", "2nd"))

    def record(name: str, figures: dict[str, Any]) -> Path:
        path = folder / f"{name}.json"
        by = {"recorded": "", "command": f"python -m study, {next(times)} time", "commit": "", "cpu_minutes": 0.1}
        path.write_text(json.dumps(by | {"figures": figures}))
        return path

    return record


def test_further_sets_are_played_once_by_what_each_run_ended_with(tmp_path):
    more = (
        "beyond_per_slice: 12\nbeyond: {one more agent: {num_agents: 3}, one more size: {slices: {6: {share: 1.0}}}}\n"
    )
    (tmp_path / "two.yaml").write_text(STUDY.replace("[3, 4]", "[3]") + more)
    study, out = load_study(tmp_path / "two.yaml"), tmp_path / "runs"
    execute(study.specs(), study.seeds, out)
    first = comparison_of(study, out)
    cases = beyond.suites(study, out)
    assert {name: sorted(set(map(int, suite.heights))) for name, suite in cases.items()} == {
        "one more agent": [3, 4, 5],
        "one more size": [6],
    }
    assert set(cases["one more agent"].num_agents) == {3}
    for arm, row in first.beyond.items():
        run = RunLog.open(out / arm / "seed3")
        for name, found in row.items():
            assert found.mean == pytest.approx(np.mean(played_on(run, beyond.sets(study)[name].target, cases[name])))
    assert "| `rules` |" in markdown(first).split("Beyond the target")[1]
    kept = {one.key: 0.25 for one in beyond.sets(study).values()}
    (out / "rules" / "seed3" / beyond.BEYOND_FILE).write_text(json.dumps(kept))
    assert comparison_of(study, out).beyond["rules"]["one more size"].mean == 0.25  # kept, not played again
    (tmp_path / "two.yaml").write_text(STUDY.replace("[3, 4]", "[3]") + more.replace("num_agents: 3", "num_agents: 1"))
    other = load_study(tmp_path / "two.yaml")  # another set of the same name
    assert set(beyond.suites(other, out)["one more agent"].num_agents) == {1}
    again = comparison_of(other, out).beyond["rules"]
    assert again["one more size"].mean == 0.25
    run = RunLog.open(out / "rules" / "seed3")
    cases = beyond.suites(other, out)["one more agent"]
    assert again["one more agent"].mean == pytest.approx(
        np.mean(played_on(run, beyond.sets(other)["one more agent"].target, cases))
    )


def test_a_study_s_file_is_read_as_a_run_s(tmp_path):
    file = tmp_path / "two.yaml"
    file.write_text(STUDY + "beyond_per_slice: 2e1\n")
    assert load_study(file).beyond_per_slice == 20
    for written, fault in {
        STUDY + "name: again\n": "has the key 'name' twice",
        "- a": "holds list, not a mapping",
    }.items():
        file.write_text(written)
        with pytest.raises(SpecError, match=fault):
            load_study(file)
    with pytest.raises(SpecError, match=r"none\.yaml cannot be read: No such file"):
        load_study(tmp_path / "none.yaml")


@pytest.mark.parametrize("name", ["corridors", "small-corridors"])
def test_what_is_preregistered_can_be_run(name):
    from benchmarks.store import HERE

    study = load_study(HERE / f"{name}.yaml")
    assert len(study.seeds) >= 10
    for spec in study.specs().values():
        assert spec.budget == study.base.budget
        resolve(spec)
    for further in beyond.sets(study).values():
        Plan.of(study.base).world.check(further.target)
        assert spec.suites.test_per_slice >= 500


def test_the_command_does_what_is_left_and_writes_the_table_beside_the_runs(tmp_path):
    (tmp_path / "two.yaml").write_text(STUDY)
    words = ["compare", tmp_path / "two.yaml", "--out", tmp_path / "c", "--seeds", "3,"]
    code, output = called(*words, "--engineers", "luck")
    assert (code, output) == (1, "error: 'luck' is not an arm of two: the arms are uniform, rules, written\n")
    assert not (tmp_path / "c").exists()
    for change in (["--set", "retries=1"], ["--stages", 2]):  # what was written down is not changed
        code, output = called(*words, "--engineers", "uniform, rules", *change)
        assert (code, "says what is compared" in output) == (1, True)
    code, output = called(*words, "--engineers", "uniform, rules", "--jobs", "1")
    assert code == 0, output
    assert re.search(r"^ rules +5 ", output, re.MULTILINE)
    assert not re.search(r"^ written ", output, re.MULTILINE)
    stored = json.loads((tmp_path / "c" / "comparison.json").read_text())
    assert stored["missing"] == {"uniform": [4], "rules": [4], "written": [3, 4]}
    table = (tmp_path / "c" / "comparison.md").read_text()
    assert "| `rules` | 5 | 1 |" in table
    (tmp_path / "c" / "comparison.md").unlink()
    assert called(*words, "--table")[0] == 0  # runs nothing
    assert (tmp_path / "c" / "comparison.md").read_text() == table
    assert called("report", tmp_path / "c")[0] == 0
    assert "uniform 1; rules 1; written 2" in (tmp_path / "c" / "report.html").read_text()


def test_a_number_of_seeds_is_the_first_of_the_file_s(tmp_path):
    study = StudySpec.model_validate(
        {"name": "a", "preset": "scripted", "seeds": [4, 7, 9], "arms": {"rules": {"engineer": "rules"}}}
    )
    assert seeds_of(study, None) == [4, 7, 9]
    assert seeds_of(study, "2") == [4, 7]
    assert seeds_of(study, "9,4") == [9, 4]
    assert seeds_of(study, "7,") == [7]
    with pytest.raises(SpecError, match="--seeds 4: the seeds of a are 4, 7, 9; name one alone as '4,'"):
        seeds_of(study, "4")
    with pytest.raises(SpecError, match=r"^3 is not a seed of a: its seeds are 4, 7, 9$"):
        seeds_of(study, "3,")


def test_a_comparison_is_the_same_by_its_words_and_by_its_file(tmp_path):
    (tmp_path / "c.yaml").write_text(
        "name: scripted\npreset: scripted\nseeds: [0]\ntrivial: [uniform]\narms: {uniform: {engineer: uniform}, rules: {engineer: rules}}\n"
    )
    out = tmp_path / "c"
    assert called("compare", "scripted", "--engineers", "uniform,rules", "--seeds", 1, "--out", out)[0] == 0
    first, page = (out / "comparison.json").read_text(), (out / "comparison.md").read_text()
    assert called("compare", tmp_path / "c.yaml", "--out", out)[0] == 0  # the same runs
    assert (out / "comparison.json").read_text() == first
    assert (out / "comparison.md").read_text() == page
    assert "preregistered" not in page.lower()
    assert "pilot" not in page


def test_a_metric_that_the_world_does_not_have_is_told_before_any_run(tmp_path):
    (tmp_path / "study.yaml").write_text(STUDY.replace("name: ", "metric: valid\nname: ", 1))
    with pytest.raises(
        SpecError, match=r"metric='valid': a study compares the objective of its world, valid_rate for scripted"
    ):
        load_study(tmp_path / "study.yaml").specs()
