"""The doors for other trainers, with the real library: dataset, reward function, environment, callback."""

from __future__ import annotations

import json

import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake.text.trl import LakePrompts, LakeTurns, plan_rewards, prompt_row, to_dataset
from tests.language.conftest import QUICK
from tests.lazily import needed

needed("trl", extra="grpo")

QUIET = {
    "report_to": "none",
    "use_cpu": True,
    "save_strategy": "no",
    "disable_tqdm": True,
    "gradient_checkpointing": False,
}
CONFIG = mfl.LakeConfig.single(3, 2, hole_ratio=0.2, reward="progress")


def test_text_dataset_becomes_a_dataset_that_grpo_trains_on(tiny, tmp_path):
    from trl import GRPOConfig, GRPOTrainer

    rows = mfl.text_dataset(CONFIG, 4, style="short")
    dataset = to_dataset(rows)
    assert dataset[0]["prompt"] == [{"role": "user", "content": rows[0]["question"]}]
    assert plan_rewards([rows[0]["answer"]], [dataset[0]["metadata"]]) == [1.0]
    trainer = GRPOTrainer(
        str(tiny),
        reward_funcs=plan_rewards,
        args=GRPOConfig(output_dir=str(tmp_path), max_steps=2, logging_steps=1, **QUICK, **QUIET),
        train_dataset=dataset,
    )
    trainer.train()
    logs = [entry for entry in trainer.state.log_history if "grad_norm" in entry]
    assert len(logs) == 2
    assert "rewards/plan_rewards/mean" in logs[0]
    assert 0 <= logs[0]["valid_rate"] <= 1


def test_a_curriculum_swaps_the_lakes_under_somebodys_own_trainer(tiny, tmp_path, monkeypatch):
    from envtuning import EngineerCurriculum
    from examples.own_trl import train

    told = []
    monkeypatch.setattr(EngineerCurriculum, "observe", lambda self, outcome: told.append(outcome))
    monkeypatch.setattr(EngineerCurriculum, "decide", lambda self: self.target if self.version == 0 else None)
    trainer, lakes = train(str(tiny), steps=8, style="short", output_dir=str(tmp_path), **QUICK, **QUIET)
    assert lakes.get_config().slices[3].share == 0
    assert {outcome.slice for outcome in told} == {"3", "5"}
    sizes = [len(prompt[0]["content"].split(";")[0].split()) - 3 for prompt in trainer._logs["prompt"]]
    assert set(sizes) == {25}  # at the end all boards are 5×5


def test_rows_are_drawn_when_they_are_asked_for():
    lakes = LakePrompts(CONFIG, n=10, seed=3, style="short")
    first = lakes.dataset[2]
    assert first == lakes.dataset[2]
    assert len(lakes.dataset) == 10
    lakes.set_config(mfl.LakeConfig.single(4, 2))
    assert mfl.from_text(lakes.dataset[2]["prompt"][0]["content"]).height == 4
    held_out = mfl.validation_suite(CONFIG, 30)
    exclusive = LakePrompts(CONFIG, n=10, exclude=held_out)
    from mapf_frozenlake.generator.symmetry import canonical_key, canonical_keys

    keys = set(canonical_keys(held_out).tolist())
    assert not any(canonical_key(mfl.from_text(row["prompt"][0]["content"])) in keys for row in exclusive.dataset)
    with pytest.raises(mfl.LakeError, match="n=0: give at least 1 prompt"):
        LakePrompts(CONFIG, n=0)


def test_the_environment_plays_a_lake_by_its_tool():
    board = mfl.generate(CONFIG, 1, seed=4)[0]
    plan = mfl.solve(board).plan
    env = LakeTurns()
    assert env.move("Agent 0: UP\nAgent 1: UP") == "The episode is over: nothing moves any more."
    told = env.reset(metadata=prompt_row(board, "sparse")["metadata"], prompt="ignored")
    assert mfl.from_text(told) == board
    assert told.startswith("\n\n")  # TRL sets it right behind the prompt's last word
    steps = max(map(len, plan))
    for step in range(steps):
        moves = [mfl.Action(line[step] if step < len(line) else 4).name for line in plan]
        said = env.move("\n".join(f"Agent {agent}: {move}" for agent, move in enumerate(moves)))
    assert said.endswith("All agents are on their goals.")
    assert env.get_reward() == 1.0
    env.reset(metadata=prompt_row(board, "sparse")["metadata"])
    assert env.get_reward() == 0.0
    assert "No moves could be read" in env.move("hm")
    assert env.get_reward() == 0.0


def test_trl_takes_the_environment(tmp_path):
    """TRL builds the tool's schema from the method, resets it by the row, and pays by ``get_reward``."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM
    from trl import GRPOConfig, GRPOTrainer
    from trl.chat_template_utils import qwen3_chat_template

    from envtuning.trainees.language.tokenizer import small_tokenizer

    tokenizer = small_tokenizer()
    tokenizer.chat_template = qwen3_chat_template
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=1, head_dim=8, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
        )
    )  # fmt: skip
    dataset = to_dataset(mfl.text_dataset(CONFIG, 4))
    trainer = GRPOTrainer(
        model,
        args=GRPOConfig(output_dir=str(tmp_path), max_steps=1, logging_steps=1, **QUICK, **QUIET),
        train_dataset=dataset,
        processing_class=tokenizer,
        environment_factory=LakeTurns,
    )
    assert "move" in json.dumps(
        [tool if isinstance(tool, dict) else getattr(tool, "__name__", "") for tool in trainer._env_tools[None]],
        default=str,
    )
    trainer.train()
    assert any("rewards/LakeTurns/mean" in entry for entry in trainer.state.log_history)
