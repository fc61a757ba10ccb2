"""What the report page says: numbers in words, runs told apart, and which values its charts are given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engineers.report import SliceResult, wilson
from engineers.shared.counts import money
from envtuning.loop import run as loop
from envtuning.runs.state import TestRecord
from envtuning.show.page import _heat, _number, _percent, _template, _told_apart, common_folder, figures
from envtuning.show.page import outcomes as page_outcomes
from envtuning.show.page.figures import arms_of, learning_chart, progress_chart, slice_chart
from envtuning.show.page.line_chart import Chart, Series, colour
from envtuning.show.page.replays import _choose, replays
from envtuning.show.page.view import RunView, StageView, view_run
from envtuning.worlds.episodes import Episode
from envtuning.worlds.world import About
from tests.envtuning.counting_runs import spec_of
from tests.envtuning.counting_world import CountConfig


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "–"), (True, "yes"), (False, "no"), (0.12345, "0.123"), (999.9, "1e+03"), (1000.0, "1,000"), (-2500.0, "-2,500"),
        (1000.4, "1,000"), (1234, "1,234"), ("x", "x"), (0, "0"),
    ],
)  # fmt: skip
def test_a_value_of_a_table(value, said):
    assert _number(value) == said


def test_rates_money_and_shades():
    assert (_percent(None), _percent(0.1234)) == ("–", "12.3")
    assert (money(None), money(0.5), money(0.0)) == ("unknown", "$0.5000", "$0.0000")
    assert _heat(None) == ""
    assert _heat(0.5) == "background: color-mix(in srgb, #009e73 38%, var(--page))"


def test_a_page_escapes_what_it_is_given_and_stumbles_over_what_is_missing():
    environment = _template().environment
    assert (
        environment.from_string("{% if x %}\n  {% if x %}\n{{ x }}\n  {% endif %}\n{% endif %}").render(x="<b>")
        == "&lt;b&gt;\n"
    )
    assert {"percent", "number", "money", "heat"} <= environment.filters.keys()
    with pytest.raises(Exception, match="'y' is undefined"):
        environment.from_string("{{ y }}").render()


def test_runs_are_told_apart_by_what_their_folders_do_not_share(tmp_path, monkeypatch):
    assert _told_apart([tmp_path / "a" / "b"]) == ["b"]
    paths = [tmp_path / "rules" / "seed0", tmp_path / "fixed" / "seed0"]
    assert _told_apart(paths) == ["rules/seed0", "fixed/seed0"]
    assert common_folder(paths) == tmp_path
    monkeypatch.chdir(tmp_path)
    assert _told_apart([Path("a"), tmp_path / "b"]) == ["a", "b"]


@pytest.mark.parametrize(("count", "title"), [(1, "a"), (3, "a · b · c"), (4, "4 runs")])
def test_a_title_names_a_few_runs_and_counts_more(monkeypatch, count, title):
    from envtuning.show import page

    told: list[dict[str, Any]] = []
    monkeypatch.setattr(page, "_template", lambda: SimpleNamespace(render=lambda **given: told.append(given) or ""))
    monkeypatch.setattr(page, "progress_chart", lambda runs: "")
    monkeypatch.setattr(page, "arms_of", lambda runs: [])
    monkeypatch.setattr(page, "first_screen", lambda runs, arms: None)
    page.render_page([SimpleNamespace(name=name) for name in "abcd"[:count]])
    assert told[0]["title"] == title


# Charts


@pytest.fixture
def charted(monkeypatch) -> None:
    """A chart as what would be drawn."""
    monkeypatch.setattr(figures, "draw", lambda chart: chart)


ABOUT = About(name="x", environment="", objective="a", rates={"a": "good", "b": "best"}, slice_label="{0}×{0}")


def stage(number: int, spent: int | None, *rows: tuple[str, int, float], lines: tuple[dict, ...] = ()) -> StageView:
    """One whose slices have these numbers of episodes and this rate of both metrics but the last slice's second."""
    results = [SliceResult(name=name, episodes=count, metrics={"a": rate, "b": rate / 2}) for name, count, rate in rows]
    done = None if spent is None else SimpleNamespace(spent={"tokens": spent})
    report = SimpleNamespace(results=results) if spent is not None else None
    files = SimpleNamespace(lines=lambda *_, **__: list(lines))
    return StageView(number, Path(), SimpleNamespace(), files, done, report)


