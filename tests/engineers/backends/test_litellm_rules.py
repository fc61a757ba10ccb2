"""What litellm is asked and given: once, under a limit, with a key where one is all that a provider needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from engineers.model.chat import AuthFailed, Completion, Rejected, Timeout, TooLong
from engineers.shared import own
from tests.engineers.backends.test_sdk_rules import KEY, SCHEMA, TALK, completion, thing


@pytest.fixture
def litellm(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What litellm was asked, after the answer that it gives to everything."""
    from engineers.backends import litellm as ours

    asked: list[Any] = []
    module = pytest.importorskip("litellm")
    monkeypatch.setattr(module, "completion", lambda **question: asked.append(question) or asked[0])
    yield asked
    ours._asking.set(None)  # a chat asks in a thread of its own; here it is this one


def test_litellm_is_asked_once_for_what_is_set_and_says_what_it_cost(litellm: list[Any]) -> None:
    from engineers.backends.litellm import LiteLLMChat

    answer = completion("ünf")  # four bytes
    litellm.append(answer)
    options: Any = {"api_key": KEY, "base_url": "http://localhost", "timeout": 1.5, "max_bytes": 4}
    chat = LiteLLMChat("some/model", temperature=0.0, seed=3, request={"top_p": 0.5}, **options)
    assert chat._ask(TALK, SCHEMA, 99) == Completion("ünf", 0, 0, cost=None)
    assert litellm[1] == {
        "model": "some/model",
        "messages": TALK,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "proposal", "strict": True, "schema": SCHEMA},
        },
        "max_tokens": 99,
        "temperature": 0.0,
        "seed": 3,
        "api_key": KEY,
        "base_url": "http://localhost",
        "timeout": 1.5,
        "max_retries": 0,
        "num_retries": 0,
        "drop_params": True,
        "top_p": 0.5,
    }
    for hidden, cost in ((None, None), ({}, None), ({"response_cost": None}, None), ({"response_cost": "0.25"}, 0.25)):
        answer._hidden_params = hidden
        assert chat._ask(TALK, None, 99).cost == cost
    chat.max_bytes = 3
    with pytest.raises(TooLong, match=r"^the reply has more than 3 bytes: answer with the JSON alone$") as caught:
        chat._ask(TALK, None, 99)
    assert caught.value.spent is not None


@pytest.mark.parametrize(
    ("missing", "settings", "refused"),
    [
        (["MISTRAL_API_KEY"], {}, "set MISTRAL_API_KEY, or pass"),
        (["A_API_KEY", "B_API_KEY"], {}, "set A_API_KEY and B_API_KEY, or pass"),
        (["A_API_KEY", "A_REGION"], {}, None),  # a provider that may find its way by other means
        ([], {}, None),
        (["MISTRAL_API_KEY"], {"api_key": KEY}, None),
        (["MISTRAL_API_KEY"], {"base_url": "http://localhost"}, None),
    ],
)
def test_a_provider_that_needs_nothing_but_a_key_is_not_asked_without_one(
    monkeypatch: pytest.MonkeyPatch, litellm: list[Any], missing: list[str], settings: Any, refused: str | None
) -> None:
    """Nor does a run begin; who has a key in the environment, which litellm finds by itself, is not stopped."""
    from engineers.backends.litellm import LiteLLMChat

    monkeypatch.setattr("litellm.validate_environment", lambda model: {"some/model": {"missing_keys": missing}}[model])
    litellm.append(completion("well"))
    own.trust(["option:engineer.name"])
    chat = LiteLLMChat("some/model", **settings)
    if refused is None:
        chat.raise_unless_askable()
        chat.complete(TALK, None, max_tokens=9)
        assert litellm[1]["api_key"] == settings.get("api_key")
        return
    with pytest.raises(AuthFailed, match=f"^no key for litellm/some/model: {refused} api_key=$"):
        chat.raise_unless_askable()
    with pytest.raises(AuthFailed, match=f"{refused} api_key="):
        chat.complete(TALK, None, max_tokens=9)
    assert len(litellm) == 1


def test_a_key_that_no_provider_has_is_refused_before_litellm_is_asked() -> None:
    from engineers.backends.litellm import LiteLLMChat

    own.trust(["option:engineer.name"])
    with pytest.raises(AuthFailed, match="outside of ASCII"):
        LiteLLMChat("some/model", api_key="clé").raise_unless_askable()


