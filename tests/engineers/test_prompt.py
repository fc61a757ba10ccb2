"""What a model is told: the six published contexts, the budget, and what never stands in a prompt."""

from __future__ import annotations

import pytest

from engineers import CONTEXTS, AnswerFormat, Context, StageReport
from engineers.model.prompt import build_prompt, build_summary_prompt
from mapf_frozenlake import LakeConfig

SECTIONS = {
    "failures": "## Failures on validation",
    "metrics": "## Results on validation",
    "guideline": "# Guideline",
    "history": "## Earlier stages",
    "default": "Stage 0 (config by default)",
    "earlier": "Stage 1 (config by rules)",
    "training": "## Training",
    "cases": "## Failed episodes",
    "behaviour": "## How the trainee behaves",
    "environment": "## What was really drawn",
    "incidents": "## What went wrong",
    "summary": "# Your own summary",
    "target": "## The target",
    "rounds": "## What is left",
}
V2 = {"failures", "guideline"}
V4 = V2 | {"history", "earlier"}
EXPECTED = {
    "V1": {"failures"},
    "V2": V2,
    "V3": V4 | {"default"},
    "V4": V4,
    "V5": V4 | {"summary"},
    "V6": V4 | {"training"},
    "full": set(SECTIONS) - {"default", "summary", "failures"},  # the table of results has them
    "informed": set(SECTIONS) - {"summary", "training", "cases", "failures"},
}


@pytest.fixture
def later(example_report) -> StageReport:
    """The example one stage later: a default stage and one that somebody wrote in its history."""
    written = example_report.records()[-1].model_copy(update={"engineer": "rules"})
    told = {"stage": 2, "history": [*example_report.history, written], "rounds_left": 2, "budget_left": 90_000}
    target = {"slices": {"6": {"share": 1.0, "hole_ratio": 0.3, "wait_ratio": None, "min_distance": 4}}}
    return example_report.model_copy(update=told | {"target": target, "failure_meanings": {"hole": "An agent fell."}})


def text_of(report, context, **more):
    answer_format = AnswerFormat(LakeConfig.model_validate(report.config))
    return "\n".join(m["content"] for m in build_prompt(report, answer_format, context, **more).messages)


@pytest.mark.parametrize("name", CONTEXTS)
def test_each_context_has_its_sections_and_no_others(later, name):
    text = text_of(later, CONTEXTS[name], summary="It falls." if name == "V5" else "")
    assert {section for section, title in SECTIONS.items() if title in text} == EXPECTED[name]


def test_every_context_says_what_the_environment_and_the_knobs_are(later):
    for context in CONTEXTS.values():
        text = text_of(later, context)
        assert "A lake is a square grid" in text
        assert "slices.*.hole_ratio (* is 3, 4, 5, 6, 7, 8, 9, 10): Fraction of cells" in text
        assert "from 0 to 0.9" in text
        assert "from 0 to 1, or null; sensible are 0 to 0.75." in text
        assert "min_distance" not in text.split("# The knobs")[1]


SPACE = {"slices.*.wait_ratio": (0.25, 0.5), "slices.3.hole_ratio": (0.1, 0.2)}


def sensible(text, knob):
    line = next(line for line in text.split("# The knobs")[1].splitlines() if line.startswith(f"- slices.*.{knob} "))
    return line.partition("; sensible are ")[2]


@pytest.mark.parametrize("name", CONTEXTS)
def test_sensible_is_what_the_run_says(later, name):
    text = text_of(later, CONTEXTS[name], space=SPACE)
    assert sensible(text, "wait_ratio") == "0.25 to 0.5."
    assert sensible(text, "hole_ratio") == "0.1 to 0.2 for 3; 0 to 0.5 for 4, 5, 6, 7, 8, 9, 10."
    assert not sensible(text, "share")


def test_sensible_reaches_as_far_as_the_target_that_is_told(later):
    target = {"slices": {"6": {"share": 1.0, "hole_ratio": 0.6, "wait_ratio": 1.0, "min_distance": 4}}}
    far = later.model_copy(update={"target": target})
    told = text_of(far, CONTEXTS["informed"], space=SPACE)
    assert sensible(told, "wait_ratio") == "0.25 to 0.5 for 3, 4, 5, 7, 8, 9, 10; 0.25 to 1 for 6."
    assert sensible(told, "hole_ratio") == "0.1 to 0.2 for 3; 0 to 0.5 for 4, 5, 7, 8, 9, 10; 0 to 0.6 for 6."
    assert sensible(text_of(far, CONTEXTS["V6"], space=SPACE), "wait_ratio") == "0.25 to 0.5."


