"""What the words of a command line come to: the spec that is run, its folder, what may be imported, and what is printed."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import envtuning.cli.runs
import envtuning.cli.studies
from engineers.shared import own
from envtuning import atomic
from envtuning.cli import views
from envtuning.cli.arguments import adjusted, parse_seeds, parse_settings, run_name
from envtuning.errors import RunError
from envtuning.loop import run as loop
from envtuning.runs.log import RunLog
from envtuning.runs.spec import SpecError, load_spec, preset_text
from envtuning.studies.preregistered import StudySpec
from envtuning.worlds.world import Film
from tests.envtuning.commands import called
from tests.envtuning.counting_runs import spec_of
from tests.envtuning.counting_world import CountConfig, CountWorld


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("1", [0]),
        ("3", [0, 1, 2]),
        ("4,7", [4, 7]),
        ("7, 4", [7, 4]),
        ("5,", [5]),
        ("0,", [0]),
        ("10000", list(range(10_000))),
    ],
)
def test_seeds_are_counted_or_listed(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0", "at least one seed"), ("", "at least one seed"), (",", "at least one seed"), ("-1,", "none below 0"),
        ("4,4", "none twice"), (f"{2**63},", "above 9,223,372,036,854,775,807"), ("10001", "at most 10,000 runs at a time"), ("x", "give a number of seeds"),
    ],
)  # fmt: skip
def test_what_is_no_choice_of_seeds_is_told(text, says):
    with pytest.raises(SpecError, match=says):
        parse_seeds(text)


def test_settings_are_values_by_dotted_keys():
    assert parse_settings(None) == {}
    assert parse_settings(["a.b=[1, x]", "c=d=e"]) == {"a.b": [1, "x"], "c": "d=e"}
    for wrong in ("a", "=1", "a..b=1", ".a=1"):
        with pytest.raises(SpecError, match="write KEY=VALUE with a dotted key"):
            parse_settings([wrong])


def test_a_spec_is_adjusted_by_what_is_said_and_by_nothing_else():
    spec = spec_of({}, {}, engineer={"name": "random", "options": {"odd": 1}})
    assert adjusted(spec) == spec
    found = adjusted(spec, engineer="fixed", stages=3, context="V2", max_cost=0.0)
    assert found.engineer.name == "fixed"
    assert found.engineer.options == {"context": "V2", "max_cost": 0.0}  # the other's own options are not its
    assert len(found.stages) == 3
    assert adjusted(spec, context="V2").engineer.options == {"odd": 1, "context": "V2"}


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        (spec_of({}, {}), "run-fixed"),
        (spec_of({}, {}, name="fixed"), "fixed"),
        (spec_of({}, {"config": CountConfig()}), "run"),  # nobody is asked
        (spec_of({}, {}, engineer={"name": "server/http://a:1/v1#m"}), "run-server_http___a_1_v1_m"),
    ],
)
def test_a_run_is_named_after_its_preset_and_its_engineer(spec, named):
    assert run_name(spec) == named


@pytest.mark.parametrize(
    ("words", "trusted"),
    [
        ([], []),
        (["--trust", "own"], ["own"]),
        (["--trust", "own, host:a.example", "--trust", "other"], ["own", "other", "host:a.example"]),
        (["--engineer", "my.engineers:Best"], ["my.engineers", "option:engineer.name"]),
        (["--engineer", "permuted/my.engineers:Best"], ["my.engineers", "option:engineer.name"]),
        (["--observer", "my.observers:Best"], ["my.observers"]),
        (
            ["--set", "world=my.world:make", "--set", "stages.0.budget=3"],
            ["my.world", "option:world", "option:stages.0.budget"],
        ),
        (["--engineer", "server/http://host.example:8000/v1#m"], ["host:host.example", "option:engineer.name"]),
        (
            ["--set", "engineer={name: 'server/https://host.example/v1?a=b#m'}"],
            ["host:host.example", "option:engineer"],
        ),
        (["--engineer", "openai/gpt"], ["option:engineer.name"]),
    ],
)
def test_what_the_command_line_names_is_trusted_until_the_command_ends(monkeypatch, words, trusted):
    before, told = own.trusted(), []

    def stop(spec):
        told.append({name for name in own.trusted() - before if "=" not in name})
        raise RunError("stopped")

    monkeypatch.setattr(envtuning.cli.runs, "resolve", stop)
    assert called("run", "small-corridors", *words) == (1, "error: stopped\n")
    assert told == [set(trusted)]
    assert own.trusted() == before


@pytest.fixture
def made(monkeypatch) -> list[tuple[str, Any, Any]]:
    """What `run` would have run: folder, spec, observers."""
    found: list[tuple[str, Any, Any]] = []
    monkeypatch.setattr(envtuning.cli.runs.RunLog, "create", lambda folder, plan: (str(folder), plan.spec))
    monkeypatch.setattr(envtuning.cli.runs, "run_and_report", lambda one, observer: found.append((*one, observer)))
    return found


@pytest.mark.parametrize(
    ("words", "folders"),
    [
        ([], ["runs/scripted-steady-seed0"]),
        (["--out", "x"], ["x"]),
        (["--seeds", "2"], ["runs/scripted-steady-seed0", "runs/scripted-steady-seed1"]),
        (["--seeds", "3,5", "--out", "x"], ["x/scripted-steady-seed3", "x/scripted-steady-seed5"]),
        (["--seeds", "3,", "--out", "x"], ["x"]),
        (["--set", "seed=4"], ["runs/scripted-steady-seed4"]),
        (["--engineer", "fixed"], ["runs/scripted-fixed-seed0"]),
    ],
)
def test_where_a_run_goes(made, words, folders):
    assert called("run", "scripted", *words)[0] == 0
    assert [folder for folder, _, _ in made] == folders
    seeds = [int(folder.rpartition("seed")[2]) if "seed" in folder else spec.seed for folder, spec, _ in made]
    assert [spec.seed for _, spec, _ in made] == seeds


def test_what_a_run_is_asked_for_is_what_is_run(made):
    words = ["--stages", 2, "--context", "V2", "--max-cost", 1.5, "--observer", "a.b:C", "--set", "retries=0"]
    assert called("run", "scripted", *words)[0] == 0
    ((_, spec, observers),) = made
    assert (len(spec.stages), spec.retries, observers) == (2, 0, ["a.b:C"])
    assert spec.engineer.options == {"context": "V2", "max_cost": 1.5}


def test_an_engineer_that_no_stage_asks_is_told(made):
    said = "--engineer rules has no effect: no stage of"
    assert f"{said} ladder has config: engineer" in called("run", "ladder", "--engineer", "rules")[1]
    assert said not in called("run", "scripted", "--engineer", "rules")[1]
    assert said not in called("run", "ladder")[1]


@pytest.mark.parametrize(
    ("words", "jobs", "preset", "given"),
    [([], 1, "engineer", True), (["scripted"], 1, "scripted", False), (["scripted"], 2, "scripted", True)],
)
def test_what_is_compared(monkeypatch, tmp_path, words, jobs, preset, given):
    asked: list[Any] = []
    place = tmp_path if given else Path("runs/compare") / preset

    def execute(*given: Any, kept: Any, began: Any, ended: Any, **how: Any) -> None:
        asked.append((*given, *how.values()))
        began(SimpleNamespace(folder=Path("FOLDER")))
        ended(SimpleNamespace(folder=Path("FOLDER")), "1 of 6")

    monkeypatch.setattr(envtuning.cli.studies, "execute", execute)
    monkeypatch.setattr(envtuning.cli.studies, "raise_unless_comparable", lambda arms: {})
    monkeypatch.setattr(envtuning.cli.studies, "comparison_of", lambda *given: "result")
    monkeypatch.setattr(envtuning.cli.studies, "tables", lambda result: [f"the {result}"])
    monkeypatch.setattr(envtuning.cli.studies, "write", lambda result, out: out / "figures.json")
    code, output = called(
        "compare",
        *words,
        "--engineers",
        "fixed, rules,",
        *(["--out", tmp_path] if given else []),
        "--jobs",
        jobs,
        "--stages",
        2,
        "--set",
        "retries=0",
        "--trust",
        "mine",
    )
    assert code == 0
    ((arms, seeds, out, at_a_time, on_ray, observer),) = asked
    base = load_spec(preset, changes={"retries": 0}).with_rounds(2)
    assert arms == StudySpec.of(base, ["fixed", "rules"], [0]).specs()
    assert (seeds, out, at_a_time) == ([0, 1, 2], place, jobs)
    assert on_ray is False
    assert (observer is None) == (jobs > 1)  # several at a time cannot be shown
    started = ["started FOLDER"] if jobs > 1 else []
    ended = ["finished FOLDER (1 of 6)", "the result", f"figures: {place / 'figures.json'}"]
    assert output.splitlines() == [
        *started,
        *ended,
        f"`envtuning report {place} --trust mine` puts all runs on one page",
    ]


def test_a_preset_is_printed_as_it_is_and_all_are_listed(monkeypatch):
    assert called("presets", "scripted") == (0, preset_text("scripted"))
    code, output = called("presets", "nothing")
    assert code == 1
    assert "no preset 'nothing': the presets are " in output
    monkeypatch.setattr("envtuning.cli.presets.preset_names", lambda: ["ladder", "scripted"])
    code, output = called("presets")
    heading, *rows = output.splitlines()
    assert heading.split() == ["preset", "stages", "budget", "what", "it", "is"]
    assert [row.split()[0] for row in rows if row[1] != " "] == [
        "ladder",
        "scripted",
    ]  # a long description goes on below
    scripted = next(row for row in rows if "scripted" in row[:20])
    spec = load_spec("scripted")
    assert f" {len(spec.stages)} " in scripted
    assert f"{spec.budget:,} env steps" in scripted
    assert spec.description[:40] in scripted
    # numbers end below their headings, texts begin there
    assert scripted.index(f" {len(spec.stages)} ") + 2 == heading.index("stages") + len("stages")
    assert scripted.index(spec.description[:20]) == heading.index("what it is")


# Runs that lie there


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> RunLog:
    return loop.start(spec_of({}, {}), tmp_path_factory.mktemp("commands") / "run")


def test_a_finished_run_is_read_whole_and_not_run_again(finished, tmp_path):
    import shutil

    trust = ("--trust", "tests.envtuning.counting_world")
    code, output = called("resume", finished.path, *trust)
    assert code == 0
    assert output.splitlines()[0] == f"{finished.path} is finished; remove it or choose another --out to run it again"
    assert output.splitlines()[-1] == f"report page: {finished.path / 'report.html'}"
    copy = RunLog.open(shutil.copytree(finished.path, tmp_path / "run"))
    (copy.state.stages[0].checkpoint / "steps.json").write_text("999")
    code, output = called("resume", copy.path, *trust)
    assert code == 1
    assert "checkpoint has changed since it was written" in output
    (copy.path / "test.json").unlink()
    code, output = called("show", copy.path, *trust)
    assert (code, output.splitlines()[-1]) == (0, f"this run stopped: `envtuning resume {copy.path}` continues")
    with atomic.locked(copy.path):
        assert called("show", copy.path, *trust)[1].splitlines()[-1] == "this run is running"


def test_runs_are_found_where_they_lie_and_what_is_none_is_skipped_or_told(finished, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(views.console, "print", said.append)
    assert [one.path for one in views.opened([finished.path])] == [finished.path]
    assert [one.path for one in views.opened([finished.path, tmp_path])] == [finished.path]
    assert said == [f"{tmp_path} is not a run: skipped"]
    held = [shutil.copytree(finished.path, tmp_path / "several" / name) for name in ("one-seed0", "one-seed1")]
    assert [one.path for one in views.opened([tmp_path / "several"])] == held
    with pytest.raises(RunError, match="is not a run folder"):
        views.opened([tmp_path])
    with pytest.raises(RunError, match="none of 2 folders is a run: `envtuning run` makes one"):
        views.opened([tmp_path, tmp_path])


@pytest.mark.parametrize(("case", "played"), [(None, 2), (0, 0), (9, 9)])
def test_a_film_is_of_the_case_that_is_named_or_of_the_first_that_failed(finished, monkeypatch, case, played):
    """After the first stage's 1,000 steps two cases are solved."""
    monkeypatch.setattr(CountWorld, "film", lambda self, cases, episode: episode.case)
    assert views.find_film(finished, 0, case) == played


