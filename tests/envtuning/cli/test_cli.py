"""The commands, as a user types them: what they print, what they write, what they say when something is wrong."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from engineers.proposal import Change
from engineers.report import Incident
from envtuning.atomic import is_locked
from envtuning.cli import views
from envtuning.errors import RunError
from envtuning.loop import run as loop
from envtuning.loop.observer import Observer
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, SpecError, load_spec, parse_spec, preset_names, preset_text
from envtuning.show.console import ConsoleObserver
from envtuning.worlds.registry import UnknownWorld
from envtuning.worlds.world import Film
from tests.envtuning.commands import called

SMALL = """
extends: scripted
name: small
suites: {validation_per_slice: 4, test_per_slice: 4, probe_per_slice: 2, failure_cases: 2, validate: every 100000}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "small.yaml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def run(file) -> Path:
    folder = file.parent / "run"
    code, output = called("run", file, "--out", folder)
    assert code == 0
    assert "stage 3" in output
    assert "test suite" in output
    assert f"report page: {folder / 'report.html'}" in output
    return folder


def test_the_version_is_the_packages():
    code, output = called("--version")
    assert code == 0
    assert output == f"envtuning {version('mapf-frozenlake')}\n"


@pytest.fixture(scope="module")
def runs(run, file) -> Path:
    """As a user's folder of runs looks after a comparison: a run, a comparison, and something else."""
    folder = file.parent / "runs"
    shutil.copytree(run, folder / "alone")
    words = ("--engineers", "fixed,steady", "--seeds", 1, "--stages", 2, "--out", folder / "compare")
    code, output = called("compare", file, *words)
    assert code == 0
    assert f"started {folder / 'compare' / 'fixed' / 'seed0'}" not in output  # it shows the whole run
    assert f"`envtuning report {folder / 'compare'}` puts all runs on one page" in output
    (folder / "notes").mkdir()
    return folder


@pytest.mark.parametrize("command", ["report", "show", "tensorboard"])
def test_all_that_lies_in_a_folder_of_runs_may_be_given(command, runs):
    if command == "tensorboard":
        pytest.importorskip("tensorboardX", reason="needs tensorboardX: pip install 'mapf-frozenlake[rllib]'")
    code, output = called(command, *sorted(runs.iterdir()))
    assert code == 0
    assert f"{runs / 'notes'} is not a run: skipped" in output
    shown = {"report": "report: ", "show": "engineer steady: ", "tensorboard": "event files: "}[command]
    assert output.count(shown) == {"report": 1, "show": 2, "tensorboard": 3}[command]


def test_a_comparisons_folder_stands_for_its_engineers_runs(runs):
    code, output = called("show", runs / "compare")
    assert code == 0
    assert "engineer fixed: " in output
    assert "engineer steady: " in output
    assert "stopped" not in output  # the shared first stage is no run of its own


def test_a_comparisons_page_lies_in_its_own_folder_and_names_its_runs_by_engineer(runs):
    code, output = called("report", runs / "compare")
    assert code == 0
    assert f"report: {runs / 'compare' / 'report.html'}" in output
    page = (runs / "compare" / "report.html").read_text()
    assert "<h1>fixed/seed0 · steady/seed0</h1>" in page
    assert "test, last stage" in page


def test_a_comparison_is_no_run_and_says_how_it_goes_on(runs):
    code, output = called("resume", runs / "compare")
    assert code == 1
    assert f"it holds runs of a comparison, such as {runs / 'compare' / 'first-stage-'}" in output
    assert "the same `envtuning compare` command continues it" in output


def test_a_replay_is_shown_step_by_step_or_saved_as_a_film(run, tmp_path):
    failed = next(episode for episode in RunLog.open(run).state.stages[0].episodes() if episode.failure)
    code, output = called("replay", run, "--stage", 0)
    assert code == 0
    assert f"case {failed.case}: {failed.failure.replace('_', ' ')} after" in output
    assert "step 1" in output
    code, output = called("replay", run, "--stage", 0, "--case", failed.case, "--out", tmp_path / "film.svg")
    assert code == 0
    assert (tmp_path / "film.svg").read_text().startswith("<svg")
    code, output = called("replay", run, "--stage", 0, "--case", failed.case, "--out", tmp_path / "film.SVG")
    assert code == 0
    code, output = called("replay", run, "--stage", 0, "--out", tmp_path / "film.mp4")
    assert code == 1
    assert "film.mp4: an animation is saved as .gif or .svg" in " ".join(output.split())


