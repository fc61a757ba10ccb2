"""What the small server reads and answers, field by field; who may ask it; and how it starts and ends."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from engineers.backends import serve
from engineers.backends.serve import BadRequest, completion_for, make_server, serve_until_interrupted
from engineers.model.chat import Completion, Message, TooLong

ASKED: list[Any] = [{"role": "user", "content": "hello"}]


class Echo:
    """A chat that says what it was given."""

    model = "echo"

    def complete(self, messages: list[Message], schema: dict[str, Any] | None, *, max_tokens: int) -> Completion:
        if messages[-1]["content"] == "nothing came":
            raise TooLong("the prompt does not fit")
        return Completion(json.dumps([messages, schema, max_tokens]), 30, 4)


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    server = make_server(Echo())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_address[:2]  # type: ignore[misc]
    server.shutdown()
    server.server_close()
    thread.join()


def ask(
    address: tuple[str, int], method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON of the answer."""
    connection = HTTPConnection(*address, timeout=20)
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    read = reply.status, dict(reply.getheaders()), json.loads(reply.read())
    connection.close()
    return read


def test_an_answer_is_a_whole_chat_completion(address: tuple[str, int]) -> None:
    before = int(time.time())
    body = json.dumps({"messages": ASKED, "max_tokens": 5}).encode()
    status, headers, reply = ask(address, "POST", "/v1/chat/completions/", body)
    assert status == 200
    assert headers["Content-Type"] == "application/json"
    assert int(headers["Content-Length"]) == len(json.dumps(reply))
    assert re.fullmatch("chatcmpl-[0-9a-f]+", reply.pop("id"))
    assert before <= reply.pop("created") <= time.time()
    message = {"role": "assistant", "content": json.dumps([ASKED, None, 5])}
    assert reply == {
        "object": "chat.completion",
        "model": "local",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34},
    }


def test_the_list_of_models_and_every_error_have_their_status_and_form(address: tuple[str, int]) -> None:
    status, _, reply = ask(address, "GET", "/v1/models/")
    assert status == 200
    assert reply == {"object": "list", "data": [{"id": "local", "object": "model", "owned_by": "local"}]}
    said = "no such path: /v1/engines"
    error = {"error": {"message": said, "type": "invalid_request_error", "code": None}}
    for method in ("GET", "POST"):
        assert ask(address, method, "/v1/engines")[::2] == (404, error)
        status, _, reply = ask(address, method, "/v1/models", Host="evil.example")
        assert status == 403
        assert reply["error"]["message"].startswith("Host is 'evil.example': this server answers to localhost")


LARGE = 4_000_000


@pytest.mark.parametrize(
    ("length", "body", "said"),
    [
        (None, b"", f"a request of 0 bytes: send between 1 and {LARGE}, with Content-Length"),
        ("0", b"", f"a request of 0 bytes: send between 1 and {LARGE}, with Content-Length"),
        ("1", b"7", "send a JSON object"),
        (str(LARGE + 1), b"", f"a request of {LARGE + 1} bytes: send between 1 and {LARGE}, with Content-Length"),
        ("9" * 13, b"", "Content-Length is '9999999999999': give a number of bytes"),
        ("²", b"", "Content-Length is '²': give a number of bytes"),
        ("1e3", b"", "Content-Length is '1e3': give a number of bytes"),
        ("-5", b"", "Content-Length is '-5': give a number of bytes"),
    ],
)
def test_the_length_of_a_request_is_checked(
    address: tuple[str, int], length: str | None, body: bytes, said: str
) -> None:
    head = f"POST /v1/chat/completions HTTP/1.1\r\n{'' if length is None else f'Content-Length: {length}'}\r\n\r\n"
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(head.replace("\r\n\r\n\r\n", "\r\n\r\n").encode("latin-1") + body)
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.0 400 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"] == said


def test_a_request_that_does_not_come_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "SOCKET_TIMEOUT", 0.2)
    server = make_server(Echo())
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    with socket.create_connection(server.server_address[:2], timeout=20) as connection:  # type: ignore[arg-type]
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 9\r\n\r\n{")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    server.shutdown()
    server.server_close()
    assert answer.startswith(b"HTTP/1.0 408 ")
    assert b"no whole request within 0.2 s: send it at once" in answer


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        ({}, 4096),
        ({"max_tokens": 1}, 1),
        ({"max_completion_tokens": 2}, 2),
        ({"max_tokens": 1, "max_completion_tokens": 2}, 1),
        ({"max_tokens": None, "max_completion_tokens": 2}, 2),
    ],
)
def test_a_reply_has_the_tokens_that_the_request_allows(limits: dict[str, Any], allowed: int) -> None:
    reply = completion_for(Echo(), {"messages": ASKED, **limits})
    assert json.loads(reply["choices"][0]["message"]["content"]) == [ASKED, None, allowed]


@pytest.mark.parametrize("limit", [0, -1, True, False, 1.5, "7", [7]])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        with pytest.raises(BadRequest, match=rf"^max_tokens={re.escape(repr(limit))}: give a whole number above 0$"):
            completion_for(Echo(), {"messages": ASKED, name: limit})