def test_a_film_that_there_is_not_is_told(finished, monkeypatch):
    with pytest.raises(RunError, match="the world 'counting' has no films: `envtuning report"):
        views.find_film(finished, 0, None)
    with pytest.raises(RunError, match="case 10: stage 0 has cases 0 to 9"):
        views.find_film(finished, 0, 10)
    with pytest.raises(RunError, match=r"stage 2 of .* has no episodes: its 2 finished stages count from 0"):
        views.find_film(finished, 2, None)
    monkeypatch.setattr(CountWorld, "film", lambda self, cases, episode: episode.case)
    solved = [one.__class__(one.case, one.slice, None, one.metrics) for one in finished.state.stages[0].episodes()]
    monkeypatch.setattr("envtuning.runs.state.Stage.episodes", lambda stage: solved)
    assert views.find_film(finished, 0, None) == 0  # none failed


def test_a_film_is_saved_at_its_pace(finished, monkeypatch, tmp_path):
    saved: list[Any] = []
    film = Film("a title", "<svg/>", frames=["x"], save=lambda *given: saved.append(given))
    monkeypatch.setattr(CountWorld, "film", lambda self, cases, episode: film)
    trust = ("--trust", "tests.envtuning.counting_world")
    out = tmp_path / "a.gif"
    assert called("replay", finished.path, "--out", out, *trust) == (0, f"{out}: a title\n")
    assert called("replay", finished.path, "--out", out, "--seconds", 0, "--stage", 1, *trust)[0] == 0
    assert saved == [(out, 0.5), (out, 0.0)]
    code, output = called("replay", finished.path, "--stage", 1, *trust)
    assert (code, output) == (0, "x\nstage 1, a title\n")


