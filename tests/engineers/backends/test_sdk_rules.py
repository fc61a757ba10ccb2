"""What each SDK is given and how its reply is read, field by field; the whole way over a wire is in test_network.py."""

from __future__ import annotations

import importlib
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engineers.backends.making import engineer_on
from engineers.model.chat import (
    Completion,
    Message,
    RateLimited,
    Refused,
    Rejected,
    TooLong,
    WireBroken,
)

KEY = "planted-for-the-sdks-4711"
TALK: list[Message] = [
    {"role": "system", "content": "You design."},
    {"role": "user", "content": "What next?"},
    {"role": "assistant", "content": "This."},
    {"role": "system", "content": "Be brief."},
]
SCHEMA = {"type": "object"}


def thing(**fields: Any) -> Any:
    """An object of an SDK, with these fields only."""
    return SimpleNamespace(**fields)


# --- chat.completions


def completion(text: Any = "hello", finish: str = "stop", usage: Any = None, **message: Any) -> Any:
    return thing(choices=[thing(message=thing(content=text, **message), finish_reason=finish)], usage=usage)


@pytest.mark.parametrize(
    ("usage", "prompt", "written"),
    [
        (None, 0, 0),
        (thing(), 0, 0),
        (thing(prompt_tokens=None, completion_tokens=None), 0, 0),
        (thing(prompt_tokens=900, completion_tokens=80), 900, 80),
    ],
)
def test_a_chat_completion_counts_what_its_usage_says(usage: Any, prompt: int, written: int) -> None:
    from engineers.backends.openai import read_chat_completion

    assert read_chat_completion(completion(usage=usage)) == Completion("hello", prompt, written)
    assert read_chat_completion(completion(None, usage=usage)) == Completion("", prompt, written)


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (thing(), WireBroken, "^the reply has no choices: namespace"),
        (thing(choices=[]), WireBroken, "^the reply has no choices: namespace"),
        (completion(["parts"]), WireBroken, "^the reply's content is list, not text$"),
        (completion(None, refusal="No."), Refused, "^the model refused: No.$"),
        (completion(None, provider_specific_fields={"refusal": "No."}), Refused, "^the model refused: No.$"),
        (completion("par", "content_filter"), Refused, "^the provider's content filter stopped the reply$"),
        (completion("par", "length", thing(completion_tokens=9)), TooLong, "cut after 9 tokens: think and write less"),
    ],
)
def test_a_chat_completion_without_a_whole_text_is_an_error(reply: Any, kind: Any, said: str) -> None:
    from engineers.backends.openai import read_chat_completion

    with pytest.raises(kind, match=said) as caught:
        read_chat_completion(reply)
    if kind is not WireBroken:
        assert caught.value.spent.text == (reply.choices[0].message.content or "")


def test_no_refusal_is_read_where_there_is_none() -> None:
    from engineers.backends.openai import read_chat_completion

    for message in (
        {"refusal": None},
        {"refusal": "", "provider_specific_fields": None},
        {"provider_specific_fields": {}},
    ):
        assert read_chat_completion(completion(**message)).text == "hello"


def test_openai_is_asked_once_in_strict_form_with_what_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    openai = pytest.importorskip("openai")
    from engineers.backends.compatible_server import ServerChat
    from engineers.backends.openai import OpenAIChat

    made: list[Any] = []

    class Client:
        def __init__(self, **options: Any) -> None:
            made.append(options)
            self.chat = thing(completions=thing(create=lambda **asked: made.append(asked) or completion()))

        def __enter__(self) -> Client:
            return self

        def __exit__(self, *_: object) -> None:
            made[0]["http_client"].close()

    monkeypatch.setattr(openai, "OpenAI", Client)
    options = {"api_key": KEY, "timeout": 1.5, "temperature": 0.0, "seed": 3, "request": {"top_p": 0.5}}
    strict = {"type": "json_schema", "json_schema": {"name": "proposal", "strict": True, "schema": SCHEMA}}
    asked = {"model": "m", "messages": TALK, "response_format": strict, "temperature": 0.0, "seed": 3, "top_p": 0.5}
    for chat, limit in (
        (OpenAIChat("m", base_url="http://localhost/v1", **options), "max_completion_tokens"),  # type: ignore[arg-type]
        (ServerChat("http://localhost/v1#m", **options), "max_tokens"),  # type: ignore[arg-type]
    ):
        made.clear()
        assert chat._ask(TALK, SCHEMA, 99) == Completion("hello", 0, 0)
        http = made[0].pop("http_client")
        assert made[0] == {"api_key": KEY, "base_url": "http://localhost/v1", "timeout": 1.5, "max_retries": 0}
        assert made[1] == asked | {limit: 99}
        assert not http.follow_redirects
        made[0]["http_client"] = http
    made.clear()
    OpenAIChat("m", api_key=KEY)._ask(TALK, None, 99)
    assert made[1] == {"model": "m", "messages": TALK, "max_completion_tokens": 99}


