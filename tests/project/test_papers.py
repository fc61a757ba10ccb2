"""docs/papers.md: every row has a status, its commands exist, and the published rates on it agree with each other."""

import importlib.util
import json
import re
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from benchmarks import reading
from benchmarks._points import in_points
from benchmarks._record import RESULTS
from engineers.model.transcript import read_transcript
from envtuning.runs.spec import load_spec
from envtuning.studies.intervals import t_mean
from envtuning.studies.preregistered import load_study

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
STATUS = re.compile(r"\*\*(ran|stand-in|not run)\b|nothing to run$")


def rows() -> list[tuple[str, str, str]]:
    """Of the tables of results: what is in the paper, what is here, and the command."""
    found = re.findall(
        r"^\| [^|\n]* \| here \| command[^\n]*\n\| ---[^\n]*\n((?:\|[^\n]*\n)+)", PAGE, flags=re.MULTILINE
    )
    cells = [re.split(r" \| ", line.strip("| ")) for table in found for line in table.splitlines()]
    assert all(len(row) == 3 for row in cells)
    return [(row[0], row[1], row[2]) for row in cells]


def test_every_row_has_a_status_and_says_what_it_takes():
    assert len(rows()) > 50
    for paper, here, command in rows():
        assert STATUS.match(here), paper
        assert command != "–" or here == "nothing to run", paper


@pytest.mark.parametrize("module", sorted(set(re.findall(r"python -m (benchmarks(?:\.\w+)?)", PAGE))))
def test_its_benchmarks_exist(module):
    assert importlib.util.find_spec(module) is not None


@pytest.mark.parametrize("spec", sorted(set(re.findall(r"envtuning run ([\w./-]+)", PAGE))))
def test_its_runs_exist(spec):
    assert load_spec(ROOT / spec if "/" in spec else spec, trust=["benchmarks"]).stages


def test_an_option_of_its_benchmarks_exists():
    """Each in the source of its command's module; "… --option" belongs to the command before it in the cell."""
    checked = 0
    for _, _, cell in rows():
        module = ""
        for command in re.findall(r"`([^`]+)`", cell):
            if named := re.match(r"python -m benchmarks\.(\w+)", command):
                module = named[1]
            elif not command.startswith("… "):
                continue
            place = ROOT / "benchmarks" / module
            source = (place / "__main__.py" if place.is_dir() else place.with_suffix(".py")).read_text(encoding="utf-8")
            for option in re.findall(r" (--[\w-]+)", command):
                assert f'"{option}"' in source, command
                checked += 1
    assert checked > 10


def test_its_preregistered_studies_exist():
    [cell] = [command for _, _, command in rows() if "three-agents.yaml" in command]
    names = re.findall(r"([\w-]+)\.yaml", cell)
    assert len(names) == len(set(names)) == 6
    for name in names:
        assert load_study(ROOT / "benchmarks" / "preregistered" / f"{name}.yaml").seeds


@pytest.mark.parametrize("name", ["grpo_kl"])
def test_what_it_says_was_not_run_has_no_result(name):
    assert not (RESULTS / f"{name}.json").exists(), (
        "docs/papers.md says that this was not run: give its row the figures"
    )


def published() -> dict[str, dict[int, tuple[float, int]]]:
    """Of each model the valid rate by number of agents, and how many boards it is of."""
    stored = json.loads((resources.files("mapf_frozenlake.suite") / "paper_results.json").read_text(encoding="utf-8"))
    rates: dict[str, dict[int, tuple[float, int]]] = {}
    for table in stored["tables"]:
        for model, row in table["models"].items():
            rates.setdefault(model, {})[table["agents"]] = row["all"]["valid"], 150 * len(table["sizes"])
    return rates


def pooled(rates: dict[int, tuple[float, int]]) -> float:
    return sum(rate * boards for rate, boards in rates.values()) / sum(boards for _, boards in rates.values())