@pytest.mark.parametrize("several", [False, True])
def test_a_page_lies_beside_its_runs(finished, monkeypatch, tmp_path, several):
    written: list[Any] = []
    monkeypatch.setattr(views, "write_page", lambda runs, out: written.append(([run.path for run in runs], out)) or out)
    folders = [finished.path] * (1 + several)
    trust = ("--trust", "tests.envtuning.counting_world")
    code, output = called("report", *folders, *trust)
    place = finished.path.parent if several else finished.path
    assert written[0][0] == folders
    assert (code, output) == (0, f"report: {written[0][1]}\n")
    assert written[0][1].name == "report.html"
    assert several or written[0][1] == place / "report.html"
    assert called("report", *folders, "--out", tmp_path / "p.html", *trust)[1] == f"report: {tmp_path / 'p.html'}\n"


def test_a_table_is_watched_while_somebody_works_on_the_run(finished, monkeypatch):
    """It is looked at twice a second, and left when the run has ended or nobody works on it any more."""
    states = {"next_task": iter([1, 1, None]), "is_locked": iter([True, True, True])}
    shown: list[Any] = []

    class Live:
        def __init__(self, table: Any, **named: Any) -> None:
            shown.append(("begin", table, named))

        def __enter__(self) -> Live:
            return self

        def __exit__(self, *_: object) -> None:
            shown.append("end")

        def update(self, table: Any) -> None:
            shown.append(table)

    monkeypatch.setattr(views, "Live", Live)
    monkeypatch.setattr(views, "run_table", lambda one: "table")
    monkeypatch.setattr(views, "next_task", lambda *_: next(states["next_task"]))
    monkeypatch.setattr(views.atomic, "is_locked", lambda path: next(states["is_locked"]))
    monkeypatch.setattr(views.time, "sleep", lambda seconds: shown.append(seconds))
    views.watch_table(finished)
    begin = ("begin", "table", {"console": views.console, "refresh_per_second": 2})
    assert shown == [begin, 0.5, "table", 0.5, "table", "end"]
    shown.clear()
    states |= {"next_task": iter([1]), "is_locked": iter([False])}
    views.watch_table(finished)
    assert shown == [begin, "end"]


def test_event_files_are_kept_up_to_date_while_somebody_works_on_a_run(finished, monkeypatch):
    done: list[Any] = []

    class Files:
        def __init__(self, run: RunLog) -> None:
            self.run = run

        def catch_up(self) -> str:
            done.append("catch up")
            return "FOLDER"

        def close(self) -> None:
            done.append("close")

    locked = iter([True, False])
    monkeypatch.setattr(views, "EventFiles", Files)
    monkeypatch.setattr(views.atomic, "is_locked", lambda path: next(locked))
    monkeypatch.setattr(views.time, "sleep", done.append)
    trust = ("--trust", "tests.envtuning.counting_world")
    assert called("tensorboard", finished.path, *trust) == (0, "event files: FOLDER\n")
    assert done == ["catch up", "close"]
    done.clear()
    assert called("tensorboard", finished.path, "--watch", *trust)[0] == 0
    assert done == ["catch up", 2, "catch up", "close"]


def test_a_page_is_written_into_a_folder_of_ones_own(finished, tmp_path):
    out = Path(tmp_path) / "page.html"
    assert called("report", finished.path, "--out", out, "--trust", "tests.envtuning.counting_world")[0] == 0
    assert "<html" in out.read_text(encoding="utf-8")
