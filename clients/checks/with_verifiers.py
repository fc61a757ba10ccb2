# /// script
# dependencies = ["mapf-frozenlake[verifiers]"]
# [tool.client]
# title = "verifiers"
# quick = true
# how = "`vf-eval mapf-lake --env.taskset.lake.num_agents 3`: an infinite taskset whose config is a `LakeConfig`"
# ///
"""An evaluation of the taskset ``mapf-lake`` by ``vf-eval``, against a server on this machine whose every other reply is right."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path

import verifiers.v1 as vf
from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

import mapf_frozenlake as mfl

PACKAGES = ["verifiers", "pydantic"]
LAKE = {"num_agents": 3, "slices": {"5": {"hole_ratio": 0.3, "wait_ratio": 0.5}}, "reward": "progress"}
BOARDS, ROLLOUTS = 4, 2


def taskset(seed=0, **options):
    return load_taskset(
        taskset_config_type("mapf-lake")(id="mapf-lake", lake=LAKE | options.pop("lake", {}), seed=seed, **options)
    )


def answer(prompt):
    """A plan of least makespan, or on every other board nobody moves: a function of the board alone."""
    instance = mfl.from_text(prompt)
    right = mfl.format_plan(mfl.solve(instance).plan)
    return right if instance.holes.ravel().nonzero()[0].sum() % 2 else "Agent 0: WAIT\nAgent 1: WAIT\nAgent 2: WAIT"


class Model(BaseHTTPRequestHandler):
    """Chat completions, streamed as vf-eval asks for them."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content = asked["messages"][-1]["content"]
        said = answer(content if isinstance(content, str) else content[0]["text"])
        head = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": asked["model"]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        chunks = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", "content": said}, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage},
        ]
        body = "".join(f"data: {json.dumps(head | chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def evaluated(folder, url):
    """Every rollout's trace."""
    command = [
        str(Path(sys.executable).with_name("vf-eval")), "mapf-lake", "-m", "any", "-n", str(BOARDS), "-r", str(ROLLOUTS), "--no-push",
        "--no-rich", "--client.base-url", f"{url}/v1", "--client.api-key-var", "LOOPBACK_KEY", "--env.agent.harness.id", "null",
        "--env.agent.runtime.type", "subprocess",
    ]  # fmt: skip
    command += [
        part
        for name, value in LAKE.items()
        for part in (f"--env.taskset.lake.{name}", value if isinstance(value, str) else json.dumps(value))
    ]
    subprocess.run(command, cwd=folder, env=os.environ | {"LOOPBACK_KEY": "none"}, check=True, capture_output=True)
    [episodes] = Path(folder).rglob("traces.jsonl")
    return [trace for line in episodes.read_text().splitlines() for trace in json.loads(line)["traces"]]


def check_the_taskset():
    """the taskset deals without end, the same for the same seed, by a config that is ours"""
    first, again, other = ([task.data for task in islice(taskset(seed), 30)] for seed in (0, 0, 1))
    assert first == again
    assert first != other
    boards = [mfl.from_text(data.text) for data in first]
    assert {(board.num_agents, board.height) for board in boards} == {(3, 5)}
    expected = mfl.generate(mfl.LakeConfig.model_validate(LAKE), n=30, seed=0)
    assert [board.key() for board in boards] == [board.key() for board in expected]
    assert isinstance(taskset(), vf.Taskset)
    assert not taskset().bounded


def check_a_finite_taskset():
    """with `tasks=N` it ends, can be shuffled, and every task has a key of config, slice and board"""
    sizes = {"slices": {"4": {}, "5": {}}}
    finite = taskset(tasks=40, lake=sizes)
    assert finite.bounded
    tasks = list(finite)
    assert [task.data for task in tasks] == [task.data for task in islice(taskset(lake=sizes), 40)]
    keys = [task.key for task in tasks]
    assert len(set(keys)) == 40
    assert {key.split("/")[1] for key in keys} == {"4", "5"}
    assert [task.key for task in finite.shuffle(1)] != keys
    assert {task.key for task in finite.shuffle(1)} == set(keys)
    assert not set(keys) & {task.key for task in taskset(1, tasks=40, lake=sizes)}
    [again] = finite.include(keys=[keys[7]])
    assert again.data.board == 7


def check_an_evaluation():
    """`vf-eval mapf-lake` against a server on this machine: no rollout fails, and each reward is the judge's"""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        traces = evaluated(folder, f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    assert len(traces) == BOARDS * ROLLOUTS
    rows = {row["question"]: row for row in mfl.text_dataset(mfl.LakeConfig.model_validate(LAKE), BOARDS)}
    paid = []
    for trace in traces:
        question = trace["task"]["data"]["prompt"][0]["content"]
        paid.append(trace["rewards"]["judged"]["score"])
        assert trace["errors"] == []
        assert paid[-1] == mfl.score_answer(answer(question), rows[question])
        assert trace["metrics"]["valid"] == float(paid[-1] == 1.0)
    assert min(paid) < 1.0 == max(paid)


if __name__ == "__main__":
    import _checks

    _checks.run(globals())
