"""A small OpenAI-compatible server for one local model: ``python -m engineers serve --model FOLDER-OR-NAME``.

It is for local use, not for the internet: one question at a time, no keys, loopback by default. Unlike larger servers,
it enforces every part of ``response_format``, bounds included, with any weights. Ask it as
``server/http://127.0.0.1:8000/v1#local``.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from engineers.model.chat import Chat, ChatError, Completion, Message, TooLong

MAX_REQUEST = 4_000_000  # bytes
SOCKET_TIMEOUT = 60  # seconds without a byte
MOST_CONNECTIONS = 32
MAX_TOKENS = 4_096  # of a reply, where the request names no limit
MODEL = "local"


class BadRequest(ValueError):
    """The request is not one that this server understands."""


def make_server(chat: Chat, host: str = "127.0.0.1", port: int = 0) -> ThreadingHTTPServer:
    """A server for this chat, not yet running; port 0 takes a free one (``server.server_address``)."""
    one_at_a_time = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        timeout = SOCKET_TIMEOUT
        server: _Server

        def do_GET(self) -> None:
            if (stranger := _stranger(self.headers, host)) is not None:
                return self._send(403, _error(stranger))
            if self.path.rstrip("/") != "/v1/models":
                return self._send(404, _error(f"no such path: {self.path}"))
            self._send(200, {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "local"}]})

        def do_POST(self) -> None:
            if (stranger := _stranger(self.headers, host)) is not None:
                return self._send(403, _error(stranger))
            if self.path.rstrip("/") != "/v1/chat/completions":
                return self._send(404, _error(f"no such path: {self.path}"))
            try:
                request = self._read()
                self.server.has_asked(self.connection)
                with one_at_a_time:
                    reply = completion_for(chat, request)
            except (BadRequest, ChatError) as error:
                return self._send(400, _error(str(error)))
            except TimeoutError:
                return self._send(408, _error(f"no whole request within {SOCKET_TIMEOUT} s: send it at once"))
            except (
                Exception
            ) as error:  # a model's own code may raise any error; the server continues with the next question
                return self._send(500, _error(f"the server failed ({type(error).__name__}: {error})"))
            self._send(200, reply)

        def _read(self) -> dict[str, Any]:
            length_header = self.headers.get("Content-Length", "0")
            if re.fullmatch("[0-9]{1,12}", length_header) is None:
                raise BadRequest(f"Content-Length is {length_header[:40]!r}: give a number of bytes")
            length = int(length_header)
            if not 0 < length <= MAX_REQUEST:
                raise BadRequest(f"a request of {length} bytes: send between 1 and {MAX_REQUEST}, with Content-Length")
            try:
                request = json.loads(self.rfile.read(length))
            except (ValueError, RecursionError) as error:
                raise BadRequest(f"not JSON: {error}") from None
            if not isinstance(request, dict):
                raise BadRequest("send a JSON object")
            return request

        def _send(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Silent: requests hold prompts."""

    return _Server((host, port), Handler)


class _Server(ThreadingHTTPServer):
    """Limits the number of connections. A further one replaces the one that has been silent longest; without a silent one, it is closed."""

    def __init__(self, *arguments: Any) -> None:
        self.asked: dict[Any, bool] = {}  # whether a connection's whole question has come; the oldest connection first
        self.changing = threading.Lock()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.changing:
            if len(self.asked) >= MOST_CONNECTIONS:
                silent = next((other for other, asked in self.asked.items() if not asked), None)
                if silent is None:
                    return self.shutdown_request(request)
                del self.asked[silent]
                with suppress(OSError):  # its client has hung up
                    silent.shutdown(socket.SHUT_RDWR)  # its thread wakes up, and closes it
            self.asked[request] = False
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.asked.pop(request, None)
            raise

    def has_asked(self, request: Any) -> None:
        with self.changing:
            if request in self.asked:
                self.asked[request] = True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.asked.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing, because a client that hangs up is not an error of the server."""


def _stranger(headers: Any, host: str) -> str | None:
    """Why a request from a page of another origin is refused; None for every other request.

    A web page may send questions to a server on its reader's machine: from its own origin, or under a host name that it lets
    point here. A numeric address cannot be such a name.
    """
    allowed = {"localhost", host.lower()}
    for field, address in (("Host", f"//{headers.get('Host', 'localhost')}"), ("Origin", headers.get("Origin"))):
        if address is None:
            continue
        try:
            name = urlsplit(address).hostname
        except ValueError:
            name = None
        known = name in allowed or (_is_number(name) if field == "Host" else name in ("127.0.0.1", "::1"))
        if not known:
            return f"{field} is {address.removeprefix('//')[:60]!r}: this server answers to localhost, its own host and plain addresses"
    return None


def _is_number(name: str | None) -> bool:
    try:
        ipaddress.ip_address(name or "no name")
    except ValueError:
        return False
    return True


def completion_for(chat: Chat, request: dict[str, Any]) -> dict[str, Any]:
    """The chat.completions reply to a chat.completions request. Raises ``BadRequest`` or ``ChatError``."""
    named = (request.get("max_tokens"), request.get("max_completion_tokens"), MAX_TOKENS)
    limit = next(limit for limit in named if limit is not None)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit <= 0:
        raise BadRequest(f"max_tokens={limit!r}: give a whole number above 0")
    if request.get("stream"):
        raise BadRequest("stream=true is not supported: ask without it")
    finish = "stop"
    try:
        completion = chat.complete(_messages(request), _schema(request), max_tokens=limit)
    except TooLong as error:
        if error.spent is None:
            raise
        completion, finish = error.spent, "length"
    return _reply(completion, finish)


def _messages(request: dict[str, Any]) -> list[Message]:
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages: give a list with at least one message")
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            raise BadRequest("messages: each needs a role and its content as text")
        if message.get("role") not in ("system", "user", "assistant"):
            raise BadRequest(f"role={message.get('role')!r}: give system, user or assistant")
    return [Message(role=message["role"], content=message["content"]) for message in messages]


def _schema(request: dict[str, Any]) -> dict[str, Any] | None:
    wanted = request.get("response_format") or {"type": "text"}
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind == "text":
        return None
    named = wanted.get("json_schema") if kind == "json_schema" else None
    schema = named.get("schema") if isinstance(named, dict) else None
    if not isinstance(schema, dict):
        raise BadRequest('response_format: give {"type": "json_schema", "json_schema": {"schema": …}} or none')
    return schema


def _reply(completion: Completion, finish: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": completion.text}
    return {
        "id": f"chatcmpl-{time.time_ns():x}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
            "total_tokens": completion.prompt_tokens + completion.completion_tokens,
        },
    }


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": None}}


def serve_until_interrupted(chat: Chat, host: str, port: int) -> None:
    """Print how to ask, then answer until Ctrl-C. Raises ``OSError`` with advice if the port is taken."""
    try:
        server = make_server(chat, host, port)
    except OSError as error:
        raise OSError(f"host={host}, port={port}: {error.strerror}; give another port, or 0 for a free one") from error
    with server:
        print(f"listening; ask it as  server/http://{host}:{server.server_address[1]}/v1#{MODEL}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")
