"""Caps on tokens and cost over any number of kills, against a server that counts what it is asked."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engineers.model.ledger import Ledger
from envtuning.loop import run as loop
from envtuning.loop.ask import ask
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import EngineerSpec, SuiteSpec, load_spec

pytest.importorskip("openai", reason="needs openai: pip install 'mapf-frozenlake[openai]'")

CAP, LIMIT = 40_000, 2_000  # tokens of the run, of one reply
SMALL = SuiteSpec(validation_per_slice=2, test_per_slice=0, probe_per_slice=1, failure_cases=1)


class Counting(ThreadingHTTPServer):
    """Answers nothing that could be used, and counts what each question took: all of its limit."""

    def __init__(self) -> None:
        self.tokens, self.asked = 0, 0
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked += 1
        self.server.tokens += len(body) // 3 + LIMIT
        usage = {"prompt_tokens": len(body) // 3, "completion_tokens": LIMIT, "total_tokens": 0}
        message = {"role": "assistant", "content": f"no JSON here, {self.server.asked}"}
        reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
        data = json.dumps(reply | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server():
    with Counting() as one:
        thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield one
        one.shutdown()


@pytest.fixture(scope="module")
def one_stage(tmp_path_factory) -> Path:
    """A run whose first stage is done and whose engineer is to be asked."""
    spec = load_spec("scripted").with_rounds(2).model_copy(update={"suites": SMALL})
    short = tuple(stage.model_copy(update={"budget": 500, "advance_when": None}) for stage in spec.stages)
    run = RunLog.create(tmp_path_factory.mktemp("caps") / "run", Plan.of(spec.model_copy(update={"stages": short})))
    loop.continue_run(run, stages=1)
    return run.path


class Asking:
    """The same run with this engineer, asked in processes that may be killed at any file that they force to the disk."""

    def __init__(self, path: Path, url: str, **caps: object) -> None:
        self.path = path
        options = {"max_tokens": LIMIT, "context": "V1", "max_attempts": 50} | caps
        self.engineer = EngineerSpec(name=f"server/{url}/v1#m", options=options)

    @property
    def run(self) -> RunLog:
        run = RunLog.open(self.path)
        run.plan = Plan.of(run.plan.spec.model_copy(update={"engineer": self.engineer}))
        return run

    def killed_at(self, moment: int | None) -> int:
        """Ask in a child that dies at its ``moment``-th fsync; how it ended."""
        pid = os.fork()
        if pid:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        try:
            left, real = moment, os.fsync

            def fsync(handle: int) -> None:
                nonlocal left
                real(handle)
                if left is not None:
                    left -= 1
                    if left < 0:
                        os.kill(os.getpid(), 9)

            os.fsync = fsync
            ask(self.run, lambda: None)
            os._exit(0)
        except BaseException as error:
            print(type(error), error, file=sys.stderr, flush=True)
            os._exit(1)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_cap_holds_over_any_number_of_kills(server, one_stage, tmp_path):
    import shutil

    import openai  # noqa: F401  # once, before the children are forked

    shutil.copytree(one_stage, tmp_path / "run")
    asking = Asking(tmp_path / "run", f"http://127.0.0.1:{server.server_address[1]}", max_total_tokens=CAP)
    draw = random.Random(0)
    for _ in range(12):
        ended = asking.killed_at(draw.randrange(1, 5))
        if ended == 0:
            break
        assert ended == -9
    assert asking.killed_at(None) == 0
    assert server.tokens <= CAP
    assert server.asked >= 3
    answer = asking.run.state.stages[1].chosen
    assert "max_total_tokens" in answer.incidents[0].message
    spent = Ledger(asking.run.state.stages[0].path / "asked.jsonl").total()
    assert server.tokens <= spent.tokens <= CAP
    assert answer.proposal.usage.tokens <= server.tokens  # what was never answered is not shown as used