def test_openais_errors_have_their_status_and_wait() -> None:
    openai, httpx = pytest.importorskip("openai"), pytest.importorskip("httpx")
    from engineers.backends.openai import OpenAIChat

    reply = httpx.Response(429, headers={"retry-after": "7"}, request=httpx.Request("POST", "http://x"))
    error = OpenAIChat("m")._status_error(openai.APIStatusError("slow down", response=reply, body=None))
    assert isinstance(error, RateLimited)
    assert (str(error)[:19], error.retry_after) == ("HTTP 429: slow down", 7)
    assert OpenAIChat("m")._status_error(KeyError("other")) is None


# --- gemini


def candidate(*parts: Any, reason: Any = "STOP", message: str | None = None) -> Any:
    return thing(content=thing(parts=list(parts)), finish_reason=reason, finish_message=message)


def gemini(*candidates: Any, usage: Any = None, blocked: Any = None) -> Any:
    return thing(candidates=list(candidates), usage_metadata=usage, prompt_feedback=blocked)


def part(text: str | None, thought: bool | None = None) -> Any:
    return thing(text=text, thought=thought)


def counts(prompt: int | None, written: int | None, thought: int | None) -> Any:
    return thing(prompt_token_count=prompt, candidates_token_count=written, thoughts_token_count=thought)


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        (gemini(candidate(part("hello"))), Completion("hello", 0, 0)),
        (gemini(candidate(part("hello")), usage=thing()), Completion("hello", 0, 0)),
        (gemini(candidate(part("hello")), usage=counts(None, None, None)), Completion("hello", 0, 0)),
        (gemini(candidate(part("hello")), usage=counts(900, 60, 20)), Completion("hello", 900, 80)),
        (gemini(candidate(part("Hm."  , True), part("hel"), part(None), part("lo", False))), Completion("hello", 0, 0)),
        (gemini(candidate(part("first")), candidate(part("second"))), Completion("first", 0, 0)),
        (gemini(candidate()), Completion("", 0, 0)),
        (gemini(thing(content=None, finish_reason=None, finish_message=None)), Completion("", 0, 0)),
        (gemini(thing(content=thing(parts=None), finish_reason=None, finish_message=None)), Completion("", 0, 0)),
    ],
)  # fmt: skip
def test_a_reply_of_gemini_is_its_text_without_thoughts_which_count_as_written(reply: Any, read: Completion) -> None:
    from engineers.backends.gemini import read_reply

    assert read_reply(reply) == read


@pytest.mark.parametrize(
    ("reply", "kind", "said", "spent"),
    [
        (gemini(), WireBroken, "^the reply has no candidates$", None),
        (
            gemini(usage=counts(9, 5, 5), blocked=thing(block_reason=thing(value="SAFETY"))),
            Refused, "^the prompt was blocked: SAFETY$", Completion("", 9, 0),
        ),
        (
            gemini(usage=counts(9, None, None), blocked=thing(block_reason="OTHER")),
            Refused, "^the prompt was blocked: OTHER$", Completion("", 9, 0),
        ),
        (
            gemini(candidate(part("par"), reason=thing(value="SAFETY"), message="why"), usage=counts(9, 5, 2)),
            Refused, "^the model refused: SAFETY why$", Completion("par", 9, 7),
        ),
        (gemini(candidate(part("par"), reason="SPII")), Refused, "^the model refused: SPII$", Completion("par", 0, 0)),
        (
            gemini(candidate(part("par"), reason="MAX_TOKENS"), usage=counts(9, 60, 20)),
            TooLong, "^the reply was cut after 80 tokens: think and write less", Completion("par", 9, 80),
        ),
    ],
)  # fmt: skip
def test_a_reply_of_gemini_without_a_whole_text_is_an_error(reply: Any, kind: Any, said: str, spent: Any) -> None:
    from engineers.backends.gemini import read_reply

    with pytest.raises(kind, match=said) as caught:
        read_reply(reply)
    assert caught.value.spent == spent


def test_gemini_is_asked_in_its_own_form_and_its_client_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    genai = pytest.importorskip("google.genai")
    from engineers.backends.gemini import GeminiChat

    made: list[Any] = []

    class Client:
        def __init__(self, *, vertexai: bool, api_key: str, http_options: Any) -> None:
            assert not vertexai
            made.append((api_key, http_options))
            self.models = thing(generate_content=self.answer)

        def answer(self, **asked: Any) -> Any:
            made.append(asked)
            if asked["model"] == "broken":
                raise KeyError("broken")
            return gemini(candidate(part("hello")))

        def close(self) -> None:
            made.append("closed")

    monkeypatch.setattr(genai, "Client", Client)
    options: Any = {"api_key": KEY, "base_url": "http://localhost", "timeout": 1.5, "max_bytes": 77}
    chat = GeminiChat("m", temperature=0.0, seed=3, request={"top_p": 0.5}, **options)
    assert chat._ask(TALK, SCHEMA, 99).text == "hello"
    (key, http), asked, closed = made
    assert (key, http.base_url, http.timeout, closed) == (KEY, "http://localhost", 1500, "closed")
    assert http.client_args["follow_redirects"] is False
    assert asked == {
        "model": "m",
        "contents": [
            {"role": "user", "parts": [{"text": "What next?"}]},
            {"role": "model", "parts": [{"text": "This."}]},
        ],
        "config": {
            "system_instruction": "You design.\n\nBe brief.",
            "max_output_tokens": 99,
            "temperature": 0.0,
            "seed": 3,
            "response_mime_type": "application/json",
            "response_json_schema": SCHEMA,
            "top_p": 0.5,
        },
    }
    made.clear()
    with pytest.raises(KeyError):
        GeminiChat("broken", **options)._ask(TALK[1:2], None, 99)
    assert made[-1] == "closed"
    free = made[1]["config"]
    assert (free["system_instruction"], free["response_mime_type"], free["response_json_schema"]) == (None, None, None)


