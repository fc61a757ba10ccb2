"""Engineers on the trainee's own model: which model is asked, and what it takes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from envtuning.trainees.language.live_engineers import live_engineer, remote_engineer
from envtuning.trainees.language.trainee import GRPOTrainee


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


@pytest.mark.parametrize("name", ["checkpoint", "base"])
def test_what_an_engineer_on_the_trainee_needs_is_asked_for_at_the_start(name, monkeypatch):
    asked = []
    monkeypatch.setattr("engineers.shared.extras.require", lambda *modules, extra: asked.append((*modules, extra)))
    GRPOTrainee.check_asked_by(name)
    assert asked == [("torch", "transformers", "grpo"), ("llguidance", "jinja2", "local")]
