"""One worker of a group: every rank does what the loop asks, its part of the conversations, and rank 0 alone speaks."""

from __future__ import annotations

import json
import runpy
import sys
from itertools import chain
from types import SimpleNamespace

import pytest

from engineers.shared.own import trusted
from tests.lazily import Lazy, needed

needed("torch", "accelerate", extra="grpo")
working = Lazy("envtuning.trainees.language.worker")
HERE = "envtuning.trainees.language.worker"


class Line:
    """The loop at the other end: what it says, and what it has heard."""

    def __init__(self, *says):
        self.says, self.heard = list(says), []

    def recv(self):
        if not self.says:
            raise EOFError
        return self.says.pop(0)

    def send(self, what):
        self.heard.append(what)


class Trainee:
    def __init__(self, fails=False):
        self.fails, self.asked = fails, []

    def __getattr__(self, name):
        def answer(*given, **named):
            self.asked.append((name, *given, named))
            if self.fails:
                raise ValueError("no weights")
            return f"its {name}"

        return answer


@pytest.fixture
def ranks(monkeypatch):
    """Workers of a group of so many; what rank 0 broadcasts reaches those that are asked after it."""
    passed, now = [], []  # what rank 0 has broadcast; the rank that works now

    def broadcast(told):
        if now[-1]:
            told[0] = passed.pop(0)
        else:
            passed.append(told[0])

    monkeypatch.setattr(f"{HERE}.broadcast_object_list", broadcast)
    monkeypatch.setattr(f"{HERE}.gather_object", lambda done: done)

    def make(count, rank, line=None, trainee=None):
        now.append(rank)
        waited = []
        state = SimpleNamespace(num_processes=count, process_index=rank, wait_for_everyone=lambda: waited.append(True))
        worker = working.Worker(state, line)
        worker.trainee, worker.waited = trainee or Trainee(), waited
        return worker

    make.passed = passed
    return make


def test_rank_0_answers_until_the_loop_says_stop_and_tells_what_was_raised(ranks):
    line = Line(
        ("load", ("folder",), {}), ("train", ("config", 2), {"seed": 3}), ("stop", (), {}), ("load", ("more",), {})
    )
    first = ranks(2, 0, line)
    first.serve()
    assert line.heard == [("done", None), ("done", "its train")]
    [loaded, (*trained, named)] = first.trainee.asked
    assert (loaded, trained, named["seed"]) == (("load", "folder", {}), ["train", "config", 2], 3)
    second = ranks(2, 1)
    second.serve()  # hears the same, and speaks with nobody
    assert [call[:-1] for call in second.trainee.asked] == [call[:-1] for call in first.trainee.asked]
    line = Line(("load", ("folder",), {}))
    ranks(1, 0, line, Trainee(fails=True)).serve()  # … and ends where the loop is gone
    [(kind, error)] = line.heard
    assert (kind, type(error), str(error)) == ("raised", ValueError, "no weights")


def test_a_trainee_of_a_group_is_made_without_another_group(ranks):
    made = []

    def kind(**given):
        made.append(given)
        return "trainee"

    worker = ranks(1, 0)
    worker.make(kind, trusted=frozenset({"mine"}), options={"model": "m", "processes": 2}, world="lakes", seed=1)
    assert "mine" in trusted()  # as in the loop's process
    assert worker.trainee == "trainee"
    assert made == [{"model": "m", "processes": 2, "world": "lakes", "seed": 1, "within_group": True}]