def test_geminis_errors_have_their_status_and_wait() -> None:
    errors = pytest.importorskip("google.genai.errors")
    from engineers.backends.gemini import GeminiChat

    chat = GeminiChat("m")
    said = {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}
    error = chat._status_error(errors.APIError(429, said, thing(headers={"retry-after": "7"})))
    assert isinstance(error, RateLimited)
    assert (str(error)[:40], error.retry_after) == ("HTTP 429: RESOURCE_EXHAUSTED: slow down ", 7)
    assert isinstance(chat._status_error(errors.APIError(404, {"error": {}}, None)), Rejected)
    assert chat._status_error(KeyError("other")) is None


# --- an engineer on a chat


def test_options_named_like_the_chats_are_the_chats_and_the_rest_the_engineers() -> None:
    from engineers.backends.openai import OpenAIChat

    engineer: Any = engineer_on(OpenAIChat, "m", {"timeout": 9.5, "max_tokens": 77, "seed": 3, "max_attempts": 2})
    assert (engineer.chat.model_id, engineer.chat.timeout, engineer.chat.seed) == ("m", 9.5, 3)
    assert (engineer.max_tokens, engineer.max_attempts) == (77, 2)
    with pytest.raises(TypeError, match=r"^OpenAIChat has no option chat, maxtokens; it has .*max_tokens"):
        engineer_on(OpenAIChat, "m", {"maxtokens": 1, "chat": None})


def test_an_unknown_option_is_told_only_those_that_can_be_given() -> None:
    from engineers.backends.local import LocalChat

    with pytest.raises(TypeError) as refused:
        engineer_on(LocalChat, "m", {"sede": 1})
    listed = str(refused.value).partition("it has ")[2].split(", ")
    assert {"seed", "timeout", "max_tokens"} <= {*listed}
    assert not {one for one in listed if one.startswith("_")} | {"model_id"} & {*listed}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("timeout", value) for value in ("60s", None, True)],
        *[("max_tokens", "many"), ("max_cost", "1 dollar"), ("seed", "abc"), ("temperature", [0.5])],
    ],
)
def test_an_option_that_is_no_number_is_told_as_that(name: str, value: Any) -> None:
    from engineers.backends.openai import OpenAIChat

    with pytest.raises(TypeError, match=f"^option {name}={re.escape(repr(value))}: give a number$"):
        engineer_on(OpenAIChat, "m", {name: value})


def test_no_number_may_be_given_where_none_is_an_answer() -> None:
    from engineers.backends.local import LocalChat

    engineer: Any = engineer_on(LocalChat, "m", {"timeout": None, "max_cost": None, "temperature": np.float32(0.5)})
    assert (engineer.chat.timeout, engineer.chat.temperature) == (None, 0.5)


# --- a request that no SDK takes


@pytest.mark.parametrize(
    ("sdk", "place", "request_", "said"),
    [
        ("openai", "openai:OpenAIChat", {"topp": 0.5}, "unexpected keyword argument 'topp'"),
        ("openai", "openai:OpenAIChat", {"model": "other"}, "^`request` has model, which every question has"),
        ("openai", "openai:OpenAIChat", {"max_completion_tokens": 5}, "^`request` has max_completion_tokens, which"),
        ("google.genai", "gemini:GeminiChat", {"topp": 0.5}, "topp: Extra inputs are not permitted"),
        ("google.genai", "gemini:GeminiChat", {"top_p": "much"}, "top_p='much': "),
        ("litellm", "litellm:LiteLLMChat", {"seed": 5}, "^`request` has seed, which every question has"),
    ],
)
def test_a_request_that_its_sdk_does_not_take_is_told_before_it_is_sent(
    monkeypatch: pytest.MonkeyPatch, sdk: str, place: str, request_: dict[str, Any], said: str
) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import asks the network for prices
    pytest.importorskip(sdk)
    module, _, name = place.partition(":")
    kind = getattr(importlib.import_module(f"engineers.backends.{module}"), name)
    chat = kind("openai/m", api_key=KEY, base_url="http://127.0.0.1:9", attempts=1, request=request_)
    with pytest.raises(Rejected, match=said) as caught:
        chat.complete(TALK, None, max_tokens=9)
    assert not caught.value.may_be_billed