def test_the_informed_context_says_what_the_published_ones_do_not(later):
    text = text_of(later, CONTEXTS["informed"])
    assert 'training need not be: {"slices": {"6": {"share": 1.0, "hole_ratio": 0.3}}}' in text
    assert "- hole: An agent fell." in text
    assert "2 stages, the one that you write now included, with 90,000 env steps together" in text
    assert "Stage 0 (config by default): {" in text
    assert "Stage 2, the one reported here: as in stage 1" in text
    assert "grad norm" not in text.lower().replace("_", " ")
    alone = later.model_copy(update={"rounds_left": None, "budget_left": None, "target": {}, "history": []})
    assert not {"## What is left", "## The target", "## Earlier stages"} & set(
        text_of(alone, CONTEXTS["informed"]).splitlines()
    )


def test_earlier_configs_are_shown_by_what_changed_in_them(later):
    first, second = later.history
    slices = second.config["slices"] | {"6": second.config["slices"]["6"] | {"share": 0.5, "hole_ratio": 0.33}}
    report = later.model_copy(
        update={"history": [first, second.model_copy(update={"config": second.config | {"slices": slices}})]}
    )
    history = text_of(report, CONTEXTS["informed"]).split("## Earlier stages")[1].split("# Guideline")[0]
    said = next(line for line in history.splitlines() if line.startswith("Stage 1 "))
    assert "slices.6.share" in said
    assert "→ 0.5" in said
    assert "slices.6.hole_ratio" in said
    assert "min_distance" not in said


def test_what_is_fixed_in_the_target_is_told_beside_what_may_be_written(later):
    fixed = {"num_agents": 3, "collisions": "end", "horizon": None, "reward": "sparse"}
    slices = {
        str(size): {"share": share, "hole_ratio": 0.3, "wait_ratio": None, "min_distance": 4}
        for size, share in ((5, 1.0), (6, 1.0), (7, 0.0))
    }
    report = later.model_copy(update={"target": {"slices": slices, **fixed}})
    target = text_of(report, CONTEXTS["informed"]).split("## The target")[1].split("What the kinds")[0]
    assert '"7"' not in target  # no part of it
    said = next(line for line in target.splitlines() if line.startswith("Fixed, "))
    assert said.endswith(
        "slices.*.min_distance 4 (training has 1), num_agents 3 (training has 2), collisions end, horizon null "
        "(Number of steps after which an episode is truncated; null means 4 * (rows + columns)), reward sparse"
    )
    slices["6"]["min_distance"] = 3
    unlike = text_of(report, CONTEXTS["informed"])
    assert "slices.5.min_distance 4 (training has 1), slices.6.min_distance 3 (training has 1), num_agents 3" in unlike
    for name in CONTEXTS.keys() - {"informed", "full"}:
        assert "Fixed, " not in text_of(report, CONTEXTS[name])


def test_where_all_knobs_are_open_nothing_is_called_fixed(report, kitchen):
    told = report.model_copy(update={"target": kitchen.model_dump(mode="json")})
    answer_format = AnswerFormat(kitchen, ("*",))
    assert "Fixed, " not in build_prompt(told, answer_format, CONTEXTS["informed"]).messages[1]["content"]
    closed = build_prompt(told, AnswerFormat(kitchen), CONTEXTS["informed"]).messages[1]["content"]
    assert "Fixed, nothing that you write changes it: owner nobody\n" in closed


def test_what_was_asked_for_stands_beside_what_was_drawn(later):
    text = text_of(later, CONTEXTS["informed"]).split("## What was really drawn")[1].split("##")[0]
    assert "- 4: drawn 800, hole ratio 0.22 (asked 0.22), wait ratio 0.2 (asked 0.2), mean makespan 4.1\n" in text
    slices = later.config["slices"] | {
        "3": later.config["slices"]["3"] | {"share": 0.0},
        "6": later.config["slices"]["6"] | {"hole_ratio": 0.5, "wait_ratio": None},
    }
    stats = later.environment_stats | {"3": {"share": 0.0}, "6": {"share": 0.21, "hole_ratio": 0.48, "wait_ratio": 0.3}}
    other = later.model_copy(
        update={"config": later.config | {"slices": slices}, "environment_stats": stats, "history": []}
    )
    text = text_of(other, CONTEXTS["informed"]).split("## What was really drawn")[1].split("##")[0]
    assert "- 6: share 0.21 (asked 0.205), hole ratio 0.48 (asked 0.5), wait ratio 0.3\n" in text
    assert "- 3:" not in text


