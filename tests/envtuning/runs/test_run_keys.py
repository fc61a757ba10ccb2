"""The keys of a run's file: what each is where the file says nothing, its bounds, and what follows from several together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from engineers.shared.untrusted import NotReadable
from envtuning.runs.plan import Plan
from envtuning.runs.reading import raise_unless_bounded, read_mapping, read_value, without_secrets
from envtuning.runs.sections import EngineerSpec, StageSpec, WorldSpec
from envtuning.runs.spec import RunSpec, SpecError, load_spec, parse_spec
from tests.envtuning.counting_runs import spec_of
from tests.envtuning.counting_world import CountConfig, CountWorld

FIRST = {"budget": 100, "config": {"level": 0.25}}
LEAST: dict[str, Any] = {"world": "tests.envtuning.counting_world:CountWorld", "target": {}, "stages": [FIRST]}


def test_what_a_file_need_not_say():
    found = Plan.of(RunSpec.model_validate(LEAST)).spec.model_dump()
    stage = found.pop("stages")[0]
    assert stage.pop("config") == {"level": 0.25, "hint": 0.0}
    assert stage == {"name": "", "redraw": False, "budget": 100, "advance_when": None, "fade": None}
    assert found == {
        "name": "run",
        "description": "",
        "seed": 0,
        "world": {"name": LEAST["world"], "options": {}},
        "target": {"level": 0.5, "hint": 0.0},
        "unit": "env_steps",
        "total": None,
        "trainee": {"kind": "rllib", "options": {}},
        "engineer": {"name": "steady", "options": {}, "timeout": 90_000.0},
        "editable": None,
        "suites": {
            "validation_per_slice": 50,
            "test_per_slice": 0,
            "test_start": False,
            "probe_per_slice": None,
            "validates": "stages",
            "training_per_slice": 8,
            "failure_cases": 6,
            "seed": 20_260_617,
            "test_seed": None,
        },
        "guard": {"max_drop": 0.7, "check_feasible": True},
        "retries": 2,
    }
    assert WorldSpec().name == "lakes"
    assert StageSpec(budget=1, fade={"knob": "hint"}).fade.model_dump() == {"knob": "hint", "start": 1.0, "over": 0.5}


@pytest.mark.parametrize(
    ("key", "taken", "refused"),
    [
        ("name", ["a.b-c+d_1", "x" * 100], ["", "a b", "a/b", "x" * 101]),
        ("seed", [0, 2**63 - 1], [-1, 2**63]),
        ("total", [None, 100, 10**15], [99, 0, 10**15 + 1]),
        ("retries", [0, 1000], [-1, 1001]),
        ("stages", [[FIRST]], [[], 5, ["x"], {}]),
        ("suites.validation_per_slice", [1, 10**6], [0, 10**6 + 1]),
        ("suites.test_per_slice", [0, 10**6], [-1, 10**6 + 1]),
        ("suites.test_start", [True, False], ["often"]),
        ("suites.probe_per_slice", [0, 10**6], [-1, 10**6 + 1]),
        ("suites.validate", ["last", "stages", "every 1"], ["every 0", "every", "first", 5]),
        ("suites.training_per_slice", [0, 10**6], [-1, 10**6 + 1]),
        ("suites.failure_cases", [0, 1000], [-1, 1001]),
        ("suites.seed", [0, 2**63 - 1], [-1, 2**63]),
        ("suites.test_seed", [None, 0, 2**63 - 1], [-1, 2**63]),
        ("suites.speed", [], [1]),
        ("guard.max_drop", [None, 0, 1], [-0.01, 1.01]),
        ("engineer.timeout", [None, 0.5], [0, float("inf")]),
        ("engineer.options.x", [1.5, [1], {"y": "z"}], [float("nan"), [float("inf")], {"y": b""}]),
        ("trainee.options.x", [1.5], [float("nan")]),
        ("stages.0.budget", [1, 10**15], [0, 10**15 + 1]),
        ("stages.0.fade", [{"knob": "hint", "over": 1.0}], [{"knob": "hint", "over": 0.0}, {"knob": "hint", "over": 1.1}]),
        ("stages.0.fade", [{"knob": "hint", "over": 0.01}], [{}]),
        ("stages.0.config.level", [0.0, 1.0], [1.1]),
        ("unit", ["episodes"], ["hours"]),
    ],
)  # fmt: skip
def test_a_key_may_have_what_lies_in_its_bounds_and_nothing_else(key, taken, refused):
    for value in taken:
        Plan.of(parsed(LEAST, {key: value}))
    for value in refused:
        with pytest.raises(SpecError, match=key.split(".")[0]):
            Plan.of(parsed(LEAST, {key: value}))


def test_a_total_below_the_stages_budgets_is_told_with_both_numbers():
    with pytest.raises(SpecError, match=r"99\b.*\b100\b"):
        parsed(LEAST, {"total": 99})


def parsed(data: dict[str, Any], changes: dict[str, Any] | None = None) -> RunSpec:
    return parse_spec(json.dumps(data), "it", changes=changes)


def test_a_run_has_ten_thousand_stages_at_most():
    assert len(spec_of({}).with_rounds(10_000).stages) == 10_000
    with pytest.raises(SpecError, match="10001 stages: a run has at least 1 and at most 10,000"):
        spec_of({}).with_rounds(10_001)
    with pytest.raises(SpecError, match="0 stages"):
        spec_of({}).with_rounds(0)
    stage = StageSpec(budget=1, config=CountConfig())
    with pytest.raises(ValidationError, match="at most 10000 items"):
        RunSpec.model_validate(LEAST | {"stages": [stage] * 10_001})


def test_a_spec_does_not_change():
    spec = spec_of({})
    with pytest.raises(ValidationError, match="frozen"):
        spec.seed = 1
    with pytest.raises(ValidationError, match="frozen"):
        spec.suites.seed = 1
    assert RunSpec.model_validate(spec) == spec


def test_more_rounds_are_copies_of_the_last_that_the_engineer_writes():
    spec = spec_of({}, {"name": "last", "budget": 7, "config": CountConfig()})
    assert spec.with_rounds(1).stages == spec.stages[:1]
    assert spec.with_rounds(2) == spec
    assert spec.with_rounds(4).stages == (*spec.stages, *[StageSpec(budget=7)] * 2)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_number_of_stages_takes_the_place_of_a_total(count):
    spec = spec_of({}, {}, total=2500).with_rounds(count)
    assert (len(spec.stages), spec.total, spec.budget) == (count, None, count * 1000)
    assert RunSpec.model_validate(spec.model_dump()) == spec


@pytest.mark.parametrize(
    ("total", "budget", "allowed"),
    [(None, 60, [10, 30, 60, 90]), (60, 60, [10, 30, 60, 60]), (80, 80, [10, 30, 60, 80])],
)
def test_what_may_be_spent_up_to_a_stage_is_the_budgets_up_to_it_within_the_total(total, budget, allowed):
    spec = spec_of({"budget": 10}, {"budget": 20}, {"budget": 30}, total=total)
    assert spec.budget == budget
    assert [spec.allowed(number) for number in range(4)] == allowed
    assert [spec.stage(number).budget for number in (0, 1, 2, 3, 9)] == [10, 20, 30, 30, 30]


def test_the_first_stage_is_written_by_whoever_writes_the_file():
    with pytest.raises(ValidationError, match=r"stages\[0\]\.config is 'engineer', but there is no report yet"):
        spec_of({"config": "engineer"})


def test_written_configs_are_the_targets_and_the_stages_own():
    spec = spec_of({"config": {"level": 0.25}}, {}, {"config": {"level": 0.125}})
    assert [config.level for config in Plan.of(spec).written] == [0.5, 0.25, 0.125]


def test_the_test_is_drawn_by_its_own_seed_or_by_the_validations():
    spec = spec_of({})
    assert spec.suites.seed_of_test == spec.suites.seed
    assert spec.with_test_seed(0).suites.seed_of_test == 0
    assert spec.with_test_seed(0).with_test_seed(None) == spec


def test_budgets_count_in_the_worlds_unit_unless_the_file_says_otherwise(monkeypatch):
    from dataclasses import replace

    monkeypatch.setattr(CountWorld, "about", replace(CountWorld.about, unit="tokens"))
    assert Plan.of(parsed(LEAST)).spec.unit == "tokens"
    assert Plan.of(parsed(LEAST | {"unit": "episodes"})).spec.unit == "episodes"
    assert Plan.of(parsed(LEAST | {"world": {"name": LEAST["world"]}})).spec.unit == "tokens"


def test_another_engineer_in_the_same_place_has_the_common_options_alone():
    one = EngineerSpec(name="random", options={"space": {"level": (0, 1)}, "seed": 3, "odd": 1}, timeout=5.0)
    assert one.replaced_by("random") is one
    other = one.replaced_by("fixed")
    assert (other.name, other.timeout) == ("fixed", 5.0)
    assert other.options == one.common_options
    assert "space" in other.options
    assert "odd" not in other.options


# Presets, files and changes


def test_a_file_builds_on_a_preset_and_takes_its_name_from_its_path(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("extends: scripted\nseed: 3\n", encoding="utf-8")
    spec = load_spec(file, changes={"retries": 0})
    assert (spec.name, spec.seed, spec.retries) == ("mine", 3, 0)
    assert load_spec("scripted", changes={"seed": 5}).seed == 5
    assert parse_spec("extends: scripted", "it", name="given").name == "given"
    assert parse_spec("extends: scripted\nname: own", "it", name="given").name == "own"
    with pytest.raises(SpecError, match="extends 'nothing', which is not a preset: the presets are "):
        parse_spec("extends: nothing", "it")
    file.write_bytes(b"name: \xff\n")
    with pytest.raises(SpecError, match=r"mine\.yaml"):
        load_spec(file)
    with pytest.raises(SpecError, match="is neither a file nor a preset"):
        load_spec(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("stages.1.budget", 1, "there is no '1' to set anything in"),  # there is one stage
        ("stages.x.budget", 1, "there is no 'x' to set anything in"),
        ("stages.1", {}, "there is no '1' to set"),
        ("stages.x", {}, "there is no 'x' to set"),
        ("name.0", "x", "there is no '0' to set, because name is '0': give --set name=…"),
        ("name.0.x", "x", "there is no '0' to set anything in"),
    ],
)
def test_a_change_of_what_is_not_there_is_told(key, value, says):
    with pytest.raises(SpecError, match=says):
        parsed(LEAST | {"name": "0"}, {key: value})


def test_changes_go_where_their_key_says_and_nowhere_else():
    changes = {"stages.0.budget": 7, "suites.test_per_slice": 2, "stages.1": FIRST | {"budget": 9}}
    found = parsed(LEAST | {"stages": [FIRST, FIRST]}, changes)
    assert [stage.budget for stage in found.stages] == [7, 9]
    assert found.suites.test_per_slice == 2
    anchored = "world: {world}\ntarget: {{}}\nstages: [&first {{budget: 1, config: {{}}}}, *first]".format(**LEAST)
    found = parse_spec(anchored, "it", changes={"stages.0.budget": 7})
    assert [stage.budget for stage in found.stages] == [7, 1]  # not what YAML's anchor made the same
    lakes = {"target": {"slices": {3: {}}}, "stages": [{"budget": 1, "config": {"slices": {3: {}}}}]}
    text = "\n".join(f"{key}: {value}" for key, value in lakes.items())  # YAML reads 3 as a number
    found = parse_spec(text, "it", changes={"target.slices.3.hole_ratio": 0.25, "target.slices.4": {}})
    assert found.target == {"slices": {3: {"hole_ratio": 0.25}, "4": {}}}
    assert parse_spec(text, "it", changes={"target.slices.3": {"share": 0.5}}).target == {"slices": {3: {"share": 0.5}}}


# Reading


def nested(levels: int) -> str:
    """A mapping with so many levels."""
    return '{"a": ' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


@pytest.mark.parametrize(
    ("text", "over", "says"),
    [
        (
            json.dumps({"a": "x" * 999_991}),
            json.dumps({"a": "x" * 999_992}),
            "has 1,000,001 characters, at most 1,000,000",
        ),
        (nested(50), nested(51), "is nested too deeply: at most 50 levels are read"),
        (json.dumps({"a": [0] * 99_998}), json.dumps({"a": [0] * 99_999}), "holds more than 100,000 values"),
    ],
    ids=["length", "depth", "values"],
)
def test_a_text_is_read_up_to_a_bound(text, over, says):
    assert list(read_mapping(text)) == ["a"]
    with pytest.raises(NotReadable, match=says):
        read_mapping(over)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "holds list, not a mapping"),
        ("a: &a {x: *a}", "is nested too deeply"),  # for ever
        ('{"a": 1, "a": 2}', "has the key 'a' twice"),
        ('{"a": Infinity}', "has the number Infinity"),
        ("a: {b: 1, b: 2}", r"has the key 'b' twice in one mapping \(line 1\)"),
    ],
)
def test_what_is_no_mapping_of_finite_size_is_told(text, says):
    with pytest.raises(NotReadable, match=says):
        read_mapping(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-4", 3e-4), ("1E5", 1e5), ("-2e+3", -2e3), (".5e1", 5.0), ("1.e2", 100.0), ("3.0e-4", 3e-4), ("12", 12), ("0.5", 0.5),
        ("e4", "e4"), ("3e", "3e"), ("'3e-4'", "3e-4"), ("3e-4x", "3e-4x"), ("1.2.3e4", "1.2.3e4"),
    ],
)  # fmt: skip
def test_a_number_with_an_exponent_is_one_without_a_dot_too(text, value):
    for found in (read_value(text), read_mapping(f"a: {text}")["a"]):
        assert (found, type(found)) == (value, type(value))


def test_one_value_is_bounded_too():
    with pytest.raises(NotReadable, match="more than 100,000 values"):
        raise_unless_bounded({"a": set(range(100_000)), "b": "no more " * 100_000})
    assert read_value("[1, {a: 2}]") == [1, {"a": 2}]
    with pytest.raises(NotReadable, match="nested too deeply"):
        read_value("[" * 60 + "]" * 60)


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"api_key": "planted"}, "api_key"),
        ({"password": "planted"}, "password"),
        ({"request": {"headers": [{"X-Api-Key": "planted"}]}}, "request.headers.0.X-Api-Key"),
        ({"apikey": "planted"}, "apikey"),
        ({"token": "planted"}, "token"),
        ({"request": {"extra_headers": {"session-token": "planted"}}}, "request.extra_headers.session-token"),
        ({"headers": {"Proxy-Authorization": "planted"}}, "headers.Proxy-Authorization"),
        ({"max_total_tokens": "planted"}, None),  # a cap
        ({"api_key": ""}, None),  # none was given
        ({"max_key": 5}, None),  # no text
        ({"keyboard": "qwerty"}, None),
        ({"key_of": "c"}, None),
    ],
)
def test_a_key_in_options_is_found_by_the_end_of_its_name(options, place):
    if place is None:
        without_secrets(options)
        return
    with pytest.raises(ValueError, match=f"{place}: a run's files are plain text") as refused:
        without_secrets(options)
    assert "planted" not in str(refused.value)