def view(
    *stages: StageView, name: str = "run", about: About = ABOUT, unit: str = "tokens", but_for_its_seed: str = "",
    engineer: str = "", test: Any = None,
) -> RunView:  # fmt: skip
    spec = SimpleNamespace(model_dump_json=lambda exclude: but_for_its_seed, engineer=SimpleNamespace(name=engineer))
    plan = SimpleNamespace(spec=spec, unit=unit, world=SimpleNamespace(about=about))
    return RunView(SimpleNamespace(plan=plan, state=SimpleNamespace(test=test)), name, list(stages))


def test_progress_is_the_objective_with_its_interval_over_what_was_spent_and_other_rates_dashed(charted):
    first = view(stage(0, 100, ("3", 4, 0.5)), stage(1, 50), stage(2, 30, ("3", 4, 1.0)), stage(3, None), name="one")
    second = view(stage(0, 10, ("3", 4, 0.25)), name="two", unit="env_steps")
    found = progress_chart(arms_of([first, second]))
    bands = [[wilson(rate, 4)[edge] for rate in (0.5, 1.0)] for edge in (0, 1)]
    assert found == Chart(
        [
            Series("one, good", [100, 180], [0.5, 1.0], *bands, colour=colour(0)),
            Series("one, best", [100, 180], [0.25, 0.5], dashed=True, colour=colour(0)),
            Series("two, good", [0], [0.25], [wilson(0.25, 4)[0]], [wilson(0.25, 4)[1]], colour=colour(1)),
            Series("two, best", [0], [0.125], dashed=True, colour=colour(1)),
        ],
        "tokens or env steps",
        "rate on the validation suite",
        y_range=(min(bands[0][0], wilson(0.25, 4)[0]), 1.0),
        percent=True,
    )


def test_runs_of_several_seeds_share_a_colour_and_have_a_mean_as_far_as_all_have_come(charted):
    runs = [
        view(stage(0, 100, ("3", 4, 0.02)), stage(1, 100, ("3", 4, 0.04)), name="rules/seed0", but_for_its_seed="a"),
        view(stage(0, 200, ("3", 4, 0.06)), name="rules/seed1", but_for_its_seed="a"),
        view(stage(0, 100, ("3", 4, 0.0)), name="fixed/seed0", but_for_its_seed="b"),
        view(stage(0, 100, ("3", 4, 0.0)), name="fixed/seed1", but_for_its_seed="b"),
    ]
    rules, fixed = arms_of(runs)
    assert [(arm.name, arm.colour, len(arm.runs)) for arm in (rules, fixed)] == [
        ("rules", colour(0), 2),
        ("fixed", colour(1), 2),
    ]
    found = progress_chart([rules, fixed])
    assert found.series[:4] == [
        Series("rules/seed0, good", [100, 200], [0.02, 0.04], colour=colour(0), marks=False, width=1.0),
        Series("rules/seed1, good", [200], [0.06], colour=colour(0), marks=False, width=1.0),
        Series("rules, good, mean of 2", [150], [pytest.approx(0.04)], colour=colour(0), width=3.0),
        Series("rules, best, mean of 2", [150], [pytest.approx(0.02)], dashed=True, colour=colour(0), width=3.0),
    ]
    assert {line.colour for line in found.series[4:]} == {colour(1)}
    assert found.y_range == (0.0, 0.1)  # not the whole up to 100 %


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        (["rules/seed0", "rules/seed1"], "rules"), (["engineer-rules-seed10", "engineer-rules-seed11"], "engineer-rules"),
        (["seed0", "seed1"], "the engineer"), (["one"], "one"),
    ],
)  # fmt: skip
def test_an_arm_has_the_name_that_its_runs_share(names, shared):
    runs = [view(name=name, engineer="the engineer", but_for_its_seed="x") for name in names]
    assert [arm.name for arm in arms_of(runs)] == [shared]