def test_each_context_s_rate_over_all_boards_is_the_mean_of_its_three_subsets():
    overall = dict(re.findall(r"(V\d) (\d\d\.\d)(?:,| %)", PAGE))
    subsets = dict(re.findall(r"(V\d) (\d\d\.\d / \d\d\.\d / \d\d\.\d)", PAGE))
    assert set(overall) == set(subsets) == {f"V{number}" for number in range(1, 7)}
    for name, three in subsets.items():
        assert f"{fmean(map(float, three.split(' / '))):.1f}" == overall[name]


def test_the_published_rates_are_those_that_the_suite_has():
    rates = published()
    fixed, engineered = rates["Qwen3-4B + GRPO (random)"], rates["Qwen3-4B + GRPO + Ours"]
    assert f"{pooled(fixed):.1f} % with a fixed config" in PAGE
    assert f"V6 {pooled(engineered):.1f} %" in PAGE
    for row in (fixed, engineered):
        assert " / ".join(f"{row[agents][0]:.2f}" for agents in (3, 4, 5)) + " %" in PAGE


def stored(name: str) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["figures"]
    return figures


ENGINEERS = ("rules", "half-success", "progress-share")
BASELINES = ("fixed", "uniform", "target-only")


def test_the_engineers_are_above_the_three_baselines_where_it_says_so():
    def low(success: reading.Success, engineer: str, other: str) -> float:
        return t_mean([one - two for one, two in zip(success[engineer], success[other], strict=True)]).low

    studies = {name: reading.success_of(f"study_{name}") for name in ("small-corridors", "corridors", "three-agents")}
    below = {
        (name, engineer)
        for name, success in studies.items()
        for engineer in ENGINEERS
        if min(low(success, engineer, baseline) for baseline in BASELINES) <= 0
    }
    assert below == {("three-agents", "progress-share")}
    for success in studies.values():
        assert all(len(arm) == 10 for arm in success.values())
        assert all(
            low(success, engineer, "ladder") <= 0 or low(success, engineer, "searched") <= 0 for engineer in ENGINEERS
        )


def test_where_nobody_reveals_the_kinds_a_rule_gains_on_all_held_out_families_but_two():
    families = stored("exam_table")["opened"]["rising"]["families"]
    lows = {name: found["over_open_loop"]["low"] for name, found in families.items() if name != "null"}
    assert [name for name, low in lows.items() if low <= 0] == ["reasoning", "drawn-2"]
    assert f"on {len(lows) - 2} of {len(lows)} held-out families" in PAGE


def test_a_large_model_as_the_engineer_is_told_as_it_was_measured():
    def minus(rows: dict[str, Any], other: str) -> str:
        return in_points(rows[other]["model_minus"])

    exam, reward = stored("exam_model"), stored("reward_model")
    scores, success, reasoning = (exam[part]["rows"] for part in ("scores", "success", "reasoning"))
    assert (len(exam["scores"]["roots"]), len(reward["roots"])) == (16, 6)  # "sixteen roots", "six roots"
    best = "best open loop"
    said = f"it ends {minus(scores, best)} points from the {best} and {minus(scores, 'rising')} from `rising`"
    assert f"{said}. With success alone, it ends {minus(success, best)} points" in PAGE
    assert f"it ends {minus(reasoning, best)} points from it, which shows nothing" in PAGE
    assert reasoning[best]["model_minus"]["low"] < 0 < reasoning[best]["model_minus"]["high"]
    half, end = (
        minus(table, "even draws") for table in (reward["tables"][at] for at in ("92160 replies", "184320 replies"))
    )
    assert f"it ends {half} points from even draws half-way, and {end} at the end" in PAGE


def test_what_a_curriculum_adds_by_reward_is_stored():
    study = stored("reward_study")
    half, end = (
        in_points(study["tables"][at]["rising"]["minus even draws"]["all"])
        for at in ("92160 replies", "184320 replies")
    )
    assert study["roots"] == 16
    assert f"`rising` ends {half} points from even draws half-way, and {end} at the end" in PAGE


