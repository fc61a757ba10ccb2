"""Trainees by their kind: what is asked of a class before there is a run, and each refusal's sentence."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from envtuning import trainees
from envtuning.errors import SpecError
from envtuning.runs.resolve import resolve
from envtuning.runs.spec import parse_spec
from envtuning.trainees import KINDS, TraineeKind, form_of, make_trainee
from envtuning.trainees.base import Trainee, trainee_class
from envtuning.trainees.scripted import ScriptedTrainee
from envtuning.worlds import make_world
from envtuning.worlds.world import InfeasibleConfig
from mapf_frozenlake import LakeConfig

HERE = f"{__name__}:"
LAKES = make_world("lakes")


class Options(BaseModel):
    depth: int = 1


class Own(Trainee):
    form = "plans"
    reports = ("success_rate", "loss")
    units = ("tokens", "samples")
    train = policy = save = load = close = print

    def __init__(self, *, world, capacity, exclude, seed, unit="tokens", depth=1):
        self.given = {
            "world": world,
            "capacity": capacity,
            "exclude": exclude,
            "seed": seed,
            "unit": unit,
            "depth": depth,
        }

    @staticmethod
    def check_options(depth=1):
        Options(depth=depth)
        if depth == 13:
            raise SystemExit("enough")
        if depth < 0:
            raise KeyError("no such depth")
        if depth > 10:
            raise ValueError("too deep")


class Formless(Trainee):
    train = policy = save = load = close = print

    def __init__(self, *, world, capacity, exclude, seed): ...


class Reader(Formless):
    form = "sings"


def made(name, unit="tokens", **options):
    TraineeKind.named(HERE + name).check(options, LAKES, LakeConfig(), unit)


def test_a_trainee_is_given_its_world_room_held_out_cases_and_seed():
    trainee = make_trainee(HERE + "Own", capacity={"a": 1}, exclude=[], seed=5, depth=2)
    assert {**trainee.given, "world": None} == {
        "world": None, "capacity": {"a": 1}, "exclude": (), "seed": 5, "unit": "tokens", "depth": 2,
    }  # fmt: skip
    assert trainee.given["world"].about.name == "lakes"
    assert make_trainee(HERE + "Own", world="mine", capacity={}).given["world"] == "mine"
    assert make_trainee(HERE + "Own", capacity={}).given["seed"] == 0
    assert TraineeKind.named("scripted").factory is ScriptedTrainee
    made("Own", depth=10)


class NotDerived:
    form = "plans"
    train = policy = save = load = close = print


def makes_own(**given) -> Own:
    return Own(**given)


def says_nothing(**given):
    return Own(**given)


def makes_another(**given) -> Own:
    return NotDerived()


def test_a_trainee_derives_from_the_contract_or_is_made_by_a_function_that_says_so():
    assert trainee_class(Own) is Own
    assert trainee_class(makes_own) is Own
    assert make_trainee(HERE + "makes_own", capacity={}, unit="tokens").given["seed"] == 0
    for found in ("NotDerived", "says_nothing"):
        with pytest.raises(SpecError, match=f"{found} is not declared as a trainee: derive"):
            make_trainee(HERE + found, capacity={})
    with pytest.raises(SpecError, match=r"it made a NotDerived, which does not derive from envtuning.Trainee"):
        make_trainee(HERE + "makes_another", capacity={})


class Talker(Own):
    form = "replies"


@pytest.mark.parametrize("place", ["target", "stages.0.config", "stages.1.config"])
def test_a_crowd_that_a_text_cannot_name_is_refused_wherever_it_stands(place):
    """And an engineer's config of that kind by the guard: the stages before it would have been trained for nothing."""
    few, crowd = ({"num_agents": agents, "slices": {8: {"hole_ratio": 0.0}}} for agents in (24, 30))
    text = json.dumps({
        "trainee": HERE + "Talker", "engineer": "rules", "unit": "samples", "target": few,
        "stages": [{"config": few, "budget": 10}, {"config": few, "budget": 10}, {"budget": 10}],
    })  # fmt: skip
    plan = resolve(parse_spec(text, "it"))
    with pytest.raises(InfeasibleConfig, match="30 agents"):
        plan.guard.feasible(LakeConfig.model_validate(crowd))
    resolve(parse_spec(text, "it", changes={place: crowd, "trainee": HERE + "Own"}))  # which reads no text
    with pytest.raises(InfeasibleConfig, match="30 agents"):
        resolve(parse_spec(text, "it", changes={place: crowd}))


