"""Models in this process: a tiny untrained Qwen3 through the code that loads Qwen/Qwen3-4B, and one under training."""

from __future__ import annotations

import copy
import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import engineers
from engineers.backends import live, local
from engineers.model.answer_format import AnswerFormat
from engineers.model.chat import Message, Rejected, TooLong
from engineers.report import StageReport
from tests.lazily import Lazy, needed

needed("torch", "transformers", "llguidance", extra="local")
torch = Lazy("torch")

QUESTION: list[Message] = [{"role": "system", "content": "You design."}, {"role": "user", "content": "What next?"}]


@pytest.fixture
def model(tiny_qwen3: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(tiny_qwen3)


@pytest.fixture
def schema(config: BaseModel, editable: tuple[str, ...]) -> dict[str, Any]:
    return AnswerFormat(config, editable).schema


@pytest.mark.parametrize(("temperature", "seed"), [(0.0, 0), (0.7, 0), (0.7, 1), (3.0, 0)])
def test_an_untrained_model_answers_with_a_valid_config_at_the_first_attempt(
    tiny_qwen3: Path, report: StageReport, config: BaseModel, editable: tuple[str, ...], seed: int, temperature: float
) -> None:
    engineer = engineers.make(f"local/{tiny_qwen3}", seed=seed, temperature=temperature, max_tokens=500)
    proposal = engineer.propose(report, config, editable)
    assert not proposal.fallback
    assert proposal.refusals == []
    assert type(proposal.config).model_validate(proposal.config.model_dump()) == proposal.config
    assert proposal.usage.attempts == 1
    assert proposal.usage.cost == 0
    assert proposal.usage.completion_tokens <= 500


def test_the_answer_is_a_function_of_seed_and_question(model: Any, byte_tokens: Any, schema: dict[str, Any]) -> None:
    def ask(seed: int, question: str = "What next?") -> str:
        chat = live.LiveChat(model, byte_tokens, seed=seed)
        torch.rand(7)  # the process's random state is no part of it
        return chat.complete([{"role": "user", "content": question}], schema, max_tokens=450).text

    assert ask(1) == ask(1)
    assert ask(1) != ask(2)
    assert ask(1) != ask(1, "And now?")


def test_a_model_may_think_first_and_must_answer_then(tiny_qwen3: Path, schema: dict[str, Any]) -> None:
    chat = local.LocalChat(str(tiny_qwen3), thinking=40)
    reply = chat.complete(QUESTION, schema, max_tokens=450)
    thought, _, answer = reply.text.partition(live.THOUGHT_END)
    assert "changes" in json.loads(answer)
    assert len(thought.encode()) <= 4 * 40  # a byte that is no character is shown as one of up to three
    assert reply.completion_tokens <= 450


def test_thinking_is_switched_in_the_chat_template(tiny_qwen3: Path, model: Any) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_qwen3)

    def prompt(thinking: int) -> str:
        return tokenizer.decode(live.LiveChat(model, tokenizer, thinking=thinking)._prompt(QUESTION)[0])

    assert prompt(0).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert prompt(9).endswith("<|im_start|>assistant\n")


def test_a_thought_that_the_template_always_begins_is_ended_where_none_is_wanted(
    model: Any, byte_tokens: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_tokens, "chat_template", "{% for m in messages %}{{ m.content }}\n{% endfor %}<think>\n")

    def prompt(thinking: int) -> str:
        return byte_tokens.decode(live.LiveChat(model, byte_tokens, thinking=thinking)._prompt(QUESTION)[0])

    assert prompt(0) == "You design.\nWhat next?\n<think>\n\n</think>\n\n"
    assert prompt(9) in ("You design.\nWhat next?\n<think>\n", "You design.\nWhat next?\n<think>")


