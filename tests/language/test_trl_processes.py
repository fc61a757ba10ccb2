"""A curriculum whose prompts are read in another process: TRL's asynchronous trainer, with a fake server in vLLM's place."""

from __future__ import annotations

import json
import pickle
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake.config_versions import ConfigFile
from mapf_frozenlake.text.trl import LakePrompts, plan_rewards
from tests.lazily import needed

needed("trl", extra="grpo")

EASY, HARD = mfl.LakeConfig.single(3, 2, reward="progress"), mfl.LakeConfig.single(5, 2, reward="progress")
GROUP, AHEAD = 4, 2  # replies to a prompt; prompts that are replied to at a time


def side(prompt) -> int:
    return mfl.from_text(prompt[0]["content"]).height


class TestTheFile:
    def test_a_swap_is_a_version_that_every_reader_sees(self, tmp_path):
        written = LakePrompts(EASY, n=5, source=tmp_path / "stage.json")
        read = LakePrompts(n=5, source=tmp_path / "stage.json")
        assert [row["metadata"]["version"] for row in read.dataset] == [1] * 5
        written.set_config(HARD)
        written.set_config(HARD)  # said again, by each process of a group, say
        assert read.version == 2
        for dataset in (read.dataset, pickle.loads(pickle.dumps(read.dataset))):
            assert (side(dataset[0]["prompt"]), dataset[0]["metadata"]["version"]) == (5, 2)
        assert read.get_config() == HARD

    def test_late_rows_are_counted_for_all_processes(self, tmp_path):
        for lakes in (LakePrompts(EASY, n=3), LakePrompts(EASY, n=3, source=tmp_path / "stage.json")):
            early = lakes.dataset[0]["metadata"]
            lakes.set_config(HARD)
            late = lakes.dataset[0]["metadata"]
            logged = {}
            paid = lakes.rewards(["a", "b", "c"], [early, early, late], log_metric=logged.__setitem__)
            assert paid == plan_rewards(["a", "b", "c"], [early, early, late])
            assert (lakes.late, logged["late_rate"]) == (2, pytest.approx(2 / 3))
        assert LakePrompts(n=3, source=tmp_path / "stage.json").late == 2

    def test_a_reader_never_sees_half_a_file(self, tmp_path):
        file = ConfigFile(tmp_path / "stage.json")
        file.put(EASY)
        seen, over = set(), threading.Event()

        def read():
            while not over.is_set():
                seen.add(file.in_force()[0])

        reader = threading.Thread(target=read)
        reader.start()
        for swap in range(100):
            ConfigFile(tmp_path / "stage.json").put(HARD if swap % 2 == 0 else EASY)
        over.set()
        reader.join()
        assert max(seen) <= 101
        assert file.in_force() == (101, EASY)
        assert [path.name for path in tmp_path.iterdir()] == ["stage.json"]

    @pytest.mark.parametrize(
        "held",
        [None, "", "[]", '{"format": 2}', '{"format": 1, "version": 1}', '{"format": 1, "version": 1, "config": 3}'],
    )
    def test_what_holds_no_config_is_refused(self, tmp_path, held):
        path = tmp_path / "stage.json"
        if held is not None:
            path.write_text(held)
        with pytest.raises(mfl.LakeError, match=r"stage\.json"):
            LakePrompts(n=3, source=path)
        with pytest.raises(mfl.LakeError, match="config=None"):
            LakePrompts(n=3)


class FakeVLLM(BaseHTTPRequestHandler):
    """Answers every prompt with the same three tokens, once its ``gate`` is open."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.release()
        self.server.gate.wait()
        choice = {"token_ids": [5, 6, 7], "logprobs": {"token_logprobs": [-1.0] * 3}}
        body = json.dumps({"choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """TRL's own: a spawned child that reads a pickled copy of the prompts; the prompts; and the server that it asks."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    from accelerate.state import PartialState
    from trl.chat_template_utils import qwen3_chat_template
    from trl.experimental.async_grpo import async_rollout_worker

    from envtuning.trainees.language.tokenizer import small_tokenizer

    PartialState()
    monkeypatch.setattr(async_rollout_worker, "is_vllm_available", lambda: True)
    tokenizer = small_tokenizer()
    tokenizer.chat_template = qwen3_chat_template
    lakes = LakePrompts(EASY, n=1_000, source=tmp_path / "stage.json")
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeVLLM)
    server.gate, server.asked = threading.Event(), threading.Semaphore(0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made = async_rollout_worker.AsyncRolloutWorker(
        model_name="any", dataset=lakes.dataset, reward_funcs=[lakes.rewards], processing_class=tokenizer,
        eos_token_ids=[tokenizer.eos_token_id], num_generations=GROUP, max_inflight_tasks=GROUP * AHEAD,
        vllm_server_url=f"http://127.0.0.1:{server.server_port}",
    )  # fmt: skip
    made.start()
    yield made, lakes, server
    server.gate.set()
    made.stop()
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_trls_spawned_child_draws_by_a_swap_at_once(worker):
    rollouts, lakes, server = worker
    for _ in range(AHEAD * GROUP):  # the child has drawn as many rows as it takes at a time, and waits for the replies
        assert server.asked.acquire(timeout=100)
    lakes.set_config(HARD)
    server.gate.set()
    drawn = [rollouts.rollout_buffer.get(timeout=100) for _ in range(10 * GROUP)]
    sides = {one.group_id: side(one.prompt) for one in drawn}
    assert [sides[group] for group in sorted(sides)] == [3] * AHEAD + [5] * (10 - AHEAD)
    assert lakes.late == AHEAD * GROUP


def test_the_callback_refuses_a_trainer_that_would_not_notice(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    from transformers import TrainerState
    from trl import GRPOConfig
    from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer

    from envtuning.curriculum.trl_callback import NotFollowed, TRLCurriculumCallback

    arguments = {"output_dir": str(tmp_path), "use_cpu": True, "report_to": "none", "bf16": False}
    asynchronous = AsyncGRPOConfig(max_steps=1, **arguments)
    lakes = LakePrompts(EASY, n=8)
    refusing = TRLCurriculumCallback(lakes, lambda rate: None)
    with pytest.raises(NotFollowed, match=r"AsyncGRPOTrainer pays replies in another process.*source=FILE"):
        AsyncGRPOTrainer(
            str(tiny), args=asynchronous, train_dataset=lakes.dataset, reward_funcs=plan_rewards, callbacks=[refusing]
        )
    refusing.rewards(plan_rewards)
    begun = TrainerState()
    for event in (refusing.on_init_end, refusing.on_train_begin):
        with pytest.raises(NotFollowed, match="dataloader_num_workers=2"):
            event(GRPOConfig(dataloader_num_workers=2, **arguments), begun, None)
        event(GRPOConfig(**arguments), begun, None)
    followed = LakePrompts(EASY, n=8, source=tmp_path / "stage.json")
    follows = TRLCurriculumCallback(followed, lambda success: None)
    follows.on_init_end(GRPOConfig(dataloader_num_workers=2, **arguments), None, None)