def test_a_stage_that_was_not_validated_has_no_replay():
    def run_with(*played: list[str]) -> SimpleNamespace:
        stages = [SimpleNamespace(episodes=lambda own=own: own) for own in played]
        state = SimpleNamespace(done=stages, stages=stages)
        return SimpleNamespace(path="RUN", plan=SimpleNamespace(world=None), state=state)

    with pytest.raises(RunError, match=r"stage 0 of RUN was not validated, so it has no episodes: give --stage 1$"):
        views.find_film(run_with([], ["played"]), 0, None)
    with pytest.raises(RunError, match=r"no stage was, so far$"):
        views.find_film(run_with([], []), 0, None)


def test_a_film_of_a_world_that_saves_none_itself_is_its_picture(tmp_path):
    views.save_film(Film("won", "<svg/>"), tmp_path / "film.SVG", 0.5)
    assert (tmp_path / "film.SVG").read_text() == "<svg/>"
    with pytest.raises(RunError, match=r"^film\.gif: a film of this world is saved as \.svg$"):
        views.save_film(Film("won", "<svg/>"), tmp_path / "film.gif", 0.5)


def test_a_run_is_named_after_its_folder_from_inside_too(run, monkeypatch):
    monkeypatch.chdir(run)
    assert called("show", ".")[1].splitlines()[0].startswith(f"{run.name}: ")
    assert RunLog.open(".").name == run.name


def test_a_run_does_not_take_a_files_place(file):
    code, output = called("run", file, "--out", file)
    assert code == 1
    assert output.startswith("error: ")
    assert output.endswith("is a file: choose another --out\n")


def test_presets_are_listed_with_what_their_worlds_count():
    code, output = called("presets")
    assert code == 0
    rows = [
        line for line in output.splitlines() if line[:2].strip()
    ]  # without further lines of a row, which are indented
    lines = {line.split()[0]: line for line in rows}
    for name in preset_names():  # listed without its world, whose unit it must show all the same
        plan = Plan.of(load_spec(name))
        assert f"{plan.spec.budget:,} {plan.unit.replace('_', ' ')}" in lines[name]


def test_every_preset_survives_json_and_baselines_spend_what_the_engineer_spends():
    budgets = {load_spec(name).budget for name in ("engineer", "fixed", "uniform", "ladder")}
    assert len(budgets) == 1
    for name in preset_names():
        spec = Plan.of(load_spec(name)).spec
        assert RunSpec.model_validate_json(spec.model_dump_json()) == spec


def test_environment_tuning_has_the_four_stages_of_the_published_curriculum():
    plan = Plan.of(load_spec("environment-tuning"))
    assert [config.reward for config in plan.configs] == ["legal", "progress", "progress", "progress"]
    assert [config.hint_strength for config in plan.configs[1:]] == [1.0, 1.0, 0.0]
    assert set(plan.configs[1].slices) < set(plan.configs[2].slices)
    assert plan.configs[2].slices == plan.configs[3].slices
    assert plan.target.hint_strength == 0.0
    legal, base, everything, bare = plan.spec.stages
    assert bare.fade.knob == "hint_strength"
    early, published = legal.advance_when.rules
    assert (early.rule, early.metric) == ("reached", "legal_rate")
    for rule in (published, base.advance_when, everything.advance_when):
        assert rule.rule == "all"
        assert [part.rule for part in rule.rules] == ["converged", "grad_norm_stable"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "no-such-preset"], "neither a file nor a preset: the presets are"),
        (["show", "nowhere"], "nowhere is not a run folder"),
        (["resume", "nowhere"], "`envtuning run` makes one"),
    ],
)
def test_what_a_user_can_mend_is_one_sentence_without_a_traceback(words, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, output = called(*words)
    assert code == 1
    assert says in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("budgt: 3", "budgt: there is no such field: the fields are name, description, seed, world, target, stages, "),
        ("suites: {validation: 3}", "suites.validation: there is no such field: the fields are validation_per_slice, "),
        (
            "stages: [{budge: 3}]",
            "stages.0.budge: there is no such field: the fields are name, config, redraw, budget, ",
        ),
        (
            "target: {slices: {3: {holes: 0.2}}}",
            "target.slices.3.holes: there is no such field: the fields are share, hole",
        ),
        ("world: nowhere", "no world 'nowhere': the worlds are lakes"),
        ("target: {num_agents: 9, slices: {3: {}}}", "num_agents=9 on a 3×3 lake needs 18 cells"),
    ],
)
def test_a_wrong_file_is_told_with_the_place_and_the_bound(change, says):
    with pytest.raises((SpecError, UnknownWorld), match="(?s).*" + says.replace("(", r"\(")):
        Plan.of(parse_spec(f"extends: scripted\n{change}", "the file"))