def test_without_a_schema_the_model_writes_freely(tiny_qwen3: Path) -> None:
    with pytest.raises(TooLong, match="cut after 30 tokens") as caught:
        local.LocalChat(str(tiny_qwen3)).complete(QUESTION, None, max_tokens=30)
    assert caught.value.spent is not None
    assert caught.value.spent.completion_tokens == 30


def test_a_base_model_without_a_chat_template_is_asked_in_plain_text(
    model: Any, byte_tokens: Any, schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_tokens, "chat_template", None)
    reply = live.LiveChat(model, byte_tokens).complete(QUESTION, schema, max_tokens=450)
    assert "changes" in json.loads(reply.text)
    assert reply.prompt_tokens == len("You design.\n\nWhat next?\n\n")


def test_a_template_without_a_system_turn_gets_it_with_the_users(
    model: Any, byte_tokens: Any, schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}<{{ m.content }}>{% endfor %}"
    monkeypatch.setattr(byte_tokens, "chat_template", strict)
    chat = live.LiveChat(model, byte_tokens)
    assert byte_tokens.decode(chat._prompt(QUESTION)[0]) == "<You design.\n\nWhat next?>"
    assert "changes" in json.loads(chat.complete(QUESTION, schema, max_tokens=450).text)


def test_a_prompt_longer_than_the_context_is_refused_before_it_is_read(tiny_qwen3: Path) -> None:
    long: list[Message] = [{"role": "user", "content": "x" * 20_000}]
    with pytest.raises(TooLong, match=r"the prompt has 200\d\d tokens, .* reads at most 16384: shorten it"):
        local.LocalChat(str(tiny_qwen3)).complete(long, None, max_tokens=10)


def test_no_room_for_an_answer_is_a_sentence(tiny_qwen3: Path, schema: dict[str, Any]) -> None:
    with pytest.raises(Rejected, match=r"max_tokens=10: the shortest reply may take \d+; allow at least that many"):
        local.LocalChat(str(tiny_qwen3)).complete(QUESTION, schema, max_tokens=10)


def test_a_model_that_is_not_there_ends_in_the_current_config(
    tmp_path: Path, report: StageReport, config: BaseModel, editable: tuple[str, ...]
) -> None:
    proposal = engineers.make(f"local/{tmp_path / 'nothing'}").propose(report, config, editable)
    assert proposal.fallback
    assert proposal.config == config
    assert "cannot be loaded" in proposal.refusals[0]


def test_a_broken_checkpoint_ends_in_the_current_config(
    tiny_qwen3: Path, tmp_path: Path, report: StageReport, config: BaseModel, editable: tuple[str, ...]
) -> None:
    """A file cut off in the middle, as a training that was killed leaves it."""
    broken = shutil.copytree(tiny_qwen3, tmp_path / "broken")
    weights = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    proposal = engineers.make(f"local/{broken}").propose(report, config, editable)
    assert proposal.fallback
    assert re.search(r"broken cannot be loaded, device=auto \(SafetensorError: ", proposal.refusals[0])


def test_a_tokenizer_that_is_not_the_models_is_a_sentence(model: Any, byte_tokens: Any) -> None:
    larger = copy.deepcopy(byte_tokens)
    larger.add_tokens([f"word{index}" for index in range(100)])
    question: list[Message] = [{"role": "user", "content": "word99"}]
    with pytest.raises(Rejected, match=r"the model cannot answer \(IndexError: "):
        live.LiveChat(model, larger).complete(question, None, max_tokens=5)


# --- a checkpoint under training ------------------------------------------------------------------------------------


