"""What every provider's chat does, without a provider: settings, keys, hosts, the clock, errors, and how a reply is read."""

from __future__ import annotations

import gzip
import logging
import re
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from engineers.backends.network import (
    answered_within,
    bounded_client,
    brief,
    error_for_status,
    limit_body,
    seconds_before_retry,
    transport_error,
)
from engineers.model.chat import (
    AuthFailed,
    ChatError,
    Completion,
    ConnectionCut,
    RateLimited,
    Rejected,
    ServerFailed,
    Timeout,
    TooLong,
    WireBroken,
)
from engineers.redaction import BLANK
from engineers.shared.own import also_trusting
from tests.engineers.backends.test_retrying import Flaky
from tests.lazily import Lazy, needed

needed("httpx", extra="openai")
httpx = Lazy("httpx")

KEY = "planted-between-the-lines-4711"


def flaky(*failures: Exception, **settings: Any) -> Flaky:
    """A chat of a provider with a host and a variable for its key, and these fields."""
    chat = Flaky(*failures)
    chat.hosts, chat.key_variables = ("api.flaky.example",), ("FLAKY_ONE", "FLAKY_TWO")  # type: ignore[misc]
    for name, value in settings.items():
        setattr(chat, name, value)
    chat.__post_init__()
    return chat


# --- settings


@pytest.mark.parametrize(
    ("seed", "sent"), [(None, None), (7, 7), (2**31 - 1, 2**31 - 1), (2**31 + 5, 5), (-1, 2**31 - 1)]
)
def test_a_seed_is_one_that_every_provider_takes(seed: int | None, sent: int | None) -> None:
    assert flaky(seed=seed).seed == sent


def test_a_chat_needs_a_model_and_limits_above_nothing() -> None:
    with pytest.raises(ValueError, match=r"^flaky/: name a model after the slash$"):
        flaky(model_id="")
    for name in ("timeout", "attempts", "max_bytes"):
        assert getattr(flaky(**{name: 1}), name) == 1
        with pytest.raises(ValueError, match=f"^{name}=0: give a value above 0$"):
            flaky(**{name: 0})


def test_what_a_chat_prints_holds_neither_its_key_nor_what_else_it_sends() -> None:
    shown = repr(flaky(api_key=KEY, request={"extra_headers": {"Authorization": KEY}}))
    assert "model_id='model'" in shown
    assert "key" not in shown
    assert "request" not in shown


# --- the key, and where it may go


