"""What an SDK reads from the environment by itself reaches no host but the provider's own."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.engineers.backends.test_sdk_rules import TALK

pytest.importorskip("openai", reason="needs the SDK: pip install 'mapf-frozenlake[openai]'")
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from engineers.backends.compatible_server import ServerChat
from engineers.backends.openai import OpenAIChat

MARKER = "marker"
REPLY = '{"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "well"}}]}'


def variables_of(package: str) -> set[str]:
    """The environment variables that the source of an installed package names."""
    found = find_spec(package)
    assert found is not None
    assert found.submodule_search_locations
    (folder,) = found.submodule_search_locations
    texts = (path.read_text(encoding="utf-8") for path in Path(folder).rglob("*.py"))
    return {name for text in texts for name in re.findall(r"environ(?:\.get\(|\[)\s*[\"'](\w+)[\"']", text)}


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    names = variables_of("openai")
    for name in names - {"OPENAI_BASE_URL", "OPENAI_LOG"}:
        monkeypatch.setenv(name, f"{MARKER}-{name}")
    headers = [f"Authorization: Bearer {MARKER}", f"X-Own: {MARKER}", f"User-Agent: {MARKER}", f"Cookie: {MARKER}"]
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "\n".join(headers))
    return names


@pytest.mark.parametrize("kind", ["server", "openai"])
def test_a_foreign_host_gets_the_key_that_is_meant_for_it_and_nothing_else(
    marked: set[str], httpserver: HTTPServer, kind: str
) -> None:
    assert {"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS"} <= marked
    seen: list[Request] = []

    def answer(request: Request) -> Response:
        seen.append(request)
        return Response(REPLY, content_type="application/json")

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    address = httpserver.url_for("/v1")
    chat = (
        ServerChat(f"{address}#m", api_key="the-key")
        if kind == "server"
        else OpenAIChat("m", base_url=address, api_key="the-key")
    )
    assert chat.complete(TALK, None, max_tokens=9).text == "well"
    (request,) = seen
    assert request.headers["Authorization"] == "Bearer the-key"
    assert MARKER not in str(request.headers)
    assert MARKER not in request.get_data(as_text=True)
    assert not {name for name in request.headers.keys() if name.lower().startswith(("openai-", "x-"))}  # noqa: SIM118