def test_a_model_under_training_is_left_as_it_was_found(
    model: Any, byte_tokens: Any, report: StageReport, config: BaseModel, editable: tuple[str, ...]
) -> None:
    model.train()
    model.model.layers[0].eval()  # somebody froze a part of it
    model.model.embed_tokens.weight.requires_grad_(False)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    ids = torch.arange(20).unsqueeze(0)
    model(input_ids=ids, labels=ids).loss.backward()  # half a step is pending
    before = snapshot(model)
    state = torch.get_rng_state()

    engineer = live.make(model=model, tokenizer=byte_tokens, max_tokens=450)
    proposal = engineer.propose(report, config, editable)

    assert not proposal.fallback
    assert engineer.name == "live/model"
    assert snapshot(model) == before
    assert torch.equal(torch.get_rng_state(), state)
    optimizer.step()  # and it learns on
    model(input_ids=ids, labels=ids).loss.backward()


def snapshot(model: Any) -> dict[str, Any]:
    """Modes, flags, gradients and weights, comparable."""
    return {
        "modes": [module.training for module in model.modules()],
        "flags": [p.requires_grad for p in model.parameters()],
        "gradients": [None if p.grad is None else p.grad.sum().item() for p in model.parameters()],
        "weights": [p.sum().item() for p in model.parameters()],
        "generation": model.generation_config.to_dict(),
        "config": model.config.to_dict(),
    }


def test_the_answer_follows_the_weights(model: Any, byte_tokens: Any, schema: dict[str, Any]) -> None:
    chat = live.LiveChat(model, byte_tokens, temperature=0)
    first = chat.complete(QUESTION, schema, max_tokens=450).text
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_()
    assert chat.complete(QUESTION, schema, max_tokens=450).text != first


def test_a_diverged_model_still_answers_in_the_schema(
    model: Any, byte_tokens: Any, report: StageReport, config: BaseModel, editable: tuple[str, ...]
) -> None:
    with torch.no_grad():
        for weights in model.parameters():
            weights.fill_(torch.nan)
    proposal = live.make(model=model, tokenizer=byte_tokens, max_tokens=450).propose(report, config, editable)
    assert not proposal.fallback


def test_modes_come_back_when_the_model_fails(model: Any, byte_tokens: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model.train()
    monkeypatch.setattr(type(model), "generate", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("device lost")))
    with pytest.raises(Rejected, match="device lost"):
        live.LiveChat(model, byte_tokens).complete(QUESTION, None, max_tokens=5)
    assert all(module.training for module in model.modules())


def test_live_takes_objects_not_names() -> None:
    with pytest.raises(ValueError, match="live takes objects, not names"):
        live.make("Qwen/Qwen3-4B")


def test_all_attempts_at_a_question_end_within_the_timeout_and_each_is_told_and_written_as_it_ends(
    tiny_qwen3: Path, report: StageReport, config: BaseModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An unconstrained model of random weights never answers well, however often it is asked."""
    transcript = tmp_path / "transcript.jsonl"
    options = {"transcript": transcript, "constrained": False, "max_attempts": 1_000}
    engineer: Any = local.make(str(tiny_qwen3), timeout=1.0, **options)
    engineer.chat.load_now()
    with caplog.at_level("INFO", logger="engineers"):
        begin = time.monotonic()
        proposal = engineer.propose(report, config)
        taken = time.monotonic() - begin
    assert proposal.fallback
    assert taken < 10
    asked = [
        line for line in caplog.messages if line.startswith(f"asking local/{tiny_qwen3} (stage 1, proposal, attempt ")
    ]
    assert len(asked) == len(transcript.read_text().splitlines()) > 1
    assert any("no whole reply within timeout=1 s: allow more time" in refusal for refusal in proposal.refusals)
    engineer.propose(report.model_copy(update={"stage": 2}), config)  # another question has its own time
    assert len(transcript.read_text().splitlines()) > len(asked)


def test_a_question_that_is_asked_anew_has_its_own_time(
    tiny_qwen3: Path, report: StageReport, config: BaseModel
) -> None:
    engineer: Any = local.make(str(tiny_qwen3), timeout=1.0, constrained=False, max_attempts=1_000)
    engineer.chat.load_now()
    assert [engineer.propose(report, config).usage.attempts > 1 for _ in range(2)] == [True, True]
