"""The common part of all providers over a network: one retry rule, one time limit, one size limit, one place for the key.

The SDKs' own retries are switched off: only one of the three honours Retry-After, and stacked retries multiply.
"""

from __future__ import annotations

import email.utils
import inspect
import logging
import os
import random
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pydantic import SecretStr

from engineers.from_file import PLAIN, Allowed
from engineers.model.chat import (
    AuthFailed,
    ChatError,
    Completion,
    ConnectionCut,
    Message,
    RateLimited,
    Rejected,
    ServerFailed,
    Timeout,
    TooLong,
    WireBroken,
)
from engineers.model.engineer import FROM_FILE as ENGINEER
from engineers.redaction import protect, redact
from engineers.shared import own, timeouts

GRACE = 1.0  # seconds; an SDK on a busy machine needs some to end its attempt. One that does not is left alone
LONGEST_WAIT = 60.0  # seconds; a provider that asks for more has failed for now
LONGEST_BACKOFF = 8.0  # seconds between attempts when the provider names no time
# What a file may set. Each provider adds the fields of ``request`` that cannot send a question elsewhere.
FROM_FILE: Allowed = {
    **ENGINEER,
    **dict.fromkeys(("base_url", "temperature", "timeout", "attempts", "max_bytes"), PLAIN),
}
HTTP_LOGGERS = (  # at DEBUG they print a server's reply, and a server may quote the key
    *("httpx", "httpcore.http11", "httpcore.http2", "httpx2", "httpcore2.http11", "httpcore2.http2"),
    *("openai._base_client", "google_genai._api_client", "LiteLLM"),
)
THINKING_ROOM = 16_000  # max_tokens for models that always reason: their thoughts count as part of the answer
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SHOWN = 500  # characters of a provider's message that an error quotes


@dataclass
class NetworkChat(ABC):
    """A model at a provider.

    ``complete`` ends within ``attempts`` × (``timeout`` + ``GRACE``) seconds of asking and ``LONGEST_WAIT`` for each wait
    between. A question that may have been billed (a timeout, a cut connection) is not retried here.
    """

    provider: ClassVar[str]
    key_variables: ClassVar[tuple[str, ...]] = ()
    hosts: ClassVar[tuple[str, ...]] = ()  # the provider's own

    model_id: str  # as the provider names it
    api_key: str | SecretStr | None = field(default=None, repr=False)  # None: from the environment, when asked
    base_url: str | None = None
    temperature: float | None = None  # None: the provider's default (some models take no other)
    seed: int | None = None
    timeout: float = 120.0  # seconds, per attempt
    attempts: int = 3
    max_bytes: int = 2_000_000  # of a reply on the wire
    request: Mapping[str, Any] = field(default_factory=dict, repr=False)  # further fields of the provider's request

    def __post_init__(self) -> None:
        for name in ("timeout", "attempts", "max_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}={getattr(self, name)}: give a value above 0")
        if not self.model_id:
            raise ValueError(f"{self.provider}/: name a model after the slash")
        if self.seed is not None:
            self.seed %= 2**31  # options that all providers take
        if isinstance(self.api_key, str):
            self.api_key = SecretStr(self.api_key)

    @property
    def model(self) -> str:
        return f"{self.provider}/{self.model_id}"

    def __getstate__(self) -> dict[str, Any]:
        """Pickles never hold the key: another process finds it in its environment."""
        return {**self.__dict__, "api_key": None}

    def complete(self, messages: list[Message], schema: dict[str, Any] | None, *, max_tokens: int) -> Completion:
        """One reply, retried while the failure may pass and cost nothing. Raises only ``ChatError``."""
        attempt = 1
        while True:
            reply = self._attempt(messages, schema, max_tokens)
            if isinstance(reply, Completion):
                return reply
            wait = seconds_before_retry(reply, attempt) if attempt < self.attempts else None
            if wait is None:
                raise reply
            time.sleep(wait)
            attempt += 1

    def _attempt(
        self, messages: list[Message], schema: dict[str, Any] | None, max_tokens: int
    ) -> Completion | ChatError:
        """Ask once. A failure is returned and not raised, so that no traceback leads to an SDK's objects with the key."""
        protect(self.key)
        keep_keys_out_of_logs()
        try:
            self.raise_unless_key_may_go()  # the key is looked for in ``_ask``
            self._load()
            reply = answered_within(self.timeout + GRACE, lambda: self._ask(messages, schema, max_tokens))
        except Exception as error:  # SDKs also leak errors of their HTTP and JSON libraries
            failure = transport_error(error, self.timeout) or self._status_error(error) or undocumented(error)
            return type(failure)(str(failure), failure.spent, failure.retry_after)
        return replace(reply, text=redact(reply.text))

    @property
    def key(self) -> str | None:
        """The provider's key without the white space that files and secret stores add, or None."""
        given = self.api_key.get_secret_value() if isinstance(self.api_key, SecretStr) else None
        found = (given, *(os.environ.get(name) for name in self.key_variables))
        return next((key.strip() for key in found if key and key.strip()), None)

    def raise_unless_askable(self) -> None:
        """Raise ``AuthFailed`` if a question would be refused for its key or its host. Asks nothing."""
        self.raise_unless_key_may_go()
        self.required_key()

    def raise_unless_key_may_go(self) -> None:
        """Raises ``AuthFailed`` if the key would go to a host that only a run's file names."""
        for address in filter(None, (self.base_url, *addresses_in(self.request))):
            self._raise_unless_trusted(str(address))

    def _raise_unless_trusted(self, address: str) -> None:
        host = own.host_of(address)
        if host is None:
            raise AuthFailed(
                f"the key for {self.model} would go to {address!r:.200}, which is named only in a file: "
                "write a plain address, https://host/path"
            )
        if host in self.hosts and address.lower().startswith("http:"):
            raise AuthFailed(f"the key for {self.model} would go to {address!r:.200} unencrypted: write https://{host}")
        if host not in (*self.hosts, *LOOPBACK) and not own.is_trusted_host(host):
            raise AuthFailed(
                f"the key for {self.model} would go to {host}, which is named only in a file: if you trust that host, "
                f"add --trust {own.HOST}{host}"
            )

    def required_key(self) -> str | None:
        """The key, or ``AuthFailed`` that says where to put one. None: the backend's SDK looks for it by itself."""
        if self.key is None:
            raise AuthFailed(f"no key for {self.model}: set {' or '.join(self.key_variables)}, or pass api_key=")
        if not self.key.isascii():
            raise AuthFailed(f"the key for {self.model} has characters outside of ASCII: copy it again")
        return self.key

    @property
    def is_foreign(self) -> bool:
        """Whether questions go to a host other than the provider's own."""
        return self.base_url is not None and own.host_of(self.base_url) not in self.hosts

    @abstractmethod
    def _load(self) -> None:
        """Import the SDK, which takes seconds the first time, before the clock of an attempt runs."""

    @abstractmethod
    def _ask(self, messages: list[Message], schema: dict[str, Any] | None, max_tokens: int) -> Completion:
        """One request by the provider's SDK, without retries; its errors are translated."""

    @abstractmethod
    def _status_error(self, error: Exception) -> ChatError | None:
        """The SDK's error for an HTTP status as one of ours; None for any other."""


