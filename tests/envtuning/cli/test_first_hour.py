"""What somebody meets in the first hour with the command line: notes before a run, short forms in files, counts while runs end."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envtuning.cli import app
from envtuning.runs.plan import Plan
from envtuning.runs.resolve import note_of
from envtuning.runs.spec import load_spec, preset_text

SMALL = [f"stages.{number}.budget=600" for number in range(4)] + [
    "suites.validation_per_slice=4",
    "suites.test_per_slice=5",
]


CAPPED = "engineer={name: fixed, options: {max_cost: 0.05}}"


def called(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output


def settings(*more: str) -> list[str]:
    return [word for setting in (*SMALL, *more) for word in ("--set", setting)]


@pytest.mark.parametrize("command", ["run", "compare", "file"])
def test_what_no_engineer_of_the_run_can_turn_is_said_before_it(command, tmp_path):
    """The first stage blocks collisions, the target ends the episode, and no shipped engineer may turn that."""
    file = tmp_path / "mine.yaml"
    rules = ["stages.0.config.collisions=block"]
    if command == "run":
        said = called("run", "scripted", *settings(*rules), "--out", tmp_path / "run")
    elif command == "compare":
        said = called(
            "compare", "scripted", "--seeds", 1, "--engineers", "steady", *settings(*rules), "--out", tmp_path / "c"
        )
    else:
        spec = load_spec(
            "scripted",
            changes=dict(setting.split("=") for setting in SMALL[4:]) | {"stages.0.config.collisions": "block"},
        )
        file.write_text(spec.model_dump_json(by_alias=True))
        study = {"name": "s", "question": "?", "preset": str(file), "seeds": [0], "arms": {"a": {"engineer": "steady"}}}
        (tmp_path / "study.json").write_text(json.dumps(study))
        said = called("compare", tmp_path / "study.json", "--out", tmp_path / "s")
    note = re.search(r"note: collisions .*'block'.*'end'.*'steady'.*", said)
    assert note is not None, said
    assert note.start() < said.index("stage 0")


@pytest.mark.parametrize(
    ("change", "engineer", "noted"),
    [
        ({}, "rules", None),
        ({"stages.0.config.slices.4.min_distance": 2}, "rules", "slices.4.min_distance"),
        ({"stages.0.config.slices.4.min_distance": 2, "editable": ["slices"]}, "rules", None),
        ({"stages.0.config.collisions": "block", "editable": ["collisions", "slices"]}, "rules", "collisions"),  # no number
        ({"stages.0.config.collisions": "block", "editable": ["collisions", "slices"]}, "random", None),
        ({"stages.0.config.collisions": "block", "editable": ["collisions", "slices"]}, "human", None),
        ({"stages.0.config.collisions": "block", "stages.2.config": "TARGET"}, "rules", None),  # the file comes there
    ],
)  # fmt: skip
def test_the_note_names_what_this_engineer_cannot_turn_and_nothing_else(change, engineer, noted):
    target = load_spec("scripted").target
    spec = load_spec("scripted", changes={key: target if value == "TARGET" else value for key, value in change.items()})
    found = note_of(Plan.of(spec.model_copy(update={"engineer": spec.engineer.replaced_by(engineer)})))
    assert (found is None) if noted is None else found.startswith(f"{noted} is ")


def test_a_slice_of_the_target_that_no_stage_begins_with_is_said_before_the_run(tmp_path):
    """No engineer adds a slice. One without data, or one that a later stage is given, is enough."""
    lacking = {"target.slices.6": {"min_distance": 1, "hole_ratio": 0.0, "share": 1.0}}
    note = note_of(Plan.of(load_spec("scripted", changes=lacking)))
    assert note is not None
    assert note.startswith("the target has the slice '6', and the config has 3, 4, 5: no engineer adds a slice")
    said = called(
        "run",
        "scripted",
        *settings(*(f"{key}={json.dumps(value)}" for key, value in lacking.items())),
        "--out",
        tmp_path / "run",
    )
    assert said.count("note: the target has the slice '6'") == 1
    begun = lacking["target.slices.6"] | {"share": 0.0}
    assert note_of(Plan.of(load_spec("scripted", changes=lacking | {"stages.0.config.slices.6": begun}))) is None
    nothing = {"target.slices.6": begun}
    assert note_of(Plan.of(load_spec("scripted", changes=nothing))) is None


def test_a_file_may_write_an_engineer_a_trainee_and_a_world_by_their_names_alone(tmp_path):
    plain = preset_text("scripted").replace("{kind: scripted}", "scripted")
    assert plain != preset_text("scripted")
    (tmp_path / "scripted.yaml").write_text(plain + "world: lakes\nengineer: steady\n")
    assert load_spec(tmp_path / "scripted.yaml") == load_spec("scripted")


def test_what_is_neither_a_name_nor_a_section_says_what_to_write(tmp_path):
    (tmp_path / "s.yaml").write_text(
        "name: s\nquestion: q\npreset: scripted\nseeds: [0]\narms: {a: {engineer: [fixed]}}\n"
    )
    result = CliRunner().invoke(app, ["compare", str(tmp_path / "s.yaml"), "--table"])
    assert result.exit_code == 1
    assert "arms.a.engineer: ['fixed']" in result.output
    assert "{name: …, options: {…}}" in result.output


def test_a_comparison_of_six_runs_counts_six_and_its_page_has_three_colours(tmp_path):
    said = called(
        "compare", "scripted", "--seeds", 2, "--engineers", "fixed,uniform,rules", *settings(), "--out", tmp_path / "c"
    )
    assert re.findall(r"finished \S+ \((\d of \d+ runs)", said) == [
        f"{done} of 6 runs" for done in (0, 1, 2, 3, 3, 4, 5, 6)
    ]  # at 0 and 3 a shared first stage
    assert "±" not in said  # two seeds that agree would have no spread, and others hardly one
    called("report", tmp_path / "c")
    page = (tmp_path / "c" / "report.html").read_text(encoding="utf-8")
    progress = page[page.index('<div id="progress">') : page.index('<section class="run">')]
    assert len(set(re.findall(r'<polyline [^>]*stroke="(#\w+)"', progress))) == 3
    assert re.findall(r"</i>(\w+): mean of 2 seeds", progress) == ["fixed", "rules", "uniform"]


@pytest.mark.parametrize("command", [("run", "scripted", "--engineer"), ("compare", "scripted", "--engineers")])
def test_dollars_of_a_model_without_a_price_are_refused_before_the_run(command, tmp_path):
    pytest.importorskip("openai")
    given = [*command, "server/http://127.0.0.1:9/v1#m", "--out", str(tmp_path / "out")]
    capped = [*given, "--max-cost", "0.05"] if command[0] == "run" else [*given, "--set", CAPPED]
    result = CliRunner().invoke(app, capped)
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert (
        "max_cost=0.05 cannot be kept: no price is known for 'server/http://127.0.0.1:9/v1#m'; cap max_total_tokens"
        in said
    )
    assert not list(tmp_path.iterdir())


def test_a_comparison_that_continues_says_which_runs_it_keeps_and_what_to_remove(tmp_path, monkeypatch):
    (tmp_path / "kept_mine.py").write_text(
        "from engineers.plain.base import Design, PlainEngineer\n\n\nclass Mine(PlainEngineer):\n    name = 'mine'\n\n"
        "    def design(self, report, current, knobs):\n        return Design()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    words = ("compare", "scripted", "--seeds", 1, *settings(), "--stages", 2, "--out", "c", "--engineers")
    assert "kept from before" not in called(*words, "fixed")
    assert "1 of 2 runs is kept from before\n" in called(*words, "fixed,kept_mine:Mine")
    said = " ".join(called(*words, "fixed,kept_mine:Mine").split())
    assert "2 of 2 runs are kept from before; after a change of your engineer, remove c/kept_mine_Mine" in said
    shutil.rmtree("c/kept_mine_Mine")
    assert "finished c/kept_mine_Mine/seed0 (1 of 1 runs" in called(*words, "fixed,kept_mine:Mine")


def test_thirty_agents_are_trained_reported_and_shown(tmp_path):
    """Letters end at 24 agents, configs at 64: the report's boards are then written without letters."""
    crowd = {"num_agents": 30, "slices": {8: {"hole_ratio": 0.0}}}
    spec = {
        "trainee": "scripted", "engineer": "rules", "target": crowd, "stages": [{"config": crowd, "budget": 600}, {"budget": 600}],
        "suites": {"validation_per_slice": 2, "test_per_slice": 2, "probe_per_slice": 1},
    }  # fmt: skip
    (tmp_path / "crowd.json").write_text(json.dumps(spec))
    called("run", tmp_path / "crowd.json", "--out", tmp_path / "run")
    report = json.loads((tmp_path / "run" / "stages" / "00" / "report.json").read_text())
    assert report["failure_cases"]
    assert all("Agent 29 needs to go from" in case["picture"] for case in report["failure_cases"])
    called("replay", tmp_path / "run", "--stage", 0, "--case", 0, "--out", tmp_path / "film.svg")
    called("report", tmp_path / "run")


def test_a_whole_comparison_can_be_printed_copied_and_run(tmp_path):
    (tmp_path / "mine.yaml").write_text(called("compare", "--example"))
    said = called(
        "compare", tmp_path / "mine.yaml", "--engineers", "uniform,target-only", "--seeds", "1", "--out", tmp_path / "c"
    )
    for arm in ("uniform", "target-only"):
        assert any(line.startswith(f" {arm} ") for line in said.splitlines())


@pytest.mark.parametrize("file", ["engineers/example_report.json", "envtuning/studies/example_comparison.yaml"])
def test_what_a_first_hour_needs_is_in_the_wheel(file):
    """It takes whole packages, but for what git ignores; tests/project/wheel_smoke.sh builds one and tries it."""
    root = Path(__file__).parents[3]
    built = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert built["wheel"] == {"packages": ["mapf_frozenlake", "mapf_lake", "engineers", "envtuning"]}
    assert (root / file).is_file()
    ignored = subprocess.run(["git", "check-ignore", "-q", "--no-index", file], cwd=root, check=False).returncode
    assert ignored == 1