def test_a_file_may_be_json_and_takes_its_name_from_its_path(tmp_path):
    data = yaml.safe_load(preset_text("scripted"))
    del data["name"]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(data))
    assert Plan.of(load_spec(path)).spec == Plan.of(load_spec("scripted", changes={"name": "mine"})).spec


def test_watching_keeps_the_table_until_nobody_works_on_the_run_any_more(file, tmp_path):
    run = RunLog.create(tmp_path / "run", Plan.of(load_spec(file)))
    worker = threading.Thread(target=loop.continue_run, args=(run,))
    worker.start()
    while not is_locked(run.path):
        time.sleep(0.01)
    code, output = called("show", run.path, "--watch")
    worker.join()
    assert code == 0
    assert "3 steady" in output
    assert "stopped" not in output


def test_an_unfinished_stage_is_shown_with_the_whole_of_its_count(tmp_path):
    class Impatient(Observer):
        def progressed(self, progress):
            raise KeyboardInterrupt

    long = load_spec("scripted").with_rounds(1)
    stage = long.stages[0].model_copy(update={"budget": 2_000_000, "advance_when": None})
    run = RunLog.create(tmp_path / "run", Plan.of(long.model_copy(update={"stages": (stage,)})))
    with pytest.raises(KeyboardInterrupt):
        loop.continue_run(run, Impatient())
    line = {"kind": "iteration", "spent": 1_234_567}
    with (run.state.stages[0].path / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    code, output = called("show", run.path)
    assert code == 0
    assert "1,234,567 / 2,000,000" in output
    assert "━" * 12 + "─" * 8 in output


@settings(max_examples=300)
@given(st.data())
def test_no_text_makes_the_reader_of_run_files_fail_in_any_other_way_than_a_spec_error(data):
    text = preset_text(data.draw(st.sampled_from(["scripted", "environment-tuning"])))
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(text)))
        end = min(len(text), begin + data.draw(st.integers(0, 30)))
        text = text[:begin] + data.draw(st.text(max_size=12)) + text[end:]
    with contextlib.suppress(SpecError):
        assert parse_spec(text, "the file").stages


@pytest.mark.parametrize(
    ("statement", "missing", "what"),
    [
        ("import envtuning.loop.run", "yaml", "a run"),
        ("from envtuning import RLlibCurriculumCallback", "ray", "RLlibCurriculumCallback"),
        ("from envtuning.trainees import make_trainee; make_trainee('rllib', capacity={})", "torch", "trainee 'rllib'"),
    ],
)
def test_a_missing_extra_is_one_sentence_with_the_command(statement, missing, what):
    program = f"import sys; sys.modules[{missing!r}] = None; {statement}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    last = ended.stderr.strip().splitlines()[-1]
    assert f": {what} needs {missing}: pip install" in last
    assert last.endswith('in a checkout pip install -e ".[rllib]"')
    assert "halted" not in last


