"""Replies that mean harm: packed to explode, sent elsewhere, counted absurdly."""

from __future__ import annotations

import gzip
import json
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any

import pytest

import engineers
from engineers.model.chat import Completion, Rejected, Timeout, TooLong, WireBroken
from engineers.model.meter import Meter, Price

ASK: list[Any] = [{"role": "user", "content": "hello"}]
Answer = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def server() -> Iterator[Any]:
    """server(answer) is the address of one that answers every question so; it remembers what it was asked."""
    running: list[ThreadingHTTPServer] = []

    def start(answer: Answer) -> ThreadingHTTPServer:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.server.asked.append(self.rfile.read(int(self.headers["Content-Length"])))
                answer(self)

            do_GET = do_POST

            def log_message(self, *_: object) -> None: ...

        one = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        one.asked = []
        one.url = f"http://127.0.0.1:{one.server_address[1]}"
        threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        running.append(one)
        return one

    yield start
    for one in running:
        one.shutdown()
        one.server_close()


def chats(url: str) -> list[Any]:
    """One of each wire, litellm's two kinds of client included."""
    if any(find_spec(name) is None for name in ("openai", "litellm")):
        pytest.skip("needs openai and litellm: pip install 'mapf-frozenlake[openai,litellm]'")
    options = {"timeout": 60.0, "attempts": 1}
    keyed = options | {"api_key": "planted-0123"}
    return [
        engineers.make(f"server/{url}/v1#m", **options).chat,
        engineers.make("gemini/x", base_url=url, **keyed).chat,
        engineers.make("litellm/openai/x", base_url=f"{url}/v1", **keyed).chat,
        engineers.make("litellm/anthropic/x", base_url=url, **keyed).chat,
    ]


def send(handler: BaseHTTPRequestHandler, data: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in ({"Content-Type": "application/json", "Content-Length": str(len(data))} | headers).items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """300 kB that unpack to 300 MB."""
    pack = zlib.compressobj(9, wbits=31)
    return b"".join([pack.compress(b" " * 1_000_000) for _ in range(300)] + [pack.flush()])


def test_a_packed_reply_is_unpacked_to_its_limit_and_no_further(server, bomb):
    one = server(lambda handler: send(handler, bomb, Content_Encoding="gzip"))
    others = chats(one.url)
    for chat in others[2:]:  # litellm loads more than the limit while it reports an error
        with pytest.raises(TooLong, match="more than 2000000 bytes"):
            chat.complete(ASK, None, max_tokens=10)
    for chat in others[:2]:
        chat._load()  # the SDK itself takes tens of megabytes
        tracemalloc.start()
        with pytest.raises(TooLong, match="more than 2000000 bytes"):
            chat.complete(ASK, None, max_tokens=10)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 60e6


def test_a_packed_reply_of_a_decent_size_is_read(server):
    reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": None}
    message = {"role": "assistant", "content": "packed"}
    body = json.dumps(reply | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    for encoding, packed in (("gzip", gzip.compress(body)), ("deflate", zlib.compress(body)), ("identity", body)):
        one = server(lambda handler, packed=packed, encoding=encoding: send(handler, packed, Content_Encoding=encoding))
        assert chats(one.url)[0].complete(ASK, None, max_tokens=10).text == "packed"
    for encoding in ("br", "zstd", "gzip"):
        one = server(lambda handler, encoding=encoding: send(handler, b"not packed", Content_Encoding=encoding))
        with pytest.raises(WireBroken, match="compress"):
            chats(one.url)[0].complete(ASK, None, max_tokens=10)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_question_follows_a_redirect(server, status):
    elsewhere = server(lambda handler: send(handler, b"{}"))
    one = server(lambda handler: send(handler, b"{}", status, Location=f"{elsewhere.url}/v1/chat/completions"))
    for chat in chats(one.url):
        with pytest.raises(Rejected, match=f"HTTP {status}.*to another address"):
            chat.complete(ASK, None, max_tokens=10)
    assert len(one.asked) == len(chats(one.url))
    assert elsewhere.asked == []


@pytest.mark.parametrize(
    "absurd", [-1_000_000, 1e308, float("inf"), float("nan"), "many", 10**30, True, None, [1], 1.5]
)
def test_an_absurd_count_is_the_worst_case(absurd):
    meter = Meter(price=Price(1.0, 1.0))
    meter.reserve("m", ASK, None, 50)
    worst = meter.worst
    estimated = absurd is None or absurd is False
    for kind in ("record", "failure"):
        answer = Completion("short", absurd, absurd, cost=absurd if kind == "record" else None)
        if kind == "record":
            prompt, completion, cost = meter.record("m", ASK, answer)
        else:
            prompt, completion, cost = meter.record_failure("m", TooLong("cut", spent=answer))
        assert (prompt, completion) == worst or estimated
        assert cost is not None
        assert 0 <= cost < 2
        json.dumps([prompt, completion, cost], allow_nan=False)
    assert 0 < meter.tokens < 1_000


def test_what_was_never_answered_is_charged_to_the_cap_and_not_shown_as_used():
    class Dead:
        model = "local/dead"

        def complete(self, messages: Any, schema: Any, *, max_tokens: int) -> Completion:
            raise Timeout("gone")

    engineer = engineers.ModelEngineer(Dead(), max_tokens=100)
    exchange = engineer.exchange(0, 0, "proposal", ASK, None)
    assert (exchange.prompt_tokens, exchange.completion_tokens, exchange.cost) == (0, 0, 0.0)
    assert engineer.meter.tokens == sum(engineer.meter.worst) > 100
