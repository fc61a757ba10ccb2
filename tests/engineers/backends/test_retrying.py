"""When a provider is asked again: what it asks to wait for, what passes by itself, and what may have been billed."""

from __future__ import annotations

import email.utils
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engineers.backends import network
from engineers.backends.network import (
    LONGEST_BACKOFF,
    NetworkChat,
    error_for_status,
    seconds_before_retry,
)
from engineers.model.chat import (
    AuthFailed,
    ChatError,
    Completion,
    ConnectionCut,
    Message,
    RateLimited,
    Refused,
    Rejected,
    ServerFailed,
    Timeout,
    TooLong,
    WireBroken,
)

BILLED = (Timeout, ConnectionCut, WireBroken, Refused, TooLong)


class Flaky(NetworkChat):
    """A provider that fails as it is told, then answers."""

    provider = "flaky"

    def __init__(self, *failures: Exception, attempts: int = 3) -> None:
        super().__init__("model", attempts=attempts)
        self.failures, self.asked = list(failures), 0

    def _load(self) -> None:
        """There is no SDK."""

    def _ask(self, messages: list[Message], schema: dict[str, Any] | None, max_tokens: int) -> Completion:
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0)
        return Completion("well")

    def _status_error(self, error: Exception) -> ChatError | None:
        return None


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited, instead of waiting."""
    waited: list[float] = []
    monkeypatch.setattr(network.time, "sleep", waited.append)
    return waited


def test_what_passes_by_itself_is_asked_again_with_growing_waits(waits: list[float]) -> None:
    chat = Flaky(*[ServerFailed("busy")] * 6, attempts=9)
    assert chat.complete([], None, max_tokens=1).text == "well"
    assert chat.asked == 7
    for wait, longest in zip(waits, (0.5, 1, 2, 4, 8, 8), strict=True):
        assert 0.75 * longest <= wait <= min(longest, LONGEST_BACKOFF)


def test_the_provider_says_how_long_to_wait(waits: list[float]) -> None:
    chat = Flaky(RateLimited("slow down", retry_after=7), ServerFailed("busy", retry_after=0))
    assert chat.complete([], None, max_tokens=1).text == "well"
    assert waits == [7, 0]


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_attempts_are_counted(waits: list[float], attempts: int) -> None:
    chat = Flaky(*[ServerFailed("busy")] * 9, attempts=attempts)
    with pytest.raises(ServerFailed):
        chat.complete([], None, max_tokens=1)
    assert chat.asked == attempts
    assert len(waits) == attempts - 1


@pytest.mark.parametrize("failure", [*BILLED, AuthFailed, Rejected], ids=lambda kind: kind.__name__)
def test_what_may_be_billed_or_cannot_pass_is_asked_once(waits: list[float], failure: type[ChatError]) -> None:
    chat = Flaky(failure("no"))
    with pytest.raises(failure):
        chat.complete([], None, max_tokens=1)
    assert chat.asked == 1
    assert waits == []
    assert failure.may_be_billed is (failure in BILLED)


@pytest.mark.parametrize("error", [KeyError("choices"), ValueError("x" * 10_000), RecursionError("deep")])
def test_what_an_sdk_stumbles_over_is_one_of_our_errors(error: Exception) -> None:
    with pytest.raises(WireBroken, match="not in the provider's wire format") as caught:
        Flaky(error).complete([], None, max_tokens=1)
    assert len(str(caught.value)) < 1000


@given(status=st.integers(400, 599), message=st.text())
def test_every_status_has_its_error(status: int, message: str) -> None:
    error = error_for_status(status, message)
    assert str(error).startswith(f"HTTP {status}")
    assert "\n" not in str(error)
    assert error.transient is (status in (408, 409, 429) or status >= 500)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("3", 3), ("0.5", 0.5), ("-4", 0), ("nan", None), ("soon", None), ("", None), ("Tue, 99 Foo", None)],
)
def test_retry_after_is_read_or_ignored(said: str, seconds: float | None) -> None:
    assert error_for_status(429, "slow", {"retry-after": said}).retry_after == seconds


def test_retry_after_may_be_a_date() -> None:
    in_a_minute = email.utils.formatdate(time.time() + 60, usegmt=True)
    seconds = error_for_status(503, "busy", {"Retry-After": in_a_minute}).retry_after
    assert seconds == pytest.approx(60, abs=5)


def test_infinite_waits_are_not_waited() -> None:
    assert seconds_before_retry(error_for_status(429, "slow", {"retry-after": "inf"}), 1) is None


def test_importing_an_sdk_is_not_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = Flaky()
    chat.timeout = 0.01
    monkeypatch.setattr(network, "GRACE", 0.1)
    monkeypatch.setattr(chat, "_load", lambda: time.sleep(0.3))
    assert chat.complete([], None, max_tokens=1).text == "well"