@pytest.mark.parametrize(
    ("given", "environment", "found"),
    [
        (None, {}, None),
        (" given\n", {"FLAKY_ONE": "one"}, "given"),
        (None, {"FLAKY_ONE": " one ", "FLAKY_TWO": "two"}, "one"),
        (" ", {"FLAKY_ONE": "", "FLAKY_TWO": "two\n"}, "two"),
    ],
)
def test_a_key_is_the_one_given_else_the_first_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, given: str | None, environment: dict[str, str], found: str | None
) -> None:
    for name in ("FLAKY_ONE", "FLAKY_TWO"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert flaky(api_key=given).key == found


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (None, "^no key for flaky/model: set FLAKY_ONE or FLAKY_TWO, or pass api_key=$"),
        ("ключ-4711-9090", "^the key for flaky/model has characters outside of ASCII: copy it again$"),
    ],
)
def test_a_provider_that_wants_a_key_gets_one_that_can_be_sent(
    monkeypatch: pytest.MonkeyPatch, key: str | None, said: str
) -> None:
    for name in ("FLAKY_ONE", "FLAKY_TWO"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(AuthFailed, match=said):
        flaky(api_key=key).required_key()
    assert flaky(api_key=f" {KEY}").required_key() == KEY


@pytest.fixture
def files_are_strangers() -> Iterator[None]:
    """As a command reads a run's file: only what its user names is trusted."""
    with also_trusting(("host:trusted.example", "evil", "evil.example")):
        yield


@pytest.mark.parametrize(
    ("settings", "stranger"),
    [
        ({}, None),
        ({"base_url": "https://api.flaky.example/v2"}, None),
        ({"base_url": "http://localhost:8000"}, None),
        ({"base_url": "http://127.0.0.1"}, None),
        ({"base_url": "http://[::1]:8000"}, None),
        ({"base_url": "https://trusted.example"}, None),
        ({"base_url": "https://api.flaky.example@evil.example"}, "evil.example"),
        ({"base_url": "https://trusted.example.evil.example"}, "trusted.example.evil.example"),
        ({"request": {"model_list": [{"litellm_params": {"api_base": "http://evil.example"}}]}}, "evil.example"),
        ({"base_url": "https://evil.example/v1"}, "evil.example"),
        ({"request": {"base_url": "https://evil.example"}}, "evil.example"),
        ({"request": {"api_base": "https://api.flaky.example.evil.example"}}, "api.flaky.example.evil.example"),
    ],
)
def test_a_key_goes_to_its_provider_to_this_machine_and_to_hosts_that_the_user_names(
    files_are_strangers: None, settings: dict[str, Any], stranger: str | None
) -> None:
    chat = flaky(**settings)
    if stranger is None:
        assert chat.complete([], None, max_tokens=1).text == "well"
        return
    for asks in (chat.raise_unless_askable, lambda: chat.complete([], None, max_tokens=1)):
        with pytest.raises(
            AuthFailed, match=rf"would go to {stranger}, which is named only in a file: .* add --trust host:{stranger}$"
        ):
            asks()
    assert chat.asked == 0


@pytest.mark.parametrize(
    "address",
    ["no address", "https:/evil.example", "https://evil.example\\@api.flaky.example", "http://api.flaky.example/v1"],
)
def test_an_address_that_libraries_read_differently_or_that_sends_the_key_in_clear_gets_none(
    files_are_strangers: None, address: str
) -> None:
    chat = flaky(base_url=address)
    with pytest.raises(AuthFailed, match=re.escape(repr(address))):
        chat.complete([], None, max_tokens=1)
    assert chat.asked == 0


@pytest.mark.parametrize(
    ("model", "plain"),
    [
        ("anthropic/claude-haiku-4-5", True),
        ("bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0", True),
        ("vertex_ai/claude-3@20240229", True),
        ("openrouter/deepseek/deepseek-r1:free", True),
        ("huggingface/https://evil.example/x", False),
        ("oobabooga/http:evil.example", False),
        ("bedrock/arn:aws:bedrock:evil.example:1:x/y", False),
        ("gemini/../../x", False),
        ("openai/x?y=z", False),
        ("openai/x\n", False),
    ],
)
def test_a_model_of_litellm_that_may_hold_an_address_is_asked_on_its_users_word_alone(model: str, plain: bool) -> None:
    from engineers.backends.litellm import LiteLLMChat

    chat = LiteLLMChat(model)
    if plain:
        chat.raise_unless_key_may_go()
    else:
        with pytest.raises(AuthFailed, match="named only in a file"):
            chat.raise_unless_key_may_go()
    with also_trusting(("option:engineer.name",)):
        chat.raise_unless_key_may_go()


def test_a_server_without_a_key_may_be_anywhere(files_are_strangers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from engineers.backends.compatible_server import ServerChat

    monkeypatch.delenv("ENGINEERS_SERVER_API_KEY", raising=False)
    chat = ServerChat("http://evil.example/v1#some/model")
    assert (chat.base_url, chat.model_id) == ("http://evil.example/v1", "some/model")
    assert chat.model == "server/http://evil.example/v1#some/model"
    assert chat.required_key() == "none"  # the SDK wants one
    chat.raise_unless_key_may_go()
    monkeypatch.setenv("ENGINEERS_SERVER_API_KEY", KEY)
    assert chat.required_key() == KEY
    with pytest.raises(AuthFailed, match=r"would go to evil.example"):
        chat.raise_unless_key_may_go()


def test_a_key_is_blanked_in_replies_and_in_what_http_libraries_log() -> None:
    chat = flaky(api_key=KEY)
    chat._ask = lambda *_: Completion(f"Your key is {KEY}.", 3, 4)  # type: ignore[method-assign]
    assert chat.complete([], None, max_tokens=1) == Completion(f"Your key is {BLANK}.", 3, 4)
    for name in ("httpx", "httpcore2.http11", "openai._base_client", "LiteLLM"):
        record = logging.LogRecord(name, logging.DEBUG, "x.py", 1, "sent %s to %s", (KEY, "host"), None)
        assert logging.getLogger(name).filter(record)  # it is logged
        assert record.getMessage() == f"sent {BLANK} to host"


# --- the clock


def test_the_sdk_is_loaded_before_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    chat, order = flaky(), []
    monkeypatch.setattr(chat, "_load", lambda: order.append("loaded"))
    monkeypatch.setattr(chat, "_ask", lambda *_: order.append("asked") or Completion("well"))
    chat.complete([], None, max_tokens=1)
    assert order == ["loaded", "asked"]


def test_a_question_that_hangs_is_left_alone_and_holds_up_nothing() -> None:
    end, daemons = threading.Event(), []

    def hang() -> Completion:
        daemons.append(threading.current_thread().daemon)  # so the program can end before it
        end.wait(20)
        return Completion("late")

    with pytest.raises(Timeout, match=r"^no whole reply within 0.05 s: raise timeout, or think and write less$"):
        answered_within(0.05, hang)
    end.set()
    assert daemons == [True]


def test_waits_double_from_half_a_second_to_eight_with_up_to_a_quarter_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = []
    monkeypatch.setattr("engineers.backends.network.random.uniform", lambda *part: parts.append(part) or 0.875)
    waits = [seconds_before_retry(ServerFailed("busy"), attempt) for attempt in (1, 2, 3, 4, 5, 6, 7)]
    assert waits == [0.875 * longest for longest in (0.5, 1, 2, 4, 8, 8, 8)]
    assert set(parts) == {(0.75, 1.0)}


@pytest.mark.parametrize(("asked", "waited"), [(0, 0), (59.5, 59.5), (60, 60), (60.5, None)])
def test_a_minute_is_waited_and_no_more(asked: float, waited: float | None) -> None:
    assert seconds_before_retry(RateLimited("slow down", retry_after=asked), 1) == waited


# --- errors


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (299, Rejected), (300, Rejected), (399, Rejected), (400, Rejected), (401, AuthFailed), (402, Rejected),
        (403, AuthFailed), (404, Rejected), (407, Rejected), (408, ServerFailed), (409, ServerFailed), (410, Rejected),
        (413, TooLong), (414, Rejected), (428, Rejected), (429, RateLimited), (430, Rejected), (499, Rejected),
        (500, ServerFailed), (501, ServerFailed), (599, ServerFailed),
    ],
)  # fmt: skip
def test_every_status_is_one_of_our_errors(status: int, kind: type[ChatError]) -> None:
    error = error_for_status(status, "said\nmore", {"retry-after": "7"})
    assert type(error) is kind
    assert str(error).startswith(f"HTTP {status}: said")
    assert ("to another address" in str(error)) == (300 <= status < 400)
    assert error.retry_after == (7 if kind in (ServerFailed, RateLimited) else None)


