"""A planted key, a provider that echoes it everywhere, logging at DEBUG: then every byte that the run left is searched."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from engineers.shared.extras import _is_installed
from tests.answers import answer_of

KEY = "planted7Q9zTestValue4711"  # looks like no provider's key

# A provider that first refuses (quoting the key), then answers (quoting the key), then refuses again, then an error that is not caught;
# once with the key in the environment and once with the key as an argument.
RUN = """
import logging, os, pathlib, pickle, sys, traceback
logging.basicConfig(filename="run.log", level=logging.DEBUG)
for noisy in ("openai", "httpx", "httpcore", "google_genai", "LiteLLM"):
    logging.getLogger(noisy).setLevel(logging.DEBUG)
from pydantic import BaseModel, Field
import engineers

class Config(BaseModel):
    level: float = Field(0.5, ge=0, le=1, description="How hard it is.")

def run(place, options):
    place = pathlib.Path(place)
    place.mkdir()
    engineer = engineers.make(name, transcript=place / "transcript.jsonl", timeout=20, **options)
    config = Config()
    for stage in range(3):
        proposal = engineer.propose(engineers.StageReport(stage=stage, config=config.model_dump()), config)
        (place / f"proposal-{stage}.json").write_text(proposal.model_dump_json())
        print(proposal, engineer, vars(engineer.chat), repr(engineer.chat))
    (place / "engineer.pickle").write_bytes(pickle.dumps(engineer.chat))
    engineer.chat.complete([{"role": "user", "content": "?"}], None, max_tokens=9)  # the last refusal, not caught

name, variable, options = sys.argv[1], sys.argv[2], eval(sys.argv[3])
try:
    run("environment", options)
except engineers.ChatError:
    traceback.print_exc()
del os.environ[variable]
run("argument", options | {"api_key": open("key").read()})  # by a file that the program reads, as users do
"""


def openai_body(text: str) -> dict[str, object]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def gemini_body(text: str) -> dict[str, object]:
    return {"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [{"text": text}]}}]}


@pytest.fixture
def echo() -> Iterator[HTTPServer]:
    """Quotes the request's headers: in a 401, in the text of a good reply, in a 500, and so on; ends with 401s."""
    seen: list[str] = []

    def handler(request: Request) -> Response:
        seen.append(str(request.headers))
        said = f"You are {dict(request.headers)}"
        if len(seen) % 4 == 2:
            text = answer_of({"level": 0.25}, said)
            body = gemini_body(text) if "generateContent" in request.path else openai_body(text)
            return Response(json.dumps(body), content_type="application/json")
        if len(seen) % 4 == 3:
            return Response(said, status=400)
        return Response(
            json.dumps({"error": {"message": said, "code": 401, "status": "E"}}), 401, {"X-Echo": said[:2000]}
        )

    with HTTPServer(threaded=True) as server:
        server.expect_request(re.compile(".*")).respond_with_handler(handler)
        server.seen = seen  # type: ignore[attr-defined]
        yield server


@pytest.mark.parametrize(
    ("name", "module", "variable", "address"),
    [
        ("openai/gpt-5-mini", "openai", "OPENAI_API_KEY", "/v1"),
        ("gemini/gemini-2.5-flash", "google.genai", "GEMINI_API_KEY", ""),
        ("litellm/openai/some-model", "litellm", "OPENAI_API_KEY", "/v1"),
    ],
)
def test_no_byte_that_a_run_leaves_holds_the_key(
    echo: HTTPServer, tmp_path: Path, name: str, module: str, variable: str, address: str
) -> None:
    if not _is_installed(module):
        pytest.skip(f"{module} is not installed")
    options = {"base_url": echo.url_for("").rstrip("/") + address}
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    environment |= {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), variable: KEY}
    (tmp_path / "key").write_text(KEY)
    command = [sys.executable, "-c", RUN, name, variable, repr(options)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=200)
    (tmp_path / "key").unlink()

    assert done.returncode == 1
    assert len(re.findall(rb"^\S*AuthFailed", done.stderr, re.MULTILINE)) == 2, done.stderr[-2000:]
    seen = echo.seen  # type: ignore[attr-defined]
    assert len(seen) == 2 * 4
    assert all(KEY in headers for headers in seen)
    left = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert str(tmp_path / "run.log") in left
    for given in ("environment", "argument"):
        assert {path.name for path in (tmp_path / given).iterdir()} >= {"transcript.jsonl", "engineer.pickle"}
        assert b'"level":0.25' in left[str(tmp_path / given / "proposal-1.json")]
    left |= {"stdout": done.stdout, "stderr": done.stderr}
    assert [place for place, data in left.items() if KEY.encode() in data] == []
