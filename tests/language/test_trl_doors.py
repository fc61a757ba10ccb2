"""The doors for other trainers, with the real library: dataset, reward function, environment, callback."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake.text.trl import LakePrompts, LakeTurns, plan_rewards, prompt_row, to_dataset, turn_rewards
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


def test_the_script_of_the_training_page_asks_its_engineer(tiny, tmp_path):
    """With a small model, short prompts and few steps."""
    from envtuning import EngineerCurriculum

    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    (block,) = (part.split("```")[0] for part in page.split("```python\n") if part.startswith("from trl"))
    smaller = {
        '"Qwen/Qwen3-4B"': f'"{tiny}"',
        "n=100_000": 'n=100_000, style="short"',
        "every=400": "every=8",
        'output_dir="trl", max_steps=1_000': f'output_dir="{tmp_path}", max_steps=3, **QUICK, **QUIET',
    }
    for there, here in smaller.items():
        assert there in block
        block = block.replace(there, here)
    names = {"mfl": mfl, "EngineerCurriculum": EngineerCurriculum, "QUICK": QUICK, "QUIET": QUIET}
    exec(block, names)
    curriculum = names["curriculum"]
    assert curriculum.stage >= 1
    assert {row.name for row in curriculum.history[0].training_results} <= {"3", "4", "5"}


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


def walked(board, joints, reward):
    """The environment after these moves: in each entry one for every agent."""
    env = LakeTurns()
    env.reset(metadata=prompt_row(board, reward)["metadata"])
    for joint in joints:
        env.move("\n".join(f"Agent {agent}: {mfl.Action(move).name}" for agent, move in enumerate(joint)))
    return env


def joints_of(plan):
    steps = max(map(len, plan))
    return [[line[step] if step < len(line) else mfl.Action.WAIT for line in plan] for step in range(steps)]


@pytest.mark.parametrize("reward", ["sparse", "progress"])
def test_a_curriculum_counts_a_walk_in_turns_as_solved_where_it_is_valid(reward):
    from envtuning import Ladder
    from envtuning.curriculum.trl_callback import TRLCurriculumCallback

    class Hears(Ladder):
        def __init__(self):
            super().__init__([CONFIG])
            self.heard = []

        def observe(self, outcome):
            self.heard.append(outcome.success)

    config = mfl.LakeConfig.single(4, 2, wait_ratio=0.5)
    solved, bumped = [], []
    for board in mfl.generate(config, 30, seed=0):
        joints = joints_of(mfl.solve(board).plan)
        solved.append(walked(board, joints, reward))
        off = [mfl.Action.UP if row == 0 else mfl.Action.WAIT for row, _ in board.starts]
        if mfl.Action.UP in off:
            bumped.append(walked(board, [off, *joints], reward))
    assert len(bumped) > 5
    ladder = Hears()
    callback = TRLCurriculumCallback(LakePrompts(config, n=10), ladder)
    paid = callback.rewards(turn_rewards)(environments=solved + bumped)
    assert paid[: len(solved)] == [1.0] * len(solved)
    assert all(0 <= one < 1 for one in paid[len(solved) :])  # as ``plan_rewards`` pays a plan with a step off the board
    callback.on_step_end(None, SimpleNamespace(is_world_process_zero=True), None)
    assert ladder.heard == [True] * len(solved) + [False] * len(bumped)


def test_a_config_of_which_no_prompts_can_be_made_is_an_incident():
    from engineers import Engineer, Proposal
    from envtuning import EngineerCurriculum
    from envtuning.curriculum.trl_callback import TRLCurriculumCallback

    class Undrawable(Engineer):
        name = "undrawable"

        def propose(self, report, current, editable=None):
            return Proposal(config=mfl.LakeConfig.single(3, num_agents=1, wait_ratio=0.5))

    prompts = LakePrompts(CONFIG, n=10)
    curriculum = EngineerCurriculum(Undrawable(), CONFIG, every=2, editable=["*"])
    callback = TRLCurriculumCallback(prompts, curriculum)
    rewards = callback.rewards(lambda completions, **_: [1.0] * len(completions))
    callback.on_train_begin(SimpleNamespace(), SimpleNamespace(global_step=0), None)
    rewards(completions=["", ""], slice=["3", "3"])
    with pytest.warns(UserWarning, match="an agent alone never needs to wait"):
        callback.on_step_end(None, SimpleNamespace(is_world_process_zero=True), None)
    assert [incident.kind for incident in curriculum.incidents] == ["refused_proposal"]
    assert prompts.get_config() == CONFIG
    with pytest.raises(mfl.LakeError, match="use style='coordinates'"):
        prompts.raise_unless_fits(mfl.LakeConfig.single(9, num_agents=25))


def test_a_walk_in_turns_is_paid_as_the_same_plan_in_one_reply():
    rng = np.random.default_rng(0)
    for board in mfl.generate(CONFIG, 10, seed=1):
        for reward in ("sparse", "progress", "legal", "shaped"):
            joints = rng.integers(0, 5, (3, 2)).tolist()
            env = walked(board, joints, reward)
            plan = mfl.format_plan(np.array(joints).T.tolist())
            whole = plan_rewards([plan], [prompt_row(board, reward)["metadata"]])[0]
            assert env.get_reward() == pytest.approx(whole)


def test_a_walk_with_moves_that_cannot_be_read_pays_nothing():
    board = mfl.generate(CONFIG, 1, seed=4)[0]
    env = walked(board, [], "sparse")
    env.move("hm")
    for joint in joints_of(mfl.solve(board).plan):
        said = env.move("\n".join(f"Agent {agent}: {mfl.Action(move).name}" for agent, move in enumerate(joint)))
    assert said.endswith("All agents are on their goals.")
    assert env.get_reward() == 0.0


@pytest.mark.parametrize("reward", ["sparse", "progress", "legal", "shaped"])
def test_a_walk_without_any_move_pays_nothing(reward):
    env = walked(mfl.generate(CONFIG, 1, seed=4)[0], [], reward)
    assert env.get_reward() == 0.0
    assert turn_rewards([env]) == [0.0]


def test_a_walk_that_only_waits_is_legal():
    assert walked(mfl.generate(CONFIG, 1, seed=4)[0], [[mfl.Action.WAIT] * 2], "legal").get_reward() == 1.0


def test_other_environments_have_rewards_of_their_own():
    assert turn_rewards([LakeTurns(), object()]) == [0.0, None]


def test_trl_takes_the_environment(tmp_path):
    """TRL builds the tool's schema from the method, resets it by the row, and pays by ``get_reward``."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM
    from trl import GRPOConfig, GRPOTrainer
    from trl.chat_template_utils import qwen3_chat_template

    from envtuning import EngineerCurriculum
    from envtuning.curriculum.trl_callback import TRLCurriculumCallback
    from envtuning.trainees.language.tokenizer import small_tokenizer

    class Waited(LakeTurns):
        """Has moved once, which a random model never does: without a move, nothing would be paid."""

        def reset(self, metadata, **other_columns):
            said = super().reset(metadata, **other_columns)
            self.move("Agent 0: WAIT\nAgent 1: WAIT")
            return said

    tokenizer = small_tokenizer()
    tokenizer.chat_template = qwen3_chat_template
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=1, head_dim=8, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
        )
    )  # fmt: skip
    lakes = LakePrompts(mfl.LakeConfig(slices={3: {}, 4: {}}, num_agents=2, reward="legal"), n=100)
    curriculum = EngineerCurriculum("learnability", lakes.get_config(), every=1_000)
    callback = TRLCurriculumCallback(lakes, curriculum)
    trainer = GRPOTrainer(
        model,
        reward_funcs=callback.rewards(turn_rewards),
        args=GRPOConfig(output_dir=str(tmp_path), max_steps=1, logging_steps=1, reward_weights=[0.0], **QUICK, **QUIET),
        train_dataset=lakes.dataset,
        processing_class=tokenizer,
        environment_factory=Waited,
        callbacks=[callback],
    )
    assert "move" in json.dumps(
        [tool if isinstance(tool, dict) else getattr(tool, "__name__", "") for tool in trainer._env_tools[None]],
        default=str,
    )
    trainer.train()
    [logged] = [entry for entry in trainer.state.log_history if "rewards/Waited/mean" in entry]
    assert logged["reward"] == logged["rewards/Waited/mean"] == logged["rewards/turn_rewards/mean"] == 1.0
    assert sum(row.episodes for row in curriculum.report.training_results) == 16  # once each
