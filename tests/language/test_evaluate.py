"""``evaluate``: any model on a suite, never over its caps, never paying twice."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import mapf_frozenlake as mfl
from engineers.model.chat import Completion, TooLong
from engineers.model.meter import BudgetExceeded, Meter, Price
from envtuning.trainees.language.evaluate import CappedChat, EvaluationStopped, evaluate_model


class Solver:
    """An OpenAI-compatible server that solves every lake; counts its questions and can fail from one on."""

    def __init__(self):
        self.asked, self.fails_from = [], None
        solver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                prompt = body["messages"][-1]["content"]
                solver.asked.append(prompt)
                if solver.fails_from is not None and len(solver.asked) > solver.fails_from:
                    self.send_response(400)
                    self.end_headers()
                    self.wfile.write(b'{"error": {"message": "no more"}}')
                    return
                text = mfl.format_plan(mfl.solve(mfl.from_text(prompt)).plan)
                reply = {
                    "id": "1", "object": "chat.completion", "created": 1, "model": "m",
                    "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320},
                }  # fmt: skip
                data = json.dumps(reply).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.name = f"server/http://127.0.0.1:{self.server.server_address[1]}/v1#m"


@pytest.fixture
def solver():
    pytest.importorskip("openai")
    one = Solver()
    yield one
    one.server.shutdown()


SUITE = mfl.load_suite("quick")[:12]


def test_every_board_is_asked_once_and_the_papers_rows_stand_beside(solver, tmp_path):
    answers = tmp_path / "answers.jsonl"
    table, meter = evaluate_model(solver.name, SUITE, answers=answers, workers=4, max_tokens=100)
    assert table.overall.valid == 100.0
    assert table.reference
    assert len(set(solver.asked)) == len(solver.asked) == len(SUITE)
    assert (meter.questions, meter.tokens) == (12, 12 * 320)
    again, meter = evaluate_model(solver.name, SUITE, answers=answers, workers=4, max_tokens=100)
    assert len(solver.asked) == len(SUITE)
    assert meter.questions == 0
    assert again.overall == table.overall


def test_what_failed_half_way_goes_on_where_it_was(solver, tmp_path):
    answers = tmp_path / "answers.jsonl"
    solver.fails_from = 5
    with pytest.raises(EvaluationStopped, match=r"no more.*5 answers are kept in .*give the same command again"):
        evaluate_model(solver.name, SUITE, answers=answers, workers=1, max_tokens=100)
    solver.fails_from, before = None, len(solver.asked)
    table, _ = evaluate_model(solver.name, SUITE, answers=answers, workers=1, max_tokens=100)
    assert len(solver.asked) - before == len(SUITE) - 5
    assert table.overall.valid == 100.0


def test_a_cap_ends_it_before_it_is_passed(solver, tmp_path):
    with pytest.raises(EvaluationStopped, match=r"max_total_tokens=3000 .* raise the cap"):
        evaluate_model(solver.name, SUITE, answers=tmp_path / "a", workers=1, max_tokens=100, max_total_tokens=3_000)
    assert 0 < 320 * len(solver.asked) <= 3_000


def test_questions_in_flight_count_with_their_worst_case():
    here, go_on = threading.Semaphore(0), threading.Event()

    class Slow:
        model = "m"

        def complete(self, messages, schema, *, max_tokens):
            here.release()
            go_on.wait(10)
            return Completion("Agent 0: UP", 10, 10)

    price = Price(1_000_000.0, 1_000_000.0)  # a dollar a token
    asked = CappedChat(Slow(), Meter(max_cost=300.0, price=price), max_tokens=100)
    threads = [threading.Thread(target=asked, args=("x",)) for _ in range(2)]
    for thread in threads:
        thread.start()
        here.acquire()
    with pytest.raises(BudgetExceeded):  # two of at most 117 are in flight: a third might pass the cap
        asked("x")
    go_on.set()
    for thread in threads:
        thread.join()
    assert asked.meter.cost == 40.0
    assert asked("x") == "Agent 0: UP"


def test_a_reply_that_was_cut_is_what_there_is_of_it():
    class Cut:
        model = "m"

        def complete(self, messages, schema, *, max_tokens):
            raise TooLong("cut", Completion("Agent 0: RI", 5, 5))

    asked = CappedChat(Cut(), Meter(), max_tokens=5)
    assert asked("x") == "Agent 0: RI"
    assert asked.meter.tokens == 10


def test_an_engineer_without_a_model_is_refused():
    with pytest.raises(ValueError, match="'rules' is not a language model"):
        evaluate_model("rules", SUITE)
