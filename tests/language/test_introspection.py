"""Engineers on the trainee's own model, on a trainee whose answers are a table: which model is asked, and how slices are weighed."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import pytest
from pydantic import BaseModel, Field

import mapf_frozenlake as mfl
from engineers.knobs import find_knobs
from engineers.report import StageReport
from envtuning.trainees.language.live_engineers import live_engineer, only, remote_engineer
from envtuning.trainees.language.trainee import GRPOTrainee

SLICES = {3: {"share": 0.75, "hole_ratio": 0.2}, 4: {"share": 0.25, "hole_ratio": 0.1}}
CONFIG = mfl.LakeConfig.model_validate({"num_agents": 2, "slices": SLICES})


class Piece(BaseModel):
    share: float = Field(1.0, ge=0, le=10)


class Trainee:
    """Sure of its replies by the size of the board; a reply takes as many tokens as the board has rows."""

    def __init__(self, chances, tokens=True):
        self.chances, self.asked = chances, []

    def prompts(self, config, n, seed):
        [size] = [size for size, piece in config.slices.items() if piece.share]
        self.asked.append((size, n, seed))
        return [size] * len(self.chances[size])

    def policy(self):
        def beliefs(prompts):
            return [
                SimpleNamespace(log_probability=math.log(chance), tokens=size)
                for size, chance in zip(prompts, self.chances[prompts[0]] if prompts else [], strict=True)
            ]

        return SimpleNamespace(beliefs=beliefs)


def report(stage=1):
    return StageReport(stage=stage, config=CONFIG.model_dump(mode="json"), results=[])


def test_shares_go_where_the_model_is_half_sure_of_itself():
    trainee = Trainee({3: [0.9, 1.0, 0.8], 4: [0.5]})
    engineer = live_engineer("introspection", trainee, seed=5)
    proposal = engineer.propose(report(), CONFIG)
    weights = {3: 0.9 * 0.1, 4: 0.25}
    shares = {size: 0.1 + 0.8 * weight / sum(weights.values()) for size, weight in weights.items()}
    found = {size: piece.share for size, piece in proposal.config.slices.items()}
    assert found == pytest.approx(shares, abs=0.01)
    assert {change.reason for change in proposal.reasons} == {
        "the model gives its own replies a probability of 0.90", "the model gives its own replies a probability of 0.50",
    }  # fmt: skip
    assert (proposal.usage.prompt_tokens, proposal.usage.cost) == (3 * 3 + 4, 0.0)
    seed = random.Random("introspection:5:1").randrange(2**31)
    assert trainee.asked == [(3, 20, seed), (4, 20, seed)]
    assert engineer.propose(report(), CONFIG).usage.prompt_tokens == 13  # of this proposal alone
    engineer = live_engineer("introspection", Trainee({3: [0.9], 4: []}), boards=2)
    assert engineer.tokens == 0
    assert engineer.propose(report(), CONFIG).config.slices[3].share == pytest.approx(
        0.9, abs=0.01
    )  # of 4 it has no belief
    assert engineer.trainee.asked[0][1] == 2


def test_it_needs_two_shares_to_move():
    engineer = live_engineer("introspection", None)
    one, none = mfl.LakeConfig.single(3), SimpleNamespace(path=("x",))
    assert engineer.can_turn(find_knobs(CONFIG, None))
    assert not engineer.can_turn(find_knobs(CONFIG, ["slices.3.*", "num_agents"]))
    assert not engineer.can_turn([])
    assert not engineer.can_turn(find_knobs(CONFIG, ["slices.*.hole_ratio"]))
    assert not engineer.can_turn(find_knobs(one, None))
    assert none


def test_a_slice_is_asked_about_alone():
    shares = {size: piece.share for size, piece in only(CONFIG, "4").slices.items()}
    assert shares == {3: 0.0, 4: 1.0}
    assert only(CONFIG, "4").slices[3].hole_ratio == 0.2


class Parts(BaseModel):
    parts: dict[str, Piece] = {"a": Piece(share=2), "b": Piece(share=1)}


def test_slices_are_found_by_their_shares_whatever_a_config_calls_them():
    assert {name: piece.share for name, piece in only(Parts(), "b").parts.items()} == {"a": 0.0, "b": 1.0}


class Models:
    group = None

    def language_model(self):
        return "the checkpoint", "its tokenizer"

    def base_model(self):
        return "the first model", "its tokenizer"


@pytest.mark.parametrize(("name", "model"), [("checkpoint", "the checkpoint"), ("base", "the first model")])
def test_a_named_model_is_asked_within_the_runs_time(name, model, monkeypatch):
    made = []
    monkeypatch.setattr("engineers.backends.live.make", lambda **given: made.append(given) or "engineer")
    assert live_engineer(name, Models(), timeout=9.0, seed=1) == "engineer"
    called = {"model": model, "tokenizer": "its tokenizer", "called": f"live/{name}", "name": name, "seed": 1}
    assert live_engineer(name, Models(), timeout=9.0, time_limit=2.0, seed=1) == "engineer"
    assert made == [called | {"time_limit": 9.0}, called | {"time_limit": 2.0}]


def test_a_group_of_workers_is_asked_through_its_line():
    asked = []
    group = SimpleNamespace(call=lambda *given: asked.append(given))
    trainee = SimpleNamespace(group=group)
    engineer = live_engineer("base", trainee, timeout=4.0, seed=3, max_tokens=77)
    assert engineer.chat.model == "live/base"
    assert engineer.chat.group is group
    assert engineer.chat.options == {"time_limit": 4.0, "seed": 3}  # the chat's own; the rest is the engineer's
    assert engineer.max_tokens == 77
    assert remote_engineer("checkpoint", group, {}).chat.model == "live/checkpoint"


@pytest.mark.parametrize(
    ("name", "required"),
    [
        ("introspection", [("torch", "transformers", "grpo")]),
        ("checkpoint", [("torch", "transformers", "grpo"), ("llguidance", "jinja2", "local")]),
        ("base", [("torch", "transformers", "grpo"), ("llguidance", "jinja2", "local")]),
    ],
)
def test_what_an_engineer_on_the_trainee_needs_is_asked_for_at_the_start(name, required, monkeypatch):
    asked = []
    monkeypatch.setattr("engineers.shared.extras.require", lambda *modules, extra: asked.append((*modules, extra)))
    GRPOTrainee.check_asked_by(name)
    assert asked == required
