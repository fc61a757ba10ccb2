"""At every door: engineers of both kinds drive the training, which goes on after a kill as if there had been none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

import mapf_frozenlake as mfl
from envtuning import EngineerCurriculum
from tests.answers import answer_of
from tests.envtuning.curriculum import doors
from tests.envtuning.curriculum.doors import EDITABLE, EVERY, START, TARGET, Steps, Trained, door

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
def model(at: str, tmp_path: Path) -> Path:
    """The folder of a small model, if TRL is at the door."""
    if at in NEEDS:
        pytest.importorskip(NEEDS[at], reason=f"needs {NEEDS[at]}")
    return small_model_in(tmp_path / "model") if at == "trl" else tmp_path


@pytest.fixture
def train(at: str, model: Path, request: pytest.FixtureRequest) -> Any:
    """Trains at the door that the test is given."""
    if at == "rllib":
        request.getfixturevalue("ray_session")
    return door(at, model)


def small_model_in(folder: Path) -> Path:
    from envtuning.trainees.language.small import small_model
    from envtuning.trainees.language.tokenizer import sign_tokenizer

    tokenizer = sign_tokenizer()
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
        text = answer_of({"slices.2.share": 1 / (1 + len(questions)), "slices.3.share": 1.0})
        message = {"role": "assistant", "content": text}
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


@pytest.mark.parametrize("at", ALL)
def test_a_ladder_goes_on_from_its_checkpoint(train, at, tmp_path):
    rungs = [doors.lakes(small) for small in (0.9, 0.8, 0.7, 0.6, 0.5)]

    def ladder() -> Steps:
        return Steps(rungs, threshold=0.01, window=60)

    train(ladder(), 2, tmp_path)
    one = train(ladder(), 2, tmp_path)
    assert one.curriculum.loaded is not None
    assert set(one.began_on) == {rungs[one.curriculum.loaded]}
    assert one.curriculum.rung == one.curriculum.loaded + 2
    assert set(one.ended_on) == {rungs[one.curriculum.rung]}


def killed(at: str, folder: Path, model: Path) -> list[list[Any]]:
    """Train in another process, and kill it after the second checkpoint of a stage 2 or later. All calls that its door made."""
    log, root = folder / "calls.jsonl", Path(doors.__file__).parents[3]
    with (folder / "errors.txt").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, doors.__file__, at, str(folder), str(model)],
            env=os.environ | {"PYTHONPATH": str(root)}, stdout=errors, stderr=errors,
        )  # fmt: skip
    try:
        while sum(call == doors.SAVED and given[0] >= 2 for call, *given in doors.calls_of(log)) < 2:
            assert process.poll() is None, (folder / "errors.txt").read_text()
            time.sleep(0.05)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    return calls_in(log)


@pytest.mark.slow
@pytest.mark.parametrize("at", ALL)
def test_after_a_kill_in_mid_training_it_goes_on_from_the_checkpoint_as_without_the_kill(train, at, model, tmp_path):
    """The twin is never killed: it is told, call by call, what the door has told the curriculum that was."""
    folder, log = tmp_path / "run", tmp_path / "after.jsonl"
    folder.mkdir()
    before = killed(at, folder, model)
    one: Any = train(doors.recorded(log), 2, folder)
    after, loaded = calls_in(log), one.curriculum.loaded
    kept, twin = before[: loaded["calls"]], doors.recorded()
    doors.repeat(kept, twin)
    assert json.loads(json.dumps(twin.state_dict())) == loaded
    assert twin.stage >= 2
    assert set(one.began_on) == {twin.config}
    doors.repeat(after, twin)
    assert one.curriculum.state_dict() == twin.state_dict()
    assert one.curriculum.proposals == twin.proposals
    assert one.curriculum.history == twin.history  # what each question was about
    assert one.curriculum.stage == loaded["stage"] + 2
    assert set(one.ended_on) == {twin.config}
    drawn = mfl.generate(one.curriculum.config, n=1_000, seed=7)
    assert [lake.height for lake in drawn] == [lake.height for lake in mfl.generate(twin.config, n=1_000, seed=7)]
    tables = [*(record.training_results for record in one.curriculum.history), one.curriculum.report.training_results]
    counted = sum(row.episodes for table in tables for row in table)
    assert counted == sum(episodes_in(call) for call in [*kept, *after])  # no outcome twice


def calls_in(log: Path) -> list[list[Any]]:
    return [call for call in doors.calls_of(log) if call[0] != doors.SAVED]


def episodes_in(call: list[Any]) -> int:
    name, *given = call
    if name == "observe_many":
        return len(given[0])
    return name == "observe"