def test_a_pretrained_model_rose_with_an_engineer_and_without():
    run, rates = stored("small_skills"), stored("small_skills_rates")["rates"]
    before, first, last = (run["test"][at]["success"] for at in ("before", "first stage", "end"))
    said = (
        f"was {100 * before:.1f} % before, {100 * first:.1f} % after five updates and {100 * last:.1f} % after twenty"
    )
    assert said in PAGE
    assert run["updates"] == 20
    even, faster = (rates[rate]["test"]["end"]["success"] for rate in ("0.0001", "0.0003"))
    assert f"Even draws end at {100 * even:.1f} %" in PAGE
    assert f"three times the rate, even draws end at {100 * faster:.1f} %" in PAGE
    assert before < first < last < even


def test_no_run_of_a_real_model_without_the_kl_term_collapses():
    rows = stored("real_skills")["rows"] + stored("real_skills_more")["rows"]
    rows = [row for row in rows if "shuffled" not in row["arm"]]  # whose rewards say nothing
    entropy, norm = ([row["signs of collapse"][sign] for row in rows] for sign in ("entropy", "grad_norm"))
    assert len(rows) == 23
    ends = [f"{min(values):.1f}–{max(values):.1f}" for values in zip(*entropy, strict=True)]
    assert "entropy falls from {} to {}".format(*ends) in PAGE
    times = [last / first for first, last in norm]
    assert f"the gradient's norm becomes {min(times):.1f} to {max(times):.1f} times as large" in PAGE
    assert f"of {min(row['updates'] for row in rows)} to {max(row['updates'] for row in rows)} updates" in PAGE
    gained = [100 * (fmean(row["end"].values()) - fmean(row["before"].values())) for row in rows]
    (falls,) = [gain for gain in gained if gain < -1e-9]  # "one run's success falls, by half a point"
    assert falls == pytest.approx(-0.5, abs=0.05)
    faster = stored("small_skills_rates")["rates"]["0.0003"]["test"]
    fall = [f"{100 * faster[at]['success']:.1f}" for at in ("first stage", "end")]
    assert "even draws fall from {} to {} % in 15 updates".format(*fall) in PAGE


def test_a_checkpoint_s_own_entropy_is_no_better_than_even_draws():
    found = stored("gate_engineers")["differences"]["checkpoint - even"]
    assert found["low"] < 0 < found["high"]


def test_every_pair_of_model_and_report_has_five_answers():
    assert {row["answers"] for row in stored("readers")["means"]} == {5}


def test_the_last_policy_of_the_four_stages_is_the_stored_one():
    success = stored("bfcl_four_stages_v4")["test"]["after the last stage"]["success_rate"][0]
    assert f"Its last policy solves {100 * success:.0f} of 100 test tasks" in PAGE


ABLATIONS = {
    "no actionable messages": "no feedback",
    "a reward for success alone": "binary reward",
    "a single stage": "single stage",
    "KL weight 0 (the others: .02; the paper: .1)": "no KL",
}


def test_the_ablations_are_those_that_are_stored():
    tests = stored("bfcl_ablations_v4")["tests"]

    def rate(of: dict[str, Any]) -> str:
        return f"{100 * of['mean'][0]:.1f}"

    def points(of: dict[str, Any]) -> str:
        mean, low, high = (100 * x for x in of["mean"])
        return f"{mean:+.1f} ({low:+.1f}, {high:+.1f})"

    scores, arms = ("success", "progress"), tests["all"]["arms"]
    assert f"| four stages | {' | '.join(rate(arms['four stages'][score]) for score in scores)} |" in PAGE
    clear = set()
    for name, arm in ABLATIONS.items():
        gaps = [tests[part]["four stages minus"][arm][score] for part in tests for score in scores]
        cells = [*(rate(arms[arm][score]) for score in scores), *map(points, gaps)]
        assert f"| {name} | {' | '.join(cells)} |" in PAGE
        clear |= {(arm, place) for place, gap in enumerate(gaps) if gap["mean"][1] > 0}
    assert clear == {("no feedback", 1), ("no feedback", 3), *(("binary reward", place) for place in range(4))}
    for name, policy in (("untrained", "untrained"), ("a policy that says nothing", "no-op")):
        told = (f"{100 * tests['all']['untaught'][policy][score]:.1f}" for score in scores)
        assert f"| {name} | {' | '.join(told)} |" in PAGE
    assert (
        f"{rate(tests['something missing']['arms']['binary reward']['success'])} % success on these two splits" in PAGE
    )

    def gap(part: str, arm: str, score: str) -> str:
        return f"{100 * tests[part]['four stages minus'][arm][score]['mean'][0]:.1f} points"

    missing = "something missing"
    assert f"a single stage ends {gap('all', 'single stage', 'success')} lower" in PAGE
    assert f"success is {gap(missing, 'no feedback', 'success')} lower" in PAGE
    assert f"progress is {gap(missing, 'no feedback', 'progress')} lower" in PAGE
    assert f"{gap(missing, 'binary reward', 'success')} below the progress reward" in PAGE