def test_the_module_runs_as_a_program():
    ended = subprocess.run([sys.executable, "-m", "envtuning", "presets"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0
    assert "corridors" in ended.stdout


def test_an_observer_prints_what_an_engineer_writes_word_for_word(run):
    written = "[/] [red]more[/red] :snake:"
    console = Console(width=200, record=True, file=io.StringIO())
    observer = ConsoleObserver(console)
    answer = RunLog.open(run).state.stages[1].chosen
    change = Change(path="slices.3.share", old=0.5, new=1.0, reason=written)
    proposal = answer.proposal.model_copy(update={"reasons": [change]})
    observer.engineer_answered(RunLog.open(run).state.stages[0], answer.model_copy(update={"proposal": proposal}))
    observer.went_wrong(Incident(kind="engineer_failed", message=written, stage=0))
    observer.engineer_asked(RunLog.open(run).state.stages[0], written)
    assert console.export_text().count(written) == 3


@pytest.mark.parametrize(
    ("trainee", "said"),
    [
        ("{kind: scripted, options: {sped: 1}}", "unexpected keyword argument 'sped'"),
        ("{kind: rlib}", "the kinds are exam, grpo, "),
        ("{kind: 'envtuning.trainees.scripted:Nobody'}", "envtuning.trainees.scripted has no 'Nobody'"),
        ("{kind: rllib, options: {gama: 0.9}}", "options.gama: Extra inputs are not permitted"),
        ("{kind: rllib, options: {lr: -1}}", "options.lr=-1: Input should be greater than 0"),
        ("{kind: rllib, options: {window: 4}}", "window"),
    ],
)
def test_a_trainee_that_cannot_be_made_is_said_and_leaves_no_folder_in_the_way(trainee, said, tmp_path):
    (tmp_path / "wrong.yaml").write_text(SMALL + f"trainee: {trainee}\n")
    code, output = called("run", tmp_path / "wrong.yaml", "--out", tmp_path / "run")
    assert code == 1
    assert output.startswith("error: trainee ")
    assert output.count("\n") == 1
    assert said in output
    assert not (tmp_path / "run").exists()


def test_an_engineer_that_cannot_be_asked_leaves_no_folder_in_the_way(tmp_path):
    code, output = called("run", "scripted", "--engineer", "rulez", "--out", tmp_path / "run")
    assert code == 1
    assert output.startswith("error: engineer 'rulez' is unknown")
    assert not (tmp_path / "run").exists()


def test_a_place_that_cannot_be_written_is_said(run, tmp_path):
    for words in (("report", run, "--out"), ("replay", run, "--out")):
        code, output = called(*words, tmp_path / "nowhere" / "film.svg")
        assert code == 1
        assert "there is no such folder: make it first" in output


@pytest.mark.parametrize(
    ("engineers", "more", "said"),
    [
        ("fixed,rulez", "", "'rulez' is unknown"),
        (",", "", "at least one"),
        ("rules,rules", "", "none twice"),
        ("fixed,openai/gpt-5-mini", "", "OPENAI_API_KEY"),
        ("fixed", "suites: {test_per_slice: 0}\n", "test_per_slice is 0"),
    ],
)
def test_a_comparison_that_cannot_end_does_not_begin(engineers, more, said, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "it.yaml").write_text((SMALL if not more else "extends: scripted\n") + more)
    words = ("compare", tmp_path / "it.yaml", "--engineers", engineers, "--out", tmp_path / "out")
    code, output = called(*words)
    assert code == 1
    assert said in output
    assert not (tmp_path / "out").exists()


def test_a_film_on_a_terminal_shows_each_picture_for_its_time_and_nothing_else_draws(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=True, width=40)
    monkeypatch.setattr(views, "console", console)
    before, shown = threading.active_count(), []

    def look(seconds):
        shown.append((seconds, threading.active_count(), console.file.getvalue().count("lake")))

    monkeypatch.setattr(views.time, "sleep", look)
    views.show_film(["first lake", "second lake", "third lake"], 0.25)
    assert shown == [(0.25, before, 1), (0.25, before, 2), (0.25, before, 3)]


def test_a_film_elsewhere_is_its_pictures_one_below_the_other_at_once(monkeypatch):
    console = Console(file=io.StringIO(), width=40)
    monkeypatch.setattr(views, "console", console)
    monkeypatch.setattr(views.time, "sleep", lambda seconds: pytest.fail("waits where nobody watches"))
    views.show_film(["\x1b[31mA[b]\x1b[0m.", ".a"], 0.25)
    assert console.file.getvalue() == "A[b].\n\n.a\n"