def test_a_provider_that_asks_to_wait_is_quoted_with_the_longest_wait() -> None:
    assert str(error_for_status(429, "slow")) == "HTTP 429: slow"
    said = "HTTP 429: slow (asks to wait 7 s, at most 60 are waited)"
    assert str(error_for_status(429, "slow", {"Retry-After": "7"})) == said


@pytest.mark.parametrize(
    "words", ["maximum Context Length is 8", "context_length_exceeded", "The input token count (9)"]
)
def test_a_prompt_that_does_not_fit_is_told_by_its_words(words: str) -> None:
    assert type(error_for_status(400, words)) is TooLong


def test_a_message_is_quoted_by_its_first_line_and_not_for_ever() -> None:
    assert brief("\n  first line\nsecond") == "first line"
    assert brief("x" * 501) == "x" * 500


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("ConnectError", ServerFailed, "the server could not be reached (ConnectError: why)"),
        ("ConnectTimeout", ServerFailed, "the server could not be reached (ConnectTimeout: why)"),
        ("PoolTimeout", ServerFailed, "the server could not be reached (PoolTimeout: why)"),
        ("ProxyError", ServerFailed, "the server could not be reached (ProxyError: why)"),
        ("UnsupportedProtocol", ServerFailed, "the server could not be reached (UnsupportedProtocol: why)"),
        ("ReadTimeout", Timeout, "no reply within 1.5 s: raise timeout, or think and write less"),
        ("WriteTimeout", Timeout, "no reply within 1.5 s: raise timeout, or think and write less"),
        ("ReadError", ConnectionCut, "the connection was cut (ReadError: why)"),
        ("RemoteProtocolError", ConnectionCut, "the connection was cut (RemoteProtocolError: why)"),
    ],
)
def test_an_error_on_the_way_is_told_by_whether_the_question_arrived(
    name: str, kind: type[ChatError], said: str
) -> None:
    """What never reached the provider costs nothing and is asked again; what did may have been billed."""
    error = transport_error(getattr(httpx, name)("why"), 1.5)
    assert (type(error), str(error)) == (kind, said)
    assert error is not None
    assert error.may_be_billed is (kind is not ServerFailed)