@pytest.mark.parametrize(
    ("rates", "axis"),
    [
        ((0.0, 0.3), (0.0, 0.3)),
        ((0.5, 0.52), (0.5, 0.6)),
        ((0.97, 1.0), (0.9, 1.0)),
        ((0.0, 0.0), (0.0, 0.1)),
        ((1.0, 1.0), (0.9, 1.0)),
    ],
)
def test_the_axis_of_rates_fits_what_is_drawn(charted, rates, axis):
    runs = [view(stage(0, 1, ("3", 1, rate)), name=f"seed{seed}", but_for_its_seed="x", about=About(name="x", environment="", objective="a", rates={"a": "good"})) for seed, rate in enumerate(rates)]  # fmt: skip
    assert progress_chart(arms_of(runs)).y_range == pytest.approx(axis)


def test_slices_are_lines_over_the_stages_in_the_order_of_their_numbers(charted):
    run = view(stage(0, 1, ("10", 4, 0.5), ("9", 4, 0.25)), stage(1, 1, ("9", 4, 0.75)))
    del run.stages[0].report.results[0].metrics["a"]
    assert run.slices == ["9", "10"]
    assert slice_chart(run) == Chart(
        [Series("slice 9×9", [0, 1], [0.25, 0.75], colour=colour(0)), Series("slice 10×10", [], [], colour=colour(1))],
        "stage",
        "good",
        y_range=(0.0, 1.0),
        percent=True,
        whole_x=True,
    )


@pytest.mark.parametrize(("metric", "whole"), [("success_rate", True), ("grad_norm", False)])
def test_a_training_metric_is_drawn_over_all_that_was_spent_with_a_line_where_a_stage_begins(charted, metric, whole):
    lines = (
        {"kind": "incident"},
        {"kind": "iteration", "spent": 5, metric: 1},
        {"kind": "validation", "spent": 8, metric: 9},
    )
    run = view(
        stage(0, 20, lines=lines),  # 12 were an attempt's that diverged
        stage(1, None, lines=(*lines, {"kind": "iteration", "spent": 9})),
        stage(2, None, lines=lines),
    )
    assert learning_chart(run, metric) == Chart(
        [Series(metric.replace("_", " "), [5, 25, 34], [1.0, 1.0, 1.0], marks=False)],
        "tokens",
        metric,
        (0.0, 1.0) if whole else None,
        whole,
        borders=[20, 29],
    )


def told(spent: int, **slices: tuple[int, int, float]) -> dict:
    """An iteration whose slices have these episodes, successes and sums of scores."""
    first = {name: dict(zip(("episodes", "successes", "score_sum"), of, strict=True)) for name, of in slices.items()}
    return {"kind": "iteration", "spent": spent, "outcomes": {"first": first}}


@pytest.fixture
def shown(monkeypatch) -> RunView:
    """Two stages; the second has nothing of y."""
    monkeypatch.setattr(page_outcomes, "draw", lambda chart: chart)
    run = view(
        stage(0, 20, lines=(told(5, x=(4, 1, 2.0), y=(4, 4, 4.0)), told(12, x=(4, 2, 3.0), y=(4, 4, 4.0)))),
        stage(1, 10, lines=(told(10, x=(8, 8, 8.0)), {"kind": "iteration", "spent": 10})),
    )
    stages = [
        replace(one, chosen=SimpleNamespace(config=shares))
        for one, shares in zip(run.stages, ({"x": 0.5, "y": 0.5}, {"x": 1.0}), strict=True)
    ]
    run.log.plan.world.slices = lambda config: config
    return replace(run, stages=stages)


def test_training_is_drawn_slice_by_slice_over_the_whole_run(shown):
    assert page_outcomes.slices_seen(shown) == ["x", "y"]
    axis, success, score = page_outcomes.outcome_chart(shown, "x").series
    assert (axis.x, axis.width) == ([0.0, 30.0], 0.0)
    assert (success.x, success.y, success.dashed) == ([5, 12, 30], [0.25, 0.5, 1.0], False)
    assert (score.x, score.y, score.dashed) == ([5, 12, 30], [0.5, 0.75, 1.0], True)
    _, alone = page_outcomes.outcome_chart(shown, "y").series
    assert (alone.x, alone.y) == ([5, 12], [1.0, 1.0]), "its score is its success, and the second stage has none of it"
    assert page_outcomes.outcome_chart(shown, "y").borders == [20]


