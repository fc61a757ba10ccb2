"""At every door: engineers of both kinds drive the training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from envtuning import EngineerCurriculum
from tests.envtuning.curriculum.doors import EDITABLE, EVERY, START, TARGET, Trained, door

ALL = [
    "environment",
    "vector",
    "pettingzoo",
    "stable_baselines3",
    pytest.param("rllib", marks=pytest.mark.ray),
    pytest.param("trl", marks=pytest.mark.slow),
]
NEEDS = {"stable_baselines3": "stable_baselines3", "rllib": "ray", "trl": "trl"}


@pytest.fixture
def train(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Trains at the door that the test is given."""
    name = request.getfixturevalue("at")
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"needs {NEEDS[name]}")
    if name == "rllib":
        request.getfixturevalue("ray_session")
    return door(name, small_model_in(tmp_path_factory) if name == "trl" else Path())


def small_model_in(folders: pytest.TempPathFactory) -> Path:
    from envtuning.trainees.language.small import small_model
    from envtuning.trainees.language.tokenizer import sign_tokenizer

    folder, tokenizer = folders.mktemp("model"), sign_tokenizer()
    small_model(tokenizer, width=16, layers=1, heads=2).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def check(one: Trained, configs: int) -> None:
    chosen = [proposal.config for proposal in one.curriculum.proposals]
    assert len({config.model_dump_json() for config in chosen}) >= configs
    assert one.curriculum.incidents == []
    assert set(one.began_on) == {START}
    assert set(one.ended_on) == {one.curriculum.config} == {chosen[-1]}


@pytest.mark.parametrize("at", ALL)
def test_rules_makes_three_configs(train, at):
    check(train(EngineerCurriculum("rules", START, target=TARGET, every=EVERY, editable=EDITABLE), 4, None), 3)


@pytest.mark.parametrize("at", ALL)
def test_a_model_behind_a_server_makes_a_config_for_every_answer(train, at, httpserver: HTTPServer):
    pytest.importorskip("openai")
    questions: list[str] = []

    def answer(request: Request) -> Response:
        questions.append(request.get_data(as_text=True))
        config = {"slices": {"2": {"share": 1 / (1 + len(questions))}, "3": {"share": 1.0}}}
        message = {"role": "assistant", "content": json.dumps({"config": config, "reasons": []})}
        return Response(
            json.dumps(
                {
                    "id": "1", "object": "chat.completion", "created": 0, "model": "m",
                    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                    "usage": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1_000},
                }
            ),
            content_type="application/json",
        )  # fmt: skip

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    engineer = f"server/{httpserver.url_for('/v1')}#m"
    curriculum = EngineerCurriculum(
        engineer, START, target=TARGET, every=EVERY, editable=EDITABLE, environment="Two sizes of lakes."
    )
    one = train(curriculum, 3, None)
    check(one, 3)
    assert [proposal.config.slices[2].share for proposal in one.curriculum.proposals] == [1 / 2, 1 / 3, 1 / 4]
    assert len(questions) == 3
    assert all("Two sizes of lakes." in question for question in questions)