def test_a_reward_for_success_alone_has_none_in_validation_after_the_second_stage():
    seeds = stored("bfcl_ablations_v4")["raw"]["binary reward"]["seeds"].values()
    assert [run["stages"][1]["validation"]["success_rate"] for run in seeds] == [0.0] * 5


def test_what_is_said_of_tools_never_seen_is_stored():
    classes = stored("bfcl_held_out_v4")["classes"]
    assert len(classes) == 8
    times, clear = [], set()
    for name, row in classes.items():
        mean, low, high = (100 * x for x in row["never seen"]["progress"]["mean"])
        less, least, most = (100 * x for x in row["never seen minus seen"]["progress"]["mean"])
        untrained = 100 * row["untrained"]["progress"]
        cells = f"{untrained:.1f} | {mean:.1f} ({low:.1f}, {high:.1f}) | {less:+.1f} ({least:+.1f}, {most:+.1f}) |"
        assert f"| `{name}` | {row['tasks']} | {cells}" in PAGE
        assert low > untrained  # "always far above"
        times.append(mean / untrained)
        clear |= {name} if most < 0 else set()
    assert (round(min(times)), round(max(times))) == (2, 4)  # "two to four times"
    assert clear == {"TravelAPI", "TradingBot", "GorillaFileSystem"}
    assert sum(row["never seen minus seen"]["progress"]["mean"][0] < 0 for row in classes.values()) == 7


def test_the_runs_of_one_long_stage_are_those_that_are_stored():
    def cells(values: list[float]) -> str:
        means = [fmean(values[begin : begin + 10]) for begin in range(0, len(values), 10)]
        return ", ".join(f"{mean:.3f}".removeprefix("0") for mean in (means[0], min(means), means[-1]))

    rows = stored("collapse")["rows"]
    assert len(rows) == 3
    for row in rows:
        beta = f"{row['beta']:g}".removeprefix("0") or "0"
        assert f"| {beta} | {cells(row['reward'])} | {cells(row['entropy'])} | {row['collapsed at']} |" in PAGE
        assert fmean(row["reward"][-10:]) > fmean(row["reward"][:10])


def test_a_small_model_hardly_changes_the_config_before_its_training_or_after():
    """By the twelve stored answers themselves: each names one share, ten as it stands in its question."""
    figures = stored("checkpoint_engineer")
    answers = read_transcript(ROOT / "benchmarks" / "checkpoint_transcripts")
    rows = [row for who in ("base", "checkpoint") for row in figures[who]["answers"]]
    assert len(answers) == len(rows) == 12
    changed = set()
    for answer in answers:
        (change,) = json.loads(answer.reply)["changes"]
        task = change["path"].split(".")[1]
        question = answer.messages[-1]["content"]
        config = next(json.loads(line) for line in reversed(question.splitlines()) if line.startswith('{"tasks"'))
        if change["value"] != config["tasks"][task]["share"]:
            changed.add((task, change["value"]))
    (only,) = changed
    assert only[0] == "copy"
    assert [row["changes"] for row in rows] == [0, 1, 0, 0, 0, 0] * 2
    assert figures["base"]["mean_after"] == figures["checkpoint"]["mean_after"]
    assert "Ten of twelve answers keep the config as it is" in PAGE
    before, after = ({f"{100 * row[when]:.1f}" for row in rows if row["changes"]} for when in ("before", "after"))
    (first,), (last,) = before, after
    assert f"less of the data then goes to tasks that teach: {last} % instead of {first} %" in PAGE