def with_shares(config, **changes):
    slices = {name: piece | changes.get(f"s{name}", {}) for name, piece in config["slices"].items()}
    return config | {"slices": slices}


def test_switched_off_slices_are_left_out_of_earlier_configs(later):
    first, second = later.history
    off = {f"s{size}": {"share": 0.0} for size in (7, 8, 9, 10)}
    begun = with_shares(first.config, **off)
    on = with_shares(
        begun, s7={"share": 0.25, "hole_ratio": 0.4}, s3={"share": 0.0, "hole_ratio": 0.3}, s9={"hole_ratio": 0.5}
    )
    history = [first.model_copy(update={"config": begun}), second.model_copy(update={"config": on})]
    report = later.model_copy(update={"history": history, "config": with_shares(on, s4={"wait_ratio": None})})
    lines = text_of(report, CONTEXTS["informed"]).split("## Earlier stages")[1].splitlines()
    first_line, second_line, now = (next(line for line in lines if line.startswith(f"Stage {n}")) for n in range(3))
    assert '"6"' in first_line
    assert not any(f'"{size}"' in first_line for size in (7, 8, 9, 10))
    assert f"slices.3.share {begun['slices']['3']['share']} → 0" in second_line
    assert "slices.7.share 0 → 0.25, slices.7.hole_ratio 0.4, slices.7.wait_ratio" in second_line
    assert not any(f"slices.{name}" in second_line for name in ("3.hole_ratio", "9", "10"))
    assert now.endswith(f"since stage 1 slices.4.wait_ratio {begun['slices']['4']['wait_ratio']} → null")
    assert '"10": {"share": 0.0' in text_of(report, CONTEXTS["V3"]).split("## Earlier stages")[1]  # as published


def test_failures_are_raw_counts_by_kind(later):
    assert "- 6: 35 of 60 failed: 14 hole, 14 conflict, 5 goal missed, 2 illegal move" in text_of(later, CONTEXTS["V1"])


@pytest.mark.parametrize("context", ["V3", "V4", "V5", "V6"])
def test_the_papers_contexts_show_every_earlier_config_whole_with_its_editable_knobs_only(later, context):
    history = text_of(later, CONTEXTS[context]).split("## Earlier stages")[1].split("# Guideline")[0]
    shown = [line for line in history.splitlines() if line.startswith("Stage ")]
    assert shown
    assert all('): {"slices": {"3": ' in line for line in shown)
    assert '"hole_ratio": 0.' in history
    assert "collisions" not in history
    assert "→" not in history


def test_cases_go_first_when_the_budget_is_short(later):
    answer_format = AnswerFormat(LakeConfig.model_validate(later.config))
    full = CONTEXTS["full"]
    whole = build_prompt(later, answer_format, full)
    assert whole.left_out == []
    dropped = []
    for budget in range(whole.tokens, 1500, -25):
        try:
            prompt = build_prompt(later, answer_format, full.model_copy(update={"token_budget": budget}))
        except ValueError as error:
            assert "the shortest prompt has about" in str(error)  # noqa: PT017
            break
        assert prompt.tokens <= budget
        dropped = prompt.left_out
    assert dropped == [
        *["a failure case"] * 4,
        "the environment statistics",
        "the behaviour",
        "stage 1 of the history",
    ]


def test_summary_prompt_asks_for_no_config(later):
    answer_format = AnswerFormat(LakeConfig.model_validate(later.config))
    text = build_summary_prompt(later, answer_format, CONTEXTS["V5"]).messages[1]["content"]
    assert "Sum up" in text
    assert "JSON" not in text


def test_no_keys_paths_or_variables_reach_a_prompt(later, monkeypatch):
    monkeypatch.setenv("MADEUP_API_KEY", "planted-secret-value")
    spoilt = later.model_copy(
        update={
            "environment": "See /home/anna/lake/readme.txt, ~/notes.txt, C:\\Users\\anna\\x.txt; key planted-secret-value.",
            "training": {
                "log": "/var/log/run/x.log",
                "token": "hf_abcdefghijklmnopqrstuvwx",
                "home": "$HOME and ${PATH}",
            },
        }
    )
    spoilt.failure_cases[0].explanation = "Bearer abcdefgh12345678 and sk-proj-abcdefghijklmnop in /etc/passwd"
    text = text_of(spoilt, CONTEXTS["full"])
    for planted in ("/home", "anna", "notes", "planted", "/var", "hf_abc", "HOME", "PATH", "abcdefgh", "/etc"):
        assert planted not in text
    assert "<path>" in text
    assert "<redacted>" in text