@pytest.mark.parametrize(
    ("wanted", "schema"),
    [
        (None, None),
        ({}, None),
        ({"type": "text"}, None),
        ({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}, {"type": "object"}),
        ({"type": "json_schema", "json_schema": {"schema": None}}, BadRequest),
        ({"type": "json_schema"}, BadRequest),
        ({"type": "json_object"}, BadRequest),
        ({"json_schema": {"schema": {"type": "object"}}}, BadRequest),
        ("text", BadRequest),
    ],
)
def test_the_form_of_a_reply_is_a_schema_or_free(wanted: Any, schema: Any) -> None:
    request = {"messages": ASKED, "response_format": wanted}
    if schema is BadRequest:
        with pytest.raises(BadRequest, match="response_format: give"):
            completion_for(Echo(), request)
    else:
        assert json.loads(completion_for(Echo(), request)["choices"][0]["message"]["content"])[1] == schema


@pytest.mark.parametrize(
    "messages", [None, "hello", {"role": "user"}, [], [None], [{"role": "user"}], [{"content": "x"}]]
)
def test_messages_are_a_list_of_roles_and_texts(messages: Any) -> None:
    with pytest.raises(BadRequest, match=r"messages|role=None"):
        completion_for(Echo(), {"messages": messages})


def test_a_question_without_any_reply_is_an_error_and_no_empty_answer() -> None:
    with pytest.raises(TooLong, match="the prompt does not fit"):
        completion_for(Echo(), {"messages": [{"role": "user", "content": "nothing came"}]})


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({}, None),
        ({"Host": "LOCALHOST:8000"}, None),
        ({"Host": "box.lan"}, None),
        ({"Host": "192.168.0.7:8000"}, None),
        ({"Host": "[::1]:8000"}, None),
        ({"Host": "box.lan.evil.example"}, "Host"),
        ({"Host": ""}, "Host"),
        ({"Host": "["}, "Host"),
        ({"Origin": "http://localhost:3000"}, None),
        ({"Origin": "http://box.lan"}, None),
        ({"Origin": "http://127.0.0.1:3000"}, None),
        ({"Origin": "http://[::1]:3000"}, None),
        ({"Origin": "http://192.168.0.7"}, "Origin"),
        ({"Origin": "https://evil.example"}, "Origin"),
        ({"Origin": "null"}, "Origin"),
        ({"Host": "evil.example", "Origin": "http://localhost"}, "Host"),
        ({"Host": "localhost", "Origin": "https://evil.example"}, "Origin"),
    ],
)
def test_only_pages_of_this_machine_may_ask(headers: dict[str, str], named: str | None) -> None:
    """A server at box.lan: any address of numbers may be its own, but a page at another one is another's."""
    said = serve._stranger(headers, "Box.lan")
    assert said is None if named is None else said is not None and said.startswith(f"{named} is {headers[named]!r}: ")


@pytest.mark.parametrize("begun", [b"", b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: 100\r\n\r\n{"])
def test_silent_connections_give_their_places_to_who_asks(address, monkeypatch, begun) -> None:
    """They filled every place for a minute each, and for ever where a byte came now and then."""
    monkeypatch.setattr(serve, "MOST_CONNECTIONS", 3)
    silent = [socket.create_connection(address) for _ in range(6)]
    try:
        for connection in silent:
            connection.sendall(begun)
        for _ in range(3):
            assert ask(address, "GET", "/v1/models")[0] == 200
        connection = silent[0]
        connection.settimeout(10)
        assert connection.recv(1) == b""  # the first to come was the first to go
    finally:
        for connection in silent:
            connection.close()


def hung_up_on(address: Any) -> bool:
    """Whether a new connection is closed without an answer."""
    with socket.create_connection(address, timeout=10) as connection:
        try:
            connection.sendall(b"GET /v1/models HTTP/1.0\r\n\r\n")
            return connection.recv(1) == b""
        except ConnectionError:
            return True


def test_a_question_that_is_being_answered_keeps_its_place(monkeypatch) -> None:
    monkeypatch.setattr(serve, "MOST_CONNECTIONS", 1)
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Echo):
        def complete(self, messages: list[Message], schema: dict[str, Any] | None, *, max_tokens: int) -> Completion:
            begun.set()
            assert go_on.wait(20)
            return super().complete(messages, schema, max_tokens=max_tokens)

    with make_server(Slow()) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        statuses: list[int] = []
        body = json.dumps({"messages": ASKED}).encode()
        asking = threading.Thread(
            target=lambda: statuses.append(ask(server.server_address, "POST", "/v1/chat/completions", body)[0])
        )
        asking.start()
        assert begun.wait(20)
        assert hung_up_on(server.server_address)
        go_on.set()
        asking.join(20)
        server.shutdown()
    assert statuses == [200]


def test_two_servers_take_two_free_ports_and_a_thread_that_cannot_start_gives_its_place_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve, "MOST_CONNECTIONS", 2)

    def no_more_threads(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadingHTTPServer, "process_request", no_more_threads)
    with make_server(Echo()) as one, make_server(Echo()) as other:
        assert one.server_address[0] == other.server_address[0] == "127.0.0.1"
        assert one.server_address[1] != other.server_address[1]
        for _ in range(5):  # of two places
            with pytest.raises(RuntimeError, match="can't start new thread"):
                one.process_request(None, None)


def test_it_says_how_to_ask_before_it_answers_and_ends_with_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    served: list[str] = []

    def interrupted(_: ThreadingHTTPServer) -> None:
        served.append(said.read_text())  # what a program that started it can read by now
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", interrupted)
    with said.open("w") as out:
        monkeypatch.setattr("sys.stdout", out)
        serve_until_interrupted(Echo(), "127.0.0.1", 0)
    assert len(served) == 1
    assert re.fullmatch(r"listening; ask it as  server/http://127\.0\.0\.1:\d+/v1#local\n", served[0])
    assert said.read_text() == served[0] + "stopped\n"
