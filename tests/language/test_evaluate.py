"""``evaluate``: any model on a suite, never over its caps, never paying twice."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import mapf_frozenlake as mfl
from engineers.model.chat import Completion, Refused, Rejected, TooLong
from engineers.model.ledger import Ledger, Taken
from engineers.model.meter import BudgetExceeded, Meter, Price, listed_price, most_tokens
from envtuning.cli import app
from envtuning.errors import RunError
from envtuning.trainees.language import evaluate as evaluation
from envtuning.trainees.language.evaluate import CappedChat, evaluate_model


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
    with pytest.raises(RunError, match=r"no more.*5 answers are kept in .*give the same command again"):
        evaluate_model(solver.name, SUITE, answers=answers, workers=1, max_tokens=100)
    solver.fails_from, before = None, len(solver.asked)
    table, _ = evaluate_model(solver.name, SUITE, answers=answers, workers=1, max_tokens=100)
    assert len(solver.asked) - before == len(SUITE) - 5
    assert table.overall.valid == 100.0


def test_a_cap_ends_it_before_it_is_passed(solver, tmp_path):
    with pytest.raises(RunError, match=r"max_total_tokens=3000 .* raise the cap"):
        evaluate_model(solver.name, SUITE, answers=tmp_path / "a", workers=1, max_tokens=100, max_total_tokens=3_000)
    assert 0 < 320 * len(solver.asked) <= 3_000


def test_caps_hold_for_the_answers_file_however_often_the_command_is_given(solver, tmp_path):
    answers = tmp_path / "answers.jsonl"
    given = {"answers": answers, "workers": 1, "max_tokens": 100}
    with pytest.raises(RunError):
        evaluate_model(solver.name, SUITE, max_total_tokens=3_000, **given)
    asked = len(solver.asked)
    with pytest.raises(RunError, match=f"{asked} answers are kept"):
        evaluate_model(solver.name, SUITE, max_total_tokens=3_000, **given)
    assert len(solver.asked) == asked
    _, meter = evaluate_model(solver.name, SUITE, max_total_tokens=10_000, **given)
    assert (len(solver.asked), meter.questions, meter.tokens) == (12, 12 - asked, 12 * 320)
    answers.unlink()  # another evaluation: nothing is spent on it yet
    _, meter = evaluate_model(solver.name, SUITE, max_total_tokens=10_000, **given)
    assert (meter.questions, meter.tokens) == (12, 12 * 320)


class Dying:
    """Answers so many questions; then the process dies, as many questions open as there are workers."""

    model = "openai/gpt-5-mini"

    def __init__(self, told, answers, workers):
        self.told, self.answers, self.together = told, answers, threading.Barrier(workers)
        self.lock = threading.Lock()

    def complete(self, messages, schema, *, max_tokens):
        with self.lock, self.told.open("a") as file:
            self.answers -= 1
            dies = self.answers < 0
            file.write(json.dumps(most_tokens(messages, schema)) + "\n")
        if dies:
            self.together.wait(30)
            os._exit(9)
        return Completion("Agent 0: UP", 2000, 5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("workers", [1, 4])
def test_questions_that_were_open_at_a_kill_count_at_their_worst_ever_after(monkeypatch, tmp_path, workers):
    answers, told = tmp_path / "answers.jsonl", tmp_path / "told"
    price = listed_price(Dying.model)
    given = {"answers": answers, "workers": workers, "max_tokens": 100}

    def asking(count):
        chat = Dying(told, count, workers)
        monkeypatch.setattr(evaluation.engineers, "make", lambda name, **options: SimpleNamespace(chat=chat))

    tokens, cost = 0, 0.0
    for _ in range(3):
        asking(1)
        told.write_text("")
        child = os.fork()
        if child == 0:
            try:
                evaluate_model("m", SUITE, **given)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        _, *lost = map(json.loads, told.read_text().splitlines())
        assert len(lost) == workers
        tokens += 2005 + sum(prompt + 100 for prompt in lost)
        cost += price.of(2000, 5) + sum(price.of(prompt, 100) for prompt in lost)
    told.write_text("")
    asking(12)
    for caps in ({"max_total_tokens": tokens + 100}, {"max_cost": cost}):
        with pytest.raises(RunError, match="3 answers are kept"):
            evaluate_model("m", SUITE, **given, **caps)
    assert told.read_text() == ""
    _, meter = evaluate_model("m", SUITE, **given)
    assert meter.tokens == tokens + 9 * 2005
    assert meter.cost == pytest.approx(cost + 9 * price.of(2000, 5))
    assert Ledger(tmp_path / "answers.jsonl.spent").total() == Taken(meter.tokens, pytest.approx(meter.cost))


@pytest.mark.parametrize("note", ['{"tokens": "many"}', '{\n "tokens": 15,\n "cost": 0.0\n}\n'])
def test_a_note_of_what_was_spent_that_cannot_be_read_is_an_error_in_a_sentence(solver, tmp_path, note):
    answers = tmp_path / "answers.jsonl"
    evaluate_model(solver.name, SUITE[:1], answers=answers, max_tokens=100)
    (tmp_path / "answers.jsonl.spent").write_text(note)
    with pytest.raises(RunError, match=r"answers.jsonl.spent is damaged .* remove it to count"):
        evaluate_model(solver.name, SUITE[:1], answers=answers, max_tokens=100)


@pytest.mark.parametrize("other", [{"max_tokens": 50}, {"temperature": 0.5}, {"seed": 3}])
def test_answers_that_were_asked_for_otherwise_are_refused(solver, tmp_path, other):
    given = {"answers": tmp_path / "answers.jsonl", "max_tokens": 100}
    evaluate_model(solver.name, SUITE[:1], **given)
    with pytest.raises(RunError, match=f"holds answers with {next(iter(other))}="):
        evaluate_model(solver.name, SUITE[:1], **given | other)


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


class Nested:
    """A chat that asks once more through the same caps before it replies: two questions are in flight."""

    model = "m"

    def __init__(self, meter):
        self.capped, self.depth, self.asked = CappedChat(self, meter, max_tokens=100), 0, []

    def complete(self, messages, schema, *, max_tokens):
        self.depth += 1
        self.asked.append((messages, schema, max_tokens))
        if self.depth == 2:
            self.capped("x")
        return Completion("yes", 10, 10)


DOLLAR = Price(1_000_000.0, 1_000_000.0)  # a token


@pytest.mark.parametrize("cap", [{"max_total_tokens": 20 + 2 * 117}, {"max_cost": 20.0 + 2 * 117}])
def test_a_question_fits_with_those_in_flight_to_the_last_token_and_dollar(cap):
    """A question takes at most 17 tokens (a byte, and 16 around it) and the 100 of its reply; the first one took 20."""
    chat = Nested(Meter(price=DOLLAR, **cap))
    assert [chat.capped("x"), chat.capped("x")] == ["yes", "yes"]
    assert (chat.capped.meter.tokens, chat.capped.meter.cost, chat.capped.meter.questions) == (60, 60.0, 3)
    assert chat.asked == [([{"role": "user", "content": "x"}], None, 100)] * 3
    tight = Nested(Meter(price=DOLLAR, **{name: most - 1 for name, most in cap.items()}))
    tight.capped("x")
    with pytest.raises(BudgetExceeded):
        tight.capped("x")
    assert (tight.capped.meter.tokens, tight.capped.meter.cost) == (
        20 + 117,
        20.0 + 117,
    )  # the outer one may have been billed
    assert tight.depth == 2


@pytest.mark.parametrize(("model", "cost"), [("live/m", 0.0), ("m", None)])
def test_what_a_model_without_a_price_costs_is_nothing_here_and_unknown_elsewhere(model, cost):
    chat = Nested(Meter())
    chat.model = model
    assert [chat.capped("x"), chat.capped("x")] == ["yes", "yes"]
    assert (chat.capped.meter.tokens, chat.capped.meter.cost) == (60, cost)
    chat.depth, chat.asked = 1, None  # so that it fails
    with pytest.raises(AttributeError):
        chat.capped("x")
    assert (chat.capped.meter.tokens, chat.capped.meter.cost) == (60 + 117, cost)


@pytest.mark.parametrize(
    ("error", "text", "tokens"),
    [
        (TooLong("cut", Completion("half", 5, 5)), "half", 10),
        (TooLong("the prompt does not fit"), None, 117),
        (Refused("no", Completion("I cannot", 4, 3)), "I cannot", 7),
        (Refused("no"), "", 1),
        (Rejected("unknown model", Completion("", 4, 3)), None, 117),
    ],
)
def test_a_reply_that_was_cut_or_refused_is_an_answer_and_another_failure_is_raised(error, text, tokens):
    class Failing:
        model = "m"

        def complete(self, messages, schema, *, max_tokens):
            raise error

    asked = CappedChat(Failing(), Meter(price=DOLLAR), max_tokens=100)
    if text is None:
        with pytest.raises(type(error)):
            asked("x")
    else:
        assert asked("x") == text
    assert (asked.meter.tokens, asked.meter.cost) == (tokens, tokens)


@pytest.fixture
def evaluating(monkeypatch):
    """What ``evaluate`` is given; its ``ends`` is called in its place."""
    given = {}

    def evaluate(asked, suite, *, progress, **named):
        given.update(named, asked=asked, suite=suite)
        return given["ends"](progress)

    monkeypatch.setattr(evaluation, "evaluate", evaluate)
    monkeypatch.setattr(evaluation.engineers, "make", lambda name, **options: SimpleNamespace(chat=(name, options)))
    return given


def test_four_questions_at_a_time_of_8192_tokens_without_a_cap_unless_told_otherwise(evaluating):
    table, told = SimpleNamespace(with_reference=lambda: "the table"), []
    evaluating["ends"] = lambda progress: progress(3, 12) or table
    assert evaluate_model("m", "quick", seed=1) == ("the table", evaluating["asked"].meter)
    asked = evaluating["asked"]
    assert (asked.chat, asked.max_tokens) == (("m", {"seed": 1}), 8_192)
    assert (asked.meter.max_total_tokens, asked.meter.max_cost) == (None, None)
    named = {name: evaluating[name] for name in ("suite", "form", "name", "max_workers", "resume")}
    assert named == {"suite": "quick", "form": "text", "name": "m", "max_workers": 4, "resume": None}
    [board] = mfl.generate(mfl.LakeConfig.single(3), 1)
    assert evaluating["prompt"](board) == mfl.plan_prompt(board, "paper")
    caps = {"max_tokens": 7, "max_cost": 2.0, "max_total_tokens": 50}
    evaluate_model("m", workers=2, style="short", answers="file", progress=lambda *done: told.append(done), **caps)
    asked = evaluating["asked"]
    assert (asked.max_tokens, asked.meter.max_cost, asked.meter.max_total_tokens) == (7, 2.0, 50)
    assert (evaluating["suite"], evaluating["max_workers"], evaluating["resume"]) == ("mapf-frozenlake-3150", 2, "file")
    assert evaluating["prompt"](board) == mfl.plan_prompt(board, "short")
    assert told == [(3, 12)]


@pytest.mark.parametrize(
    ("error", "answers", "said"),
    [
        (
            Rejected("no"),
            None,
            "no. no answers were kept: give a file to keep them; fix the cause and give the same command",
        ),
        (
            Rejected("no"),
            "file",
            "no. 2 answers are kept in file; fix the cause and give the same command again to go on",
        ),
        (
            BudgetExceeded("no"),
            "file",
            "no. 2 answers are kept in file; raise the cap and give the same command again to go on",
        ),
        (mfl.LakeError("no such suite"), "file", "no such suite"),
    ],
)
def test_where_it_stops_it_says_what_is_kept_and_how_to_go_on(evaluating, error, answers, said):
    def ends(progress, done=2):
        if done:
            progress(done, 12)
        raise error

    evaluating["ends"] = ends
    with pytest.raises(RunError) as stopped:
        evaluate_model("m", answers=answers)
    assert str(stopped.value).startswith(said)
    evaluating["ends"] = lambda progress: ends(progress, 0)
    with pytest.raises(RunError) as stopped:
        evaluate_model("m", answers=answers)
    assert str(stopped.value).startswith(said.replace("2 answers", "0 answers"))


@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        ("local/folder", {}, {"temperature": 0.0}),
        ("local/folder", {"temperature": 0.3}, {"temperature": 0.3}),
        ("openai/m", {}, {}),
        ("openai/m", {"temperature": 0.0}, {"temperature": 0.0}),
    ],
)
def test_a_local_model_is_asked_greedily_and_others_as_their_providers_have_it(evaluating, model, given, expected):
    evaluating["ends"] = lambda progress: SimpleNamespace(with_reference=lambda: "the table")
    evaluate_model(model, **given)
    assert evaluating["asked"].chat == (model, expected)


def test_an_engineer_without_a_model_is_refused():
    with pytest.raises(ValueError, match="'rules' is not a language model"):
        evaluate_model("rules", SUITE)


OWN_CHAT = """
import engineers

def make(rest: str, *, creativity: float = 0.0) -> engineers.ModelEngineer:
    return engineers.ModelEngineer(None)
"""


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("rules", "'rules' has no option temperature; it has guard, seed, space, thresholds"),
        ("own_chat:make", "'own_chat:make' has no option temperature; it has creativity"),
    ],
)
def test_a_temperature_for_what_has_none_is_told_in_a_sentence(monkeypatch, tmp_path, model, said):
    (tmp_path / "own_chat.py").write_text(OWN_CHAT)
    monkeypatch.chdir(tmp_path)
    args = ["evaluate", "--model", model, "--temperature", "0", "--suite", "quick"]
    told = CliRunner().invoke(app, args)
    assert (told.exit_code, isinstance(told.exception, SystemExit)) == (1, True)
    assert said in " ".join(told.output.split())