def test_ordinary_text_is_left_alone(later):
    plain = (
        "Rates 0.5/0.3 and/or 3/4; moves (1, 2)/(3, 4); half of 60 / 2; https://example.org/a/b; 95 % intervals; a/b/c."
    )
    assert plain in text_of(later.model_copy(update={"environment": plain}), CONTEXTS["V1"])


def test_braces_in_a_report_are_not_template_code(later):
    text = text_of(later.model_copy(update={"environment": "{{ 7 * 7 }} {% raw %} {# x #}"}), CONTEXTS["V1"])
    assert "{{ 7 * 7 }} {% raw %} {# x #}" in text


def test_a_context_of_ones_own(later):
    text = text_of(later, Context(failures=False, metrics=True, cases=True))
    assert {section for section, title in SECTIONS.items() if title in text} == {"metrics", "cases"}


def test_another_environment_gets_the_same_prompt_without_a_word_of_lakes(report, kitchen):
    prompt = build_prompt(report, AnswerFormat(kitchen), CONTEXTS["V3"])
    text = prompt.messages[1]["content"]
    assert "- soup: 20 of 100 failed: 20 burnt" in text
    assert "menu.*.heat (* is soup, stew): Degrees of the stove. Must be above 0. A number from 0 to 300." in text
    assert "style: How plates are laid. One of plain, fancy." in text
    assert not {"lake", "ice", "hole"} & set(text.lower().replace(".", " ").split())


def stage(number, engineer="rules", **metrics):
    from engineers import SliceResult, StageRecord

    result = SliceResult(name="6", episodes=10, failures={"hole": number + 1})
    return StageRecord(stage=number, config={"slices": {}}, results=[result], engineer=engineer)


def test_the_history_is_shown_oldest_first_and_its_oldest_goes_first(later):
    long = later.model_copy(update={"stage": 4, "history": [stage(number) for number in range(4)]})
    shown = text_of(long, CONTEXTS["V3"])
    assert [shown.index(f"Stage {number} (config by") for number in range(4)] == sorted(
        shown.index(f"Stage {number} (config by") for number in range(4)
    )
    answer_format = AnswerFormat(LakeConfig.model_validate(long.config))
    bare = long.model_copy(update={"failure_cases": [], "environment_stats": {}, "behaviour": {}})
    whole = build_prompt(bare, answer_format, CONTEXTS["V3"])
    less = build_prompt(bare, answer_format, CONTEXTS["V3"].model_copy(update={"token_budget": whole.tokens - 1}))
    assert less.left_out == ["stage 0 of the history"]


def test_of_the_failed_episodes_the_first_stays_longest(later):
    answer_format = AnswerFormat(LakeConfig.model_validate(later.config))
    first, second = later.failure_cases[:2]
    report = later.model_copy(
        update={
            "failure_cases": [
                first.model_copy(update={"explanation": "The first case."}),
                second.model_copy(update={"explanation": "The second case."}),
            ],
            "history": [],
        }
    )
    context = Context(cases=True)
    whole = build_prompt(report, answer_format, context)
    less = build_prompt(report, answer_format, context.model_copy(update={"token_budget": whole.tokens - 1}))
    assert less.left_out == ["a failure case"]
    assert "The first case." in less.messages[1]["content"]
    assert "The second case." not in less.messages[1]["content"]


def test_the_default_is_the_first_stage_that_nobody_is_named_for(later):
    """Named "default", or a stage 0 without a name; a later stage without one was written by somebody."""
    history = [stage(0, ""), stage(1, ""), stage(2, "rules"), stage(3, "default")]
    report = later.model_copy(update={"stage": 4, "history": history})
    text = text_of(report, CONTEXTS["V4"])
    assert [f"Stage {number}" in text.split("## Earlier stages")[1] for number in range(4)] == [
        False,
        True,
        True,
        False,
    ]


def test_a_prompt_names_the_objective_in_words(later):
    text = text_of(later.model_copy(update={"objective": "made_up_rate"}), CONTEXTS["informed"])
    assert "made up rate" in text
    assert "valid rate" not in text.split("# Report of stage")[0]