def test_an_error_is_found_behind_those_that_an_sdk_wraps_it_in() -> None:
    ours, theirs = TooLong("too much"), httpx.ReadError("why")
    for found, kind in ((ours, TooLong), (theirs, ConnectionCut)):
        raised, handled, deep = ValueError("raised from"), ValueError("raised while"), ValueError("both")
        raised.__cause__, handled.__context__ = found, found
        deep.__cause__ = handled
        for wrapped in (raised, handled, deep):
            assert type(transport_error(wrapped, 1)) is kind
    assert transport_error(ValueError("alone"), 1) is None
    answered = httpx.HTTPStatusError("500", request=httpx.Request("POST", "http://x"), response=httpx.Response(500))
    assert transport_error(answered, 1) is None  # a status is the SDK's to tell


def test_an_sdks_error_for_a_status_goes_before_what_nobody_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = flaky(KeyError("status"), KeyError("other"))
    monkeypatch.setattr(
        chat, "_status_error", lambda error: Rejected("no such model") if "status" in str(error) else None
    )
    for kind, said in ((Rejected, "^no such model$"), (WireBroken, r"wire format \(KeyError: 'other'\)$")):
        with pytest.raises(kind, match=said):
            chat.complete([], None, max_tokens=1)


# --- how a reply is read


def read(body: bytes, most: int, encoding: str | None = None, status: int = 200, pieces: int = 3) -> Any:
    """The reply as an SDK gets it, which came in pieces of so many bytes."""

    class Pieces(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            return (body[start : start + pieces] for start in range(0, len(body), pieces))

    headers = {} if encoding is None else {"Content-Encoding": encoding}
    response = httpx.Response(status, headers=headers, stream=Pieces())
    limit_body(most)(response)
    return response


@pytest.mark.parametrize("status", [200, 503])
@pytest.mark.parametrize(
    ("encoding", "pack"),
    [(None, bytes), ("identity", bytes), ("", bytes), (" GZIP ", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress)],
)  # fmt: skip
def test_a_body_is_read_up_to_its_limit_packed_or_not(encoding: str | None, pack: Any, status: int) -> None:
    body = b"0123456789"
    for pieces in (3, 1000):
        response = read(pack(body), len(body), encoding, status, pieces)
        assert response.read() == body
        assert response.status_code == status
        with pytest.raises(
            TooLong, match=r"^the reply has more than 9 bytes: answer with the JSON alone, or raise max_byt"
        ):
            read(pack(body), len(body) - 1, encoding, status, pieces)


def test_what_follows_the_end_of_a_packed_body_is_not_read() -> None:
    further = []

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield gzip.compress(b"0123456789")
            while len(further) < 100:
                further.append(bytes(65_536))
                yield further[-1]

    response = httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=Endless())
    limit_body(100)(response)
    assert response.read() == b"0123456789"
    assert not further


def test_a_body_packed_otherwise_than_it_says_is_not_read() -> None:
    with pytest.raises(WireBroken, match="'br'"):
        read(b"anything", 100, "br")
    with pytest.raises(WireBroken, match="compression"):
        read(b"anything", 100, "gzip")


def test_a_client_reads_under_the_limit_and_follows_no_redirect() -> None:
    settings = bounded_client(9)
    assert settings["follow_redirects"] is False
    assert settings["headers"] == {"Accept-Encoding": "identity"}
    (hook,) = settings["event_hooks"]["response"]
    with pytest.raises(TooLong):
        hook(httpx.Response(200, stream=httpx.ByteStream(b"0123456789")))
