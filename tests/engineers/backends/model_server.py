"""An OpenAI-compatible server for one local model, as tests start it: ``python model_server.py FOLDER``.

It has what ``server/…`` asks of vLLM, llama.cpp or SGLang: chat completions, with a JSON Schema that the reply keeps to.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from engineers.backends.local import LocalChat
from engineers.model.chat import Chat, ChatError, TooLong


def make_server(chat: Chat) -> HTTPServer:
    """A server for this chat on a free port of this machine, not yet running."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                status, reply = 200, completion_for(chat, request)
            except ChatError as error:
                status, reply = 400, {"error": {"message": str(error), "type": "invalid_request_error", "code": None}}
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Silent."""

    return HTTPServer(("127.0.0.1", 0), Handler)


def completion_for(chat: Chat, request: dict[str, Any]) -> dict[str, Any]:
    """The reply to a request for chat.completions. Raises ``ChatError``."""
    wanted = request.get("response_format", {"type": "text"})
    schema = None if wanted["type"] == "text" else wanted["json_schema"]["schema"]
    limit = request.get("max_completion_tokens") or request["max_tokens"]
    finish = "stop"
    try:
        completion = chat.complete(request["messages"], schema, max_tokens=limit)
    except TooLong as error:
        if error.spent is None:
            raise
        completion, finish = error.spent, "length"
    message = {"role": "assistant", "content": completion.text}
    return {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
            "total_tokens": completion.prompt_tokens + completion.completion_tokens,
        },
    }


if __name__ == "__main__":
    with make_server(LocalChat(sys.argv[1])) as server:
        print(f"server/http://127.0.0.1:{server.server_address[1]}/v1#local", flush=True)
        server.serve_forever()