def question_for(ask: Callable[..., Any], own_fields: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """All fields of a question to an SDK's function. Raises ``Rejected``, before anything is sent, if it does not take them."""
    if twice := own_fields.keys() & request.keys():
        raise Rejected(f"`request` has {', '.join(sorted(twice))}, which every question has already: leave it out")
    try:
        inspect.signature(ask).bind(**own_fields, **request)
    except TypeError as error:
        raise not_taken(error) from None
    return {**own_fields, **request}


def not_taken(why: object) -> Rejected:
    return Rejected(f"the provider's SDK does not take this `request` ({why}): correct that field, or leave it out")


def addresses_in(value: Any) -> Iterator[str]:
    """Every text in a request's fields, however deep, that looks like an address."""
    if isinstance(value, str) and "://" in value:
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from addresses_in(inner)


def answered_within(seconds: float, ask: Callable[[], Completion]) -> Completion:
    """Return or raise what ``ask`` does; raise ``Timeout`` if it takes longer. Its thread then ends by itself.

    The SDKs' own timeouts count from byte to byte, so a reply that arrives slowly would never time out.
    """
    try:
        return timeouts.run_with_timeout(seconds, "question", ask)
    except timeouts.NotEnded:
        raise Timeout(f"no whole reply within {seconds:g} s: raise timeout, or think and write less") from None


def seconds_before_retry(failure: ChatError, attempt: int) -> float | None:
    """Seconds to wait before the next attempt: the provider's wish, or else doubling; None for no further attempt."""
    if not failure.transient or failure.may_be_billed:
        return None
    if failure.retry_after is not None:
        return failure.retry_after if failure.retry_after <= LONGEST_WAIT else None
    return min(0.25 * 2**attempt, LONGEST_BACKOFF) * random.uniform(0.75, 1.0)


def error_for_status(status: int, message: str, headers: Mapping[str, str] | None = None) -> ChatError:
    """An HTTP status as one of our errors."""
    answer = f"HTTP {status}: {brief(message)}"
    retry_after = _retry_after(headers or {})
    if 300 <= status < 400:
        return Rejected(
            f"{answer} (it sends the question to another address: no question goes where you did not send it)"
        )
    if status in (401, 403):
        return AuthFailed(f"{answer} (is the key right, and may it use this model?)")
    if status == 429:
        asks = "" if retry_after is None else f" (asks to wait {retry_after:g} s, at most {LONGEST_WAIT:g} are waited)"
        return RateLimited(answer + asks, retry_after=retry_after)
    if status >= 500 or status in (408, 409):
        return ServerFailed(answer, retry_after=retry_after)
    if status == 413 or any(words in message.lower() for words in ("context length", "context_length", "token count")):
        return TooLong(answer)
    return Rejected(answer)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the provider asks us to wait, from a number or a date; None if it does not ask."""
    asked = headers.get("retry-after") or headers.get("Retry-After")
    if asked is None:
        return None
    try:
        seconds = float(asked)
    except ValueError:
        seconds = _seconds_until(asked)
    return max(seconds, 0.0) if seconds == seconds else None  # not a number: ignored


def _seconds_until(date: str) -> float:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp() - time.time()
    except ValueError:
        return float("nan")


def bounded_client(max_bytes: int, send: Callable[[Any], None] | None = None) -> dict[str, Any]:
    """Arguments for httpx and httpx2 clients: bodies under a limit, and no redirects. ``send`` may change a request."""
    return {
        "event_hooks": {"request": [send] if send else [], "response": [limit_body(max_bytes)]},
        # Answers are short, so we ask for no compression; compressed replies are read, too.
        "headers": {"Accept-Encoding": "identity"},
        "follow_redirects": False,
    }


def only_with(**key: str) -> Callable[[Any], None]:
    """A request hook: no header but those that a question needs, and ``key``, whose names are written with underscores.

    SDKs add headers from environment variables, such as an organisation or another key, which are meant for the provider's own host.
    """

    def send(request: Any) -> None:
        length = request.headers.get("content-length")
        request.headers.clear()
        request.headers.update(
            {
                "Host": request.url.netloc.decode("ascii"),
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "Content-Type": "application/json",
                "User-Agent": "engineers",
                **{name.replace("_", "-"): value for name, value in key.items()},
                **({} if length is None else {"Content-Length": length}),
            }
        )

    return send


def limit_body(max_bytes: int) -> Any:
    """A response hook: reads the body, unpacked, under a limit, else raises ``TooLong``."""

    def read_within_limit(response: Any) -> None:
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        if packed not in ("identity", "", "gzip", "x-gzip", "deflate"):
            raise WireBroken(
                f"the reply is compressed as {packed[:40]!r}: send it with gzip, deflate or no compression"
            )
        unpack = None if packed in ("identity", "") else zlib.decompressobj(wbits=47)
        body = bytearray()
        for chunk in response.stream:  # as it comes off the wire
            body += chunk if unpack is None else _unpacked(unpack, chunk, max_bytes + 1)
            if len(body) > max_bytes:
                raise TooLong(
                    f"the reply has more than {max_bytes} bytes: answer with the JSON alone, or raise max_bytes"
                )
            if unpack is not None and unpack.eof:
                break  # further bytes are not part of the reply, and zlib would keep all of them
        if unpack is not None:
            del response.headers["content-encoding"]
        response.stream = type(response)(response.status_code, content=bytes(body)).stream

    return read_within_limit


def _unpacked(unpack: Any, chunk: bytes, most: int) -> bytes:
    """At most this many bytes of an unpacked chunk."""
    try:
        return unpack.decompress(chunk, most)
    except zlib.error as error:
        raise WireBroken(f"the reply's compression differs from its header ({error})") from None


def keep_keys_out_of_logs() -> None:
    """Blank keys in the HTTP libraries' logs from now on."""
    for name in HTTP_LOGGERS:
        logging.getLogger(name).addFilter(_blank_keys)  # adding the same filter twice has no effect


def _blank_keys(record: logging.LogRecord) -> bool:
    record.msg, record.args = redact(record.getMessage()), None
    return True


def transport_error(error: BaseException, timeout: float) -> ChatError | None:
    """The error that an SDK wrapped: one of ours, or one of httpx or httpx2 (which have the same names); else None."""
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, ChatError):
            return behind
        if type(behind).__module__.split(".")[0] in ("httpx", "httpx2") and type(behind).__name__ != "HTTPStatusError":
            return _connection_error(behind, timeout)
        behind = behind.__cause__ or behind.__context__
    return None


def _connection_error(error: BaseException, timeout: float) -> ChatError:
    failure = f"{type(error).__name__}: {brief(str(error))}"
    if type(error).__name__ in ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"):
        return ServerFailed(f"the server could not be reached ({failure})")
    if "Timeout" in type(error).__name__:
        return Timeout(f"no reply within {timeout:g} s: raise timeout, or think and write less")
    return ConnectionCut(f"the connection was cut ({failure})")


def undocumented(error: Exception) -> WireBroken:
    """The error for a reply that is not in the provider's wire format. SDKs do not document their errors for it."""
    return WireBroken(f"the reply is not in the provider's wire format ({type(error).__name__}: {brief(str(error))})")


def brief(message: str) -> str:
    """The first line, not too long: SDKs put whole tracebacks into messages."""
    return message.strip().partition("\n")[0][:SHOWN]