@pytest.mark.parametrize("kind", KINDS)
def test_the_form_of_a_kind_that_is_known_without_its_class_is_what_the_class_declares(kind):
    try:
        assert TraineeKind.named(kind).form == form_of(kind)
    except SpecError:
        pytest.skip("its extra is not installed")


def test_what_a_class_declares_is_what_a_run_knows():
    assert TraineeKind.named(HERE + "Own").form == "plans"
    assert TraineeKind.named(HERE + "Own").declared.reports == ("success_rate", "loss")
    assert TraineeKind.named(HERE + "Formless").declared.reports is None
    assert make_trainee(HERE + "Own", capacity={}, unit="samples").given["unit"] == "samples"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: TraineeKind.named("rlib"), "trainee kind 'rlib' is unknown: the kinds are exam, grpo, lm, ppo, rllib, sb3, scripted; your own is 'package.module:Class'"),
        (lambda: TraineeKind.named("no.module:Class"), "trainee kind 'no.module:Class': "),
        (lambda: TraineeKind.named(HERE + "Formless").form, f"trainee '{HERE}Formless' declares form=None: set the class attribute `form` to one of 'acts', 'replies', 'plans', so"),
        (lambda: TraineeKind.named(HERE + "Reader").form, "declares form='sings'"),
        (lambda: made("Own", unit="env_steps"), f"trainee '{HERE}Own' counts tokens and samples, and the run's budgets are in env_steps: set unit to 'tokens'"),
        (lambda: made("Own", depth="x"), f"trainee '{HERE}Own': options.depth"),
        (lambda: made("Own", depth=11), f"trainee '{HERE}Own' cannot be made with these options: too deep"),
        (lambda: made("Own", depth=-1), f"trainee '{HERE}Own' cannot be made with these options (KeyError: 'no such depth')"),
        (lambda: made("Own", breadth=1), "cannot be made with these options: "),
        (lambda: made("Own", depth=13), f"trainee '{HERE}Own' cannot be made: its code would end this process (enough)"),
        (lambda: make_trainee(HERE + "Own", capacity={}, breadth=1), "cannot be made with these options: "),
    ],
)  # fmt: skip
def test_each_refusal_says_what_to_do(call, said):
    with pytest.raises(SpecError) as refused:
        call()
    assert said in str(refused.value)


def test_a_world_that_cannot_play_a_policy_says_which_it_can(monkeypatch):
    monkeypatch.setattr(type(LAKES), "forms", frozenset({"replies", "acts"}))
    with pytest.raises(SpecError) as refused:
        made("Own")
    assert str(refused.value) == (
        f"trainee '{HERE}Own' returns a plan for a whole case, and the world 'lakes' cannot play that: it needs a policy of "
        "form 'acts' (acts on observations) or 'replies' (replies to texts)"
    )


@pytest.mark.parametrize(
    ("kind", "missing", "said"),
    [
        ("sb3", "stable_baselines3", "mapf-frozenlake[sb3]"),
        ("ppo", "torch", "mapf-frozenlake[rllib]"),
        ("grpo", "envtuning.nowhere", "trainee kind 'grpo': no"),
        ("own:Class", "torch", "trainee kind 'own:Class': no"),
    ],
)
def test_a_kind_whose_packages_are_absent_says_which_extra_brings_them(monkeypatch, kind, missing, said):
    def absent(place):
        raise ImportError("no", name=missing)

    monkeypatch.setattr(trainees, "object_at", absent)
    with pytest.raises(SpecError) as refused:
        TraineeKind.named(kind)
    assert said in str(refused.value)