def test_beneath_stand_the_shares_of_the_same_stages(shown):
    _, share = page_outcomes.share_chart(shown, "y").series
    assert (share.x, share.y) == ([0, 20, 20, 30], [0.5, 0.5, 0.0, 0.0])


def test_many_iterations_are_summed_to_few_points():
    run = view(stage(0, 1000, lines=tuple(told(n + 1, x=(2, n % 2, 1.0)) for n in range(1000))))
    found = page_outcomes.tallies(run)
    assert len(found) == page_outcomes.POINTS
    assert sum(tally.episodes for _, tally in found) == 2000
    assert found[-1][0] == 1000
    assert page_outcomes.slices_seen(view(stage(0, 1))) == []


@pytest.mark.parametrize(
    ("line", "drawn"),
    [
        ({"kind": "iteration", "success_rate": 1, "grad_norm": 1, "loss": 1}, ["success_rate", "grad_norm"]),
        ({"kind": "iteration", "loss": 1}, ["loss"]),
        ({"kind": "iteration"}, []),
        ({"kind": "validation", "success_rate": 1, "loss": 1}, []),
    ],
)
def test_what_the_trainee_tells_is_drawn(line, drawn):
    assert view(stage(0, 1, lines=(line,))).learning == drawn


# A run as the page sees it


def test_a_stage_says_what_it_has():
    assert (stage(3, None).name, stage(3, None).results, stage(3, None).spent("tokens")) == ("stage 3", [], 0)
    named = replace(stage(3, 7, ("3", 4, 0.5), ("4", 12, 1.0)), listed="harder")
    assert (named.name, named.spent("tokens"), named.spent("episodes")) == ("harder", 7, 0)
    assert named.rate("a") == (0.875, *wilson(0.875, 16))
    assert stage(0, 7).rate("a") is None
    assert [named.slice_rate(name, metric) for name, metric in (("3", "a"), ("4", "b"), ("5", "a"), ("3", "c"))] == [
        0.5, 0.5, None, None
    ]  # fmt: skip


def test_a_test_is_told_after_the_last_stage_with_its_interval():
    rows = stage(0, 7, ("3", 4, 0.5), ("4", 12, 1.0)).results
    assert view(test=TestRecord(first=rows, last=rows)).tested("a") == (0.875, *wilson(0.875, 16))
    assert view().tested("a") is None


def test_a_knob_is_marked_where_it_differs_from_the_stage_before(tmp_path):
    configs = [CountConfig(level=level) for level in (0.5, 0.25, 0.25, 0.5)]
    run = loop.create(tmp_path / "run", spec_of(*({"config": config} for config in configs)))
    loop.continue_run(run, stages=3)
    found = view_run(run)
    level, hint = sorted(found.knobs(), key=lambda row: row.path != "level")
    assert [(cell.value, cell.changed) for cell in level.cells] == [(0.5, False), (0.25, True), (0.25, False)]
    assert [(cell.value, cell.changed) for cell in hint.cells] == [(0.0, False)] * 3
    assert (level.varies, hint.varies) == (True, False)
    assert (found.planned_stages, found.finished, found.test) == (4, False, None)
    loop.continue_run(run)
    whole = view_run(run)
    assert (whole.planned_stages, whole.finished, whole.test) == (4, True, run.state.test)


def test_a_run_with_a_total_plans_one_stage_more_while_something_is_left(tmp_path):
    run = loop.create(tmp_path / "run", spec_of({}, {}, total=3050))
    loop.continue_run(run, stages=2)
    assert view_run(run).planned_stages == 3
    loop.continue_run(run)
    assert view_run(run).planned_stages == 3


def test_two_films_of_each_way_to_fail_and_one_success_easiest_slices_first():
    failures = [("10", "hole"), ("9", None), ("9", "hole"), ("9", "hole"), ("3", "hole"), ("10", None), ("9", "late")]
    episodes = [Episode(case, name, failure, {}) for case, (name, failure) in enumerate(failures)]
    assert [one.case for one in _choose(episodes)] == [4, 2, 6, 5]
    assert replays(Path("nowhere"), 0, []) == []
