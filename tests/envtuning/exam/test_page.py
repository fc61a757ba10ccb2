"""docs/exam.md says what the code does."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.lazily import needed

needed("torch", extra="exam")

import engineers  # noqa: E402
from benchmarks import exam_model, exam_rules, exam_table  # noqa: E402
from benchmarks._points import in_points  # noqa: E402
from benchmarks._record import RESULTS  # noqa: E402
from engineers.model.transcript import read_transcript  # noqa: E402
from engineers.plain import rising  # noqa: E402
from envtuning.exam.bounds import FOUND, OPEN_LOOPS, ORACLES  # noqa: E402
from envtuning.exam.families import DEVELOPMENT, DRAWN, HELD_OUT, NULL, REQUIRED, named  # noqa: E402
from envtuning.exam.hall import WITHOUT_A_MODEL  # noqa: E402
from envtuning.exam.sitting import BOUNDS, Paper, sit  # noqa: E402
from envtuning.studies.closed_loop import lower_bound  # noqa: E402
from envtuning.studies.intervals import t_mean  # noqa: E402

STORED = json.loads((RESULTS / "exam_ground.json").read_text(encoding="utf-8"))["figures"]["families"]
PAGE = (Path(__file__).parents[3] / "docs" / "exam.md").read_text(encoding="utf-8")


def test_every_family_has_its_row():
    named = re.findall(r"^\| `([\w-]+)`", PAGE, re.MULTILINE)
    assert named[: len(DEVELOPMENT) + len(REQUIRED)] == [family.name for family in (*DEVELOPMENT, *REQUIRED)]
    assert f"`drawn-1` to `drawn-{DRAWN}`" in PAGE


def test_the_searches_are_as_large_as_it_says():
    assert f"the best of {len(OPEN_LOOPS)} schedules" in PAGE
    assert f"the best of {len(ORACLES)} rules" in PAGE


def test_the_bounds_are_the_stored_search():
    for found in STORED:
        name = found["family"]["name"]
        if rows := found.get("rows"):
            of = {"open loop": rows["open loop"]["arm"], "oracle": rows["oracle"]["arm"]}
        else:
            of = {kind: found[kind] for kind in ("open loop", "oracle")}
        assert [str(arm) for arm in FOUND[name]] == [of["open loop"], of["oracle"]]
        for kind, arm in of.items():
            assert arm == found["searches"][kind][0]["arm"]
        assert found["family"] == named(name).model_dump(mode="json")
    assert {found["family"]["name"] for found in STORED} == FOUND.keys()


RULES, TABLE, MODEL = (
    json.loads((RESULTS / f"{result}.json").read_text(encoding="utf-8"))["figures"]
    for result in ("exam_rules", "exam_table", "exam_model")
)


def test_what_was_measured_is_what_is_stored():
    for name, found in RULES["families"].items():
        *rows, _ = exam_rules.lines(name, found)
        assert "\n".join(rows) in PAGE
        assert in_points(found["scores_over_success_alone"]) in PAGE
        assert found["rows"]["rising, scores"]["over_best_open_loop"]["bound"] > 0
        assert found["scores_over_success_alone"]["bound"] > 0
        assert found["rows"]["rising, yoked"]["over_best_open_loop"]["low"] < 0
        for control in ("mean of others", "shuffled scores"):
            assert in_points(found["rows"][f"rising, {control}"]["over_best_open_loop"]) in PAGE
        assert found["rows"]["rising, mean of others"]["over_best_open_loop"]["low"] < 0
        assert found["rows"]["rising, shuffled scores"]["over_best_open_loop"]["low"] > 0
    tried = [len(RULES["on_tuning_roots"][arm]) for arm in ("rising, scores", "rising, success", "once, success")]
    assert tried == [24, 24, 12]
    default = engineers.make("rising")
    settings = RULES["settings"]["rising, scores"]
    assert settings == {name: getattr(default, name) for name in settings}


def gains_of(opened: dict, ours: str, theirs: str, family: str) -> list[float]:
    """Of an engineer over another, by root."""
    pairs = zip(opened[ours]["per_root"][family], opened[theirs]["per_root"][family], strict=True)
    return [one - other for one, other in pairs]


def test_held_out_families_are_reported_whatever_came():
    opened = TABLE["opened"]
    for family in opened["rising"]["families"]:
        assert exam_table.row_of(family, opened) in PAGE
    for engineer in exam_table.OPENED:
        part = opened[engineer]["part"]
        assert (
            f"`{engineer}` takes {100 * part['mean']:.0f} % ({100 * part['low']:.0f}, {100 * part['high']:.0f})" in PAGE
        )
    assert f"{100 * opened['rising']['bound_over_even_on_null']:+.1f}" in PAGE
    for family, other in (("coins", "reader"), ("drawn-4", "even"), ("drawn-6", "even"), ("reasoning", "even")):
        assert in_points(asdict(t_mean(gains_of(opened, "rising", other, family)))) in PAGE
    for family in opened["rising"]["families"].keys() - {"coins", NULL}:
        assert lower_bound(gains_of(opened, "rising", "reader", family)) > 0
    assert in_points(asdict(t_mean(gains_of(opened, "oracle", "even", "reasoning")))) in PAGE
    over = {name: row["over_open_loop"] for name, row in opened["rising"]["families"].items()}
    assert {name for name, gain in over.items() if gain["low"] <= 0} == {"reasoning", "drawn-2", NULL}
    assert all(opened[name]["families"]["reasoning"]["over_open_loop"]["low"] < 0 for name in exam_table.OPENED)
    closed = {family.name for family in HELD_OUT} - opened["rising"]["families"].keys()
    assert all(f"`{name}` was not opened" in PAGE for name in closed)


def test_the_control_on_held_out_families_gains_nothing():
    afterwards = TABLE["afterwards"]
    assert "\n".join(exam_table.row_of_control(name, row) for name, row in afterwards.items()) in PAGE
    assert afterwards["rising, yoked"]["part"]["high"] < 0 < afterwards["rising, scores"]["part"]["low"]
    assert afterwards["rising, success"]["part"]["mean"] < 0
    ours, field = (
        afterwards[arm]["families"]["by-reward"]["over_even"] for arm in ("rising, scores", "p(1-p), success")
    )
    assert field["mean"] > ours["mean"]
    assert f"{in_points(field)} points above even draws, and `rising` {in_points(ours)}" in PAGE


def test_every_engineer_has_its_row():
    for name, row in TABLE["leaderboard"].items():
        assert exam_table.row_of_all(name, row) in PAGE
    assert {*WITHOUT_A_MODEL, *BOUNDS} == TABLE["leaderboard"].keys()


def lines_of_code(*names: str) -> int:
    """Of classes and functions beside ``rising``, without docstrings, comments and empty lines."""
    text = Path(rising.__file__).read_text(encoding="utf-8")
    lines = text.splitlines()
    found = [node for node in ast.parse(text).body if getattr(node, "name", None) in names]
    assert len(found) == len(names)
    said = {
        number
        for node in found
        for one in ast.walk(node)
        if isinstance(one, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(one)
        for number in range(one.body[0].lineno, one.body[0].end_lineno + 1)
    }
    of = [number for node in found for number in range(node.lineno, node.end_lineno + 1) if number not in said]
    return sum(bool(lines[number - 1].partition("#")[0].strip()) for number in of)


def test_the_rules_are_as_long_as_it_says():
    long = lines_of_code("RisingEngineer", "Stage", "results", "whole", "score_of", "shared")
    short = lines_of_code("OnceEngineer", "results", "shared")
    assert f"its rule has {long} lines of code, and `once` has {short}" in " ".join(PAGE.split())


def test_every_row_says_what_it_was_tuned_on():
    board = PAGE.partition("\n### All engineers without a model\n")[2].partition("\n### ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in board.splitlines() if line.startswith("| ")]
    assert len(rows) == len(TABLE["leaderboard"]) + 2
    assert all(reads and tuned for _, reads, tuned, *_ in rows)
    assert len(OPEN_LOOPS) == int(exam_table.TUNED["best open loop"].split()[0])
    assert len(ORACLES) == int(exam_table.TUNED["oracle"].split()[0])
    for name in ("rising", "once"):
        settings, roots = len(exam_rules.SETTINGS[name]), len(exam_rules.TUNING) * len(DEVELOPMENT)
        assert exam_table.TUNED[name].startswith(f"{settings} settings, {roots} roots")


def test_what_a_model_gained_is_what_is_stored():
    assert RULES["settings"]["rising, success"] == exam_model.ON_SUCCESSES
    assert "\n".join(exam_model.table(MODEL)) in PAGE
    assert all(found["refused"] == 0 for found in MODEL.values())
    assert f"it gains {100 * MODEL['scores']['part_of_the_oracles_gain']:.0f} % of what the oracle gains" in PAGE
    over = {name: found["rows"]["best open loop"]["model_minus"] for name, found in MODEL.items()}
    assert over["scores"]["low"] > 0 > over["yoked"]["high"]
    success, natural = MODEL["success"]["rows"], MODEL["reasoning"]["rows"]
    for row in (success["best open loop"], success["once"], natural["even"], natural["rising"]):
        assert in_points(row["model_minus"]) in PAGE
    ends = [
        f"{100 * MODEL[sheet]['rows'][arm]['success']:.1f} %"
        for sheet, rule in (("scores", "rising"), ("success", "rising, tuned for success alone"))
        for arm in (exam_model.MODEL, rule)
    ]
    said = "with scores, it ends at {} and `rising` at {}; with successes alone, at {} and {}."
    assert said.format(*ends) in " ".join(PAGE.split())
    times = [MODEL[name]["rows"][exam_model.MODEL]["per_root"][:4] for name in ("scores", "again", "third")]
    assert ", ".join(f"{25 * sum(time):.1f}" for time in times) in PAGE
    spread = max(max(root) - min(root) for root in zip(*times, strict=True))
    assert f"at most {100 * spread:.1f} points apart" in PAGE


def test_the_readme_says_what_is_stored():
    readme = (RESULTS.parents[1] / "README.md").read_text(encoding="utf-8")
    rows = RULES["families"]["codes-slow"]["rows"]
    gains = {name: in_points(row["over_best_open_loop"]) for name, row in rows.items()}
    assert f"`rising` ends {gains['rising, scores']} points above the best of 33" in readme
    assert f"gains {100 * rows['oracle']['over_best_open_loop']['mean']:+.1f} points" in readme
    assert f"`once`, which reads only successes, gains {gains['once, success']}" in readme
    lost = -100 * rows["rising, success"]["over_best_open_loop"]["mean"]
    assert f"with successes alone, it ends {lost:.1f} points below the best schedule" in readme
    assert f"ends {in_points(MODEL['scores']['rows']['rising']['model_minus'])} points above `rising`" in readme
    part = TABLE["opened"]["rising"]["part"]
    assert f"`rising` takes {100 * part['mean']:.0f} % ({100 * part['low']:.0f}, {100 * part['high']:.0f})" in readme
    assert f"`steady`, gains {gains['steady, scores']}" in readme
    assert f"{in_points(MODEL['reasoning']['rows']['rising']['model_minus'])} on the tasks from reasoning-gym" in readme
    reward = {name: row["families"]["by-reward"]["over_even"] for name, row in TABLE["afterwards"].items()}
    field, ours = (in_points(reward[arm]) for arm in ("p(1-p), success", "rising, scores"))
    assert f"p(1 − p) gains {field}, and `rising` {ours}." in readme


@pytest.mark.parametrize(
    ("family", "other"),
    [("codes-slow", "once, success"), ("algorithms-hopeless", "reader, success"), ("codes-slow", "reader, scores"),
     ("algorithms-hopeless", "reader, scores"), ("algorithms-hopeless", "even"), ("codes-slow", "steady, scores"),
     ("algorithms-hopeless", "steady, scores")],
)  # fmt: skip
def test_what_simpler_arms_take_of_it_is_what_is_stored(family, other):
    rows = RULES["families"][family]["rows"]
    pairs = zip(rows["rising, scores"]["per_root"], rows[other]["per_root"], strict=True)
    assert in_points(asdict(t_mean([ours - theirs for ours, theirs in pairs]))) in PAGE


def test_the_rivals_of_the_page_are_the_best_that_read_successes_alone():
    for family, best in (("codes-slow", "once, success"), ("algorithms-hopeless", "reader, success")):
        rows = RULES["families"][family]["rows"]
        alone = [name for name in rows if name.endswith(", success")]
        assert max(alone, key=lambda name: rows[name]["success"]) == best


@pytest.mark.parametrize("stored", ["exam_transcripts", "reward_transcripts"])
def test_beside_every_stored_answer_stands_the_config_that_resulted(stored):
    places = sorted((RESULTS.parents[1] / "benchmarks" / stored).rglob("transcript.jsonl"))
    assert len(places) >= 9
    for place in places:
        lines = place.with_name("configs_transcript.jsonl").read_text(encoding="utf-8").splitlines()
        asked, found = read_transcript(place), list(map(json.loads, lines))
        assert [one.stage for one in asked] == [one["stage"] for one in found]
        shares = dict.fromkeys(found[0]["config"]["tasks"], 1.0)  # what every training begins with
        for exchange, resulted in zip(asked, found, strict=True):
            assert exchange.reply is not None
            for change in json.loads(exchange.reply[exchange.reply.index("{") : exchange.reply.rindex("}") + 1])[
                "changes"
            ]:
                shares[change["path"].split(".")[1]] = change["value"]
            assert resulted["config"]["tasks"] == {name: {"share": share} for name, share in shares.items()}, place


@pytest.mark.slow
@pytest.mark.skipif(
    bool(exam_model.other_versions()), reason=f"asked by version {exam_model.other_versions()} of the prompt"
)
def test_a_model_s_answers_replay(tmp_path, monkeypatch):
    monkeypatch.setenv("ENVTUNING_EXAM", str(tmp_path))
    place = RESULTS.parents[1] / "benchmarks" / "exam_transcripts" / "scores"
    sitting = sit(Paper(engineer=f"replay/{place}", family=named("codes-slow"), root=1000))
    assert sitting.failures == []
    assert sitting.end == pytest.approx(MODEL["scores"]["rows"][exam_model.MODEL]["per_root"][0], abs=0.03)


@pytest.mark.slow
def test_its_code_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("ENVTUNING_EXAM", str(tmp_path))
    as_env, by_hand = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(as_env, names)
    assert names["done"] is False
    assert names["many"].num_envs == 8
    *before, last = by_hand.strip().splitlines()
    exec("\n".join(before), names)
    assert 0.5 < eval(last, names) < 0.75  # the oracle's mean success


def test_a_score_tells_the_kind_where_hopeless_tasks_earn_credit_too():
    stored = json.loads((RESULTS / "exam_gives_away.json").read_text(encoding="utf-8"))["figures"]
    half, natural = (stored[name]["over_best_open_loop"] for name in ("half-right", "reasoning"))
    told, own, alone = (in_points(half[shown]) for shown in ("shuffled scores", "scores", "success"))
    assert (
        f"it ends {told} points above it, and with the task's own score {own}. With successes alone, it ends {alone} points"
        in PAGE
    )
    assert all(row["low"] < 0 < row["high"] for row in natural.values())  # "no form gains anything"
