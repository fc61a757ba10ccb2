"""What an SDK reads from the environment by itself reaches no host but the provider's own."""

from __future__ import annotations

import re
import string
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.engineers.backends.test_sdk_rules import TALK

pytest.importorskip("pytest_httpserver")
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

import engineers

MARKER = "marker"
OPENAI = '{"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "well"}}]}'
GEMINI = '{"candidates": [{"content": {"role": "model", "parts": [{"text": "well"}]}, "finishReason": "STOP"}]}'
ANTHROPIC = '{"id": "1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "well"}], "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}'
READ = re.compile(r"(?:environ(?:\.get\(|\[)|getenv\(|get_secret(?:_str|_bool)?\()\s*[\"'](\w+)[\"']")
# Where questions go, how they are kept or proved, and what the tests' own machine needs: not what a header holds.
LEFT = re.compile(
    r"BASE|URL|HOST|ENDPOINT|PROXY|proxy|SSL|CERT|TIMEOUT|DEBUG|LOG|PATH|HOME|DIR|PYTEST|MODE|VERTEX|ENTERPRISE|REPLAY|USE_|_MAP|SECRET_MANAGER"
)


def variables_of(package: str) -> set[str]:
    """The environment variables that the source of an installed package reads."""
    found = find_spec(package)
    assert found is not None
    assert found.submodule_search_locations
    folders = [Path(folder) for folder in found.submodule_search_locations]
    texts = (path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
    return {
        name
        for text in texts
        for name in READ.findall(text)
        if set(name) <= {*string.ascii_uppercase, *string.digits, "_"}
    }


@pytest.mark.parametrize(
    ("package", "model", "path", "reply", "header", "known"),
    [
        ("openai", "openai/m", "/v1", OPENAI, "Authorization", "OPENAI_ORG_ID"),
        ("openai", "server", "/v1", OPENAI, "Authorization", "OPENAI_CUSTOM_HEADERS"),
        ("google.genai", "gemini/m", "", GEMINI, "X-Goog-Api-Key", "GEMINI_API_KEY"),
        ("litellm", "litellm/openai/m", "/v1", OPENAI, "Authorization", "OPENAI_ORGANIZATION"),
        ("litellm", "litellm/anthropic/m", "", ANTHROPIC, "X-Api-Key", "ANTHROPIC_API_KEY"),
        ("litellm", "litellm/openrouter/m", "/v1", OPENAI, "Authorization", "OR_APP_NAME"),
    ],
)
def test_a_foreign_host_gets_the_key_that_is_meant_for_it_and_nothing_else(
    package: str,
    model: str,
    path: str,
    reply: str,
    header: str,
    known: str,
    httpserver: HTTPServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip(package, reason="needs the SDK: pip install 'mapf-frozenlake[openai,gemini,litellm]'")
    names = variables_of(package)
    assert known in names
    for name in names:
        if not LEFT.search(name):
            monkeypatch.setenv(name, f"{MARKER}-{name}")
    headers = [f"Authorization: Bearer {MARKER}", f"X-Own: {MARKER}", f"User-Agent: {MARKER}", f"Cookie: {MARKER}"]
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "\n".join(headers))
    seen: list[Request] = []

    def answer(request: Request) -> Response:
        seen.append(request)
        return Response(reply, content_type="application/json")

    httpserver.expect_request(re.compile(".*")).respond_with_handler(answer)
    address = httpserver.url_for(path)
    engineer = (
        engineers.make(f"server/{address}#m", api_key="the-key")
        if model == "server"
        else engineers.make(model, base_url=address, api_key="the-key")
    )
    assert engineer.chat.complete(TALK, None, max_tokens=9).text == "well"
    (request,) = seen
    assert request.headers[header].removeprefix("Bearer ") == "the-key"
    assert MARKER not in str(request.headers)
    assert MARKER not in request.get_data(as_text=True)
    assert MARKER not in request.url
    assert set(request.headers.keys()) <= {
        *("Host", "Accept", "Accept-Encoding", "Content-Type", "Content-Length", "User-Agent", "Anthropic-Version"),
        *("Connection", "Transfer-Encoding", header),
    }