def test_a_step_is_told_and_all_ranks_stop_where_the_loop_wants_them_to(ranks):
    line = Line(True, False)
    first = ranks(2, 0, line)
    assert first.train("config", 5, seed=3) == "its train"
    assert first.trainee.asked == [("train", "config", 5, {"seed": 3, "on_iteration": first._tell})]
    first._tell({"loss": 1.0})
    with pytest.raises(working.StretchStopped, match="the loop stopped this stretch"):
        first._tell({"loss": 2.0})
    assert line.heard == [("told", {"loss": 1.0}), ("told", {"loss": 2.0})]
    assert ranks.passed == [True, False]
    second = ranks(2, 1)
    second._tell({"loss": 1.0})
    with pytest.raises(working.StretchStopped):
        second._tell({"loss": 2.0})


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [0, 1, 3, 7])
def test_every_conversation_is_answered_by_one_rank_and_in_order(ranks, count, n):
    class Policy:
        def reply(self, talks, *, seed):
            assert talks
            return [("reply", talk, seed) for talk in talks]

    workers = [ranks(count, rank, trainee=SimpleNamespace(policy=Policy)) for rank in range(count)]
    talks = list(range(n))
    parts = [worker.reply(talks, seed=5) for worker in workers]
    assert list(chain(*parts)) == [("reply", talk, 5) for talk in talks]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("which", ["checkpoint", "base"])
def test_rank_0_alone_answers_the_engineer_on_the_model_that_is_named(ranks, which, monkeypatch):
    class Chat:
        def __init__(self, *given, **named):
            self.made = given, named

        def complete(self, messages, schema, *, max_tokens):
            return (*self.made, messages, schema, max_tokens)

    monkeypatch.setattr("engineers.backends.live.LiveChat", Chat)
    trainee = SimpleNamespace(
        language_model=lambda: ("checkpoint", "its words"), base_model=lambda: ("base", "its words")
    )
    answer = ranks(2, 0, Line(), trainee).complete(which, {"seed": 1}, ["question"], {"type": "object"}, 9)
    assert answer == ((which, "its words"), {"model": f"live/{which}", "seed": 1}, ["question"], {"type": "object"}, 9)
    assert ranks(2, 1, trainee=trainee).complete(which, {}, [], None, 9) is None


def test_rank_0_saves_while_the_others_wait_and_all_load(ranks):
    first, second = ranks(2, 0, Line()), ranks(2, 1)
    for worker in (first, second):
        worker.save("folder")
        worker.load("folder")
    assert first.trainee.asked == [("save", "folder", {}), ("load", "folder", {})]
    assert second.trainee.asked == [("load", "folder", {})]
    assert first.waited == second.waited == [True]


@pytest.mark.parametrize("gpu", [True, False])
@pytest.mark.parametrize("main", [True, False])
def test_a_process_joins_its_group_serves_and_leaves_it(gpu, main, monkeypatch):
    done = []

    class State:
        is_main_process = main

        def __init__(self, cpu=None):
            done.append(("joined", cpu))

        def destroy_process_group(self):
            done.append("left")

    monkeypatch.setenv("ENVTUNING_WORKERS_ADDRESS", "the address")
    monkeypatch.setenv("ENVTUNING_WORKERS_KEY", b"the key".hex())
    monkeypatch.setenv("ENVTUNING_WORKERS_PATH", json.dumps([*sys.path, "/own/modules"]))
    monkeypatch.setattr("sys.path", sys.path[:])
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpu)
    monkeypatch.setattr(f"{HERE}.PartialState", State)
    monkeypatch.setattr(f"{HERE}.Client", lambda address, authkey=None: (address, authkey))
    serving = SimpleNamespace(serve=lambda: done.append("served"))
    monkeypatch.setattr(f"{HERE}.Worker", lambda state, line: done.append(("line", line)) or serving)
    before = sys.path[:]
    working.main()
    assert sys.path == [*before, "/own/modules"]  # what the loop's process imports from, behind all others
    assert done == [("joined", not gpu), ("line", ("the address", b"the key") if main else None), "served", "left"]


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_the_module_is_the_process(monkeypatch):
    class Joined(Exception):
        pass

    def joins(cpu):
        raise Joined

    monkeypatch.setenv("ENVTUNING_WORKERS_PATH", "[]")
    monkeypatch.setattr("accelerate.PartialState", joins)
    with pytest.raises(Joined):
        runpy.run_module(HERE, run_name="__main__")
