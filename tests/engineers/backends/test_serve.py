"""The small OpenAI-compatible server: a real process with a tiny Qwen3, asked through ``server/…``; and bad requests."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import engineers
from engineers.backends.serve import make_server, serve_until_interrupted
from engineers.model.chat import Completion, Message, ServerFailed, TooLong
from engineers.report import StageReport


class Parrot:
    """A chat that says what it was asked, or fails as told."""

    model = "parrot"

    def complete(self, messages: list[Message], schema: dict[str, Any] | None, *, max_tokens: int) -> Completion:
        said = messages[-1]["content"]
        if said == "too long":
            raise TooLong("cut", spent=Completion("cut of", 3, max_tokens))
        if said == "fail":
            raise ServerFailed("it broke")
        return Completion(json.dumps({"said": said, "schema": schema, "max_tokens": max_tokens}), 3, 4)


@pytest.fixture
def parrot() -> Iterator[str]:
    server = make_server(Parrot())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def post(url: str, body: Any) -> tuple[int, dict[str, Any]]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": "application/json"})) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def asked(**more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "hello"}], **more}


def test_a_cut_reply_says_so(parrot: str) -> None:
    _, reply = post(f"{parrot}/chat/completions", {"messages": [{"role": "user", "content": "too long"}]})
    assert reply["choices"][0]["finish_reason"] == "length"
    assert reply["choices"][0]["message"]["content"] == "cut of"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "not JSON"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "content as text"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "role='wizard'"),
        (asked(stream=True), "stream=true is not supported"),
        (asked(response_format={"type": "json_schema", "json_schema": "x"}), "response_format"),
        ({"messages": [{"role": "user", "content": "fail"}]}, "it broke"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong_and_the_server_goes_on(parrot: str, body: Any, said: str) -> None:
    status, reply = post(f"{parrot}/chat/completions", body)
    assert status == 400
    assert said in reply["error"]["message"]
    assert post(f"{parrot}/chat/completions", asked())[0] == 200


@pytest.fixture(scope="module")
def served(tiny_qwen3: Path) -> Iterator[str]:
    """The address of a server process with the tiny model, as it prints it."""
    pytest.importorskip("llguidance")
    command = [sys.executable, "-m", "engineers", "serve", "--model", str(tiny_qwen3), "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell's children ignore Ctrl-C
    )
    lines = []
    assert process.stdout is not None
    for line in process.stdout:  # ends with the process, if it fails
        lines.append(line)
        found = re.search(r"server/http://127\.0\.0\.1:\d+/v1#local", line)
        if found:
            break
    else:
        pytest.fail("the server did not start:\n" + "".join(lines))
    yield found.group()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0


@pytest.mark.slow  # a process that imports torch and transformers
def test_a_real_server_with_an_untrained_model_gives_valid_configs(
    served: str, report: StageReport, config: BaseModel, editable: tuple[str, ...]
) -> None:
    pytest.importorskip("openai")
    proposal = engineers.make(served, max_tokens=500, timeout=100).propose(report, config, editable)
    assert not proposal.fallback, proposal.refusals
    assert proposal.refusals == []
    assert 0 < proposal.usage.completion_tokens <= 500
    assert proposal.usage.prompt_tokens > 0


@pytest.mark.slow
def test_a_question_that_the_real_server_cannot_answer_is_a_fallback(
    served: str, report: StageReport, config: BaseModel, editable: tuple[str, ...]
) -> None:
    pytest.importorskip("openai")
    proposal = engineers.make(served, max_tokens=5, timeout=100).propose(report, config, editable)
    assert proposal.fallback
    assert "the shortest reply may take" in proposal.refusals[0]


def test_a_port_that_is_taken_is_a_sentence(parrot: str) -> None:
    port = int(parrot.split(":")[2].removesuffix("/v1"))
    with pytest.raises(OSError, match=rf"port={port}: .*; give another port, or 0 for a free one"):
        serve_until_interrupted(Parrot(), "127.0.0.1", port)