def test_litellms_errors_are_told_apart_from_those_of_its_providers() -> None:
    openai = pytest.importorskip("openai")
    httpx = pytest.importorskip("httpx")
    from engineers.backends.litellm import LiteLLMChat

    chat, request = LiteLLMChat("some/model", timeout=1.5), httpx.Request("POST", "http://x")

    def status(code: int, headers: Any) -> Any:
        error = openai.APIStatusError("said", response=httpx.Response(code, request=request), body=None)
        if headers is not None:
            error.litellm_response_headers = headers
        return chat._status_error(error)

    assert status(500, None) is None  # its own: it could not read the reply
    assert status(500, {}).transient
    assert status(503, None).transient
    assert isinstance(status(404, None), Rejected)
    assert status(429, {"retry-after": "7"}).retry_after == 7
    late = chat._status_error(openai.APITimeoutError(request))
    assert (type(late), str(late)) == (Timeout, "no reply within 1.5 s: raise timeout, or think and write less")
    assert chat._status_error(KeyError("other")) is None


class Sends:
    """A kind of HTTP client, of which litellm makes its own."""

    def __init__(self, reply: Any) -> None:
        self.reply, self.sent = reply, []

    def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        self.sent.append({"stream": stream, **options})
        return self.reply


def test_questions_of_ours_are_bounded_in_whatever_client_and_those_of_others_are_left_alone() -> None:
    httpx = pytest.importorskip("httpx")
    from engineers.backends import litellm as ours

    class Own(Sends): ...

    def answer(status: int = 200, body: bytes = b"0123456789") -> Any:
        return httpx.Response(status, stream=httpx.ByteStream(body), headers={"location": "http://evil.example"})

    request = httpx.Request("POST", "http://evil.example", headers={"X-Own": "1"})
    ours._bound(Own)
    client = Own(answer())
    for stream in (True, False):
        client.send(request, stream=stream, follow_redirects=True)  # nobody asked for us
    assert client.send(request) is client.reply
    streams = [
        {"stream": True, "follow_redirects": True},
        {"stream": False, "follow_redirects": True},
        {"stream": False},
    ]
    assert client.sent == streams
    ours._asking.set(ours.LiteLLMChat("m", max_bytes=10))
    try:
        client = Own(answer())
        reply = client.send(request, follow_redirects=True, auth="x")
        assert client.sent == [{"stream": True, "follow_redirects": False, "auth": "x"}]
        assert (reply.is_closed, reply.content) == (True, b"0123456789")
        reply = Own(answer()).send(request, stream=True)
        assert not reply.is_closed  # whoever streams reads and closes it
        assert reply.read() == b"0123456789"
        for status, body, kind in ((200, b"0123456789+", TooLong), (307, b"", Rejected)):
            client = Own(answer(status, body))
            with pytest.raises(kind):
                client.send(request)
            assert client.reply.is_closed
    finally:
        ours._asking.set(None)


def test_litellm_is_loaded_quietly_with_its_own_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("litellm")
    from engineers.backends import litellm as ours

    bounded: list[Any] = []
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)
    monkeypatch.setattr(ours, "_bound", bounded.append)
    monkeypatch.setitem(sys.modules, "httpx", thing(Client="of httpx"))
    monkeypatch.delitem(sys.modules, "httpx2", raising=False)
    module = ours._litellm()
    assert module.suppress_debug_info is True
    assert bounded == ["of httpx"]
    assert ours.os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"  # else it asks the network for prices


@pytest.mark.parametrize("provider", ["zai", "nano-gpt", "chutes", "github_copilot", "sagemaker", "gpt-4o"])
def test_a_file_names_no_provider_that_another_ones_key_would_go_to(
    monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    """litellm falls back to OPENAI_API_KEY for dozens of providers."""
    from engineers.backends.litellm import LiteLLMChat
    from engineers.model.chat import AuthFailed

    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    with pytest.raises(AuthFailed, match="is named only in a file"):
        LiteLLMChat(f"{provider}/abc").raise_unless_askable()
    with pytest.raises(AuthFailed, match="GROQ_API_KEY"):
        LiteLLMChat("groq/abc").raise_unless_askable()
    assert LiteLLMChat("openai/abc").required_key() == "sk-canary"
