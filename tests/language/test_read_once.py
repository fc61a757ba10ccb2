"""Reading a prompt once for all of its replies changes no reply and no step, and the head multiplies no prompt."""

from __future__ import annotations

import pytest

from envtuning.trainees.language.options import LanguageOptions
from tests.language.conftest import QUICK
from tests.language.test_learner import rows, weights
from tests.lazily import Lazy, needed

needed("torch", "trl", extra="grpo")
torch, trl, transformers, learning, reading = (
    Lazy(name)
    for name in (
        "torch",
        "trl",
        "transformers",
        "envtuning.trainees.language.learner",
        "envtuning.trainees.language.read_once",
    )
)


@pytest.fixture
def padded():
    """Five rows of two different prompts of two lengths, and replies of four tokens."""
    torch.manual_seed(0)
    long, short = torch.randint(5, 30, (7,)), torch.cat((torch.zeros(2, dtype=torch.long), torch.randint(5, 30, (5,))))
    prompts = torch.stack((long, short, long, long, short))
    ids = torch.cat((prompts, torch.randint(5, 30, (5, 4))), dim=1)
    mask = torch.ones_like(ids)
    mask[[1, 4], :2] = 0
    return ids, mask


@pytest.fixture
def model(tiny):
    return transformers.AutoModelForCausalLM.from_pretrained(tiny).double().train()


def test_logits_of_replies_and_their_gradient_are_those_of_whole_rows(model, padded):
    ids, mask = padded
    whole = model(input_ids=ids, attention_mask=mask).logits[:, -5:-1]
    whole.square().mean().backward()
    expected = {name: value.grad.clone() for name, value in model.named_parameters()}
    model.zero_grad()
    read = reading.logits_of_replies(model, ids, mask, 4)
    torch.testing.assert_close(read, whole, rtol=1e-9, atol=1e-9)
    read.square().mean().backward()
    for name, value in model.named_parameters():
        torch.testing.assert_close(
            value.grad, expected[name], rtol=1e-4, atol=1e-7, msg=lambda said, name=name: f"{name}: {said}"
        )


def test_a_reply_of_one_token_needs_no_second_pass(model, padded):
    ids, mask = padded
    whole = model(input_ids=ids[:, :8], attention_mask=mask[:, :8]).logits[:, -2:-1]
    torch.testing.assert_close(
        reading.logits_of_replies(model, ids[:, :8], mask[:, :8], 1), whole, rtol=1e-9, atol=1e-9
    )


def test_each_different_prompt_is_read_once(model, padded, monkeypatch):
    read, forward = [], model.forward
    monkeypatch.setattr(model, "forward", lambda **given: read.append(given["input_ids"].shape) or forward(**given))
    monkeypatch.setattr(reading, "signature", lambda _: __import__("inspect").signature(forward))
    reading.logits_of_replies(model, *padded, 4)
    assert read == [(2, 7), (5, 3)]


def test_greedy_replies_are_those_without_a_shared_reading(model, padded):
    ids, mask = padded[0][:, :7], padded[1][:, :7]
    settings = transformers.GenerationConfig(max_new_tokens=6, do_sample=False, pad_token_id=0, eos_token_id=1)
    alone = model.eval().generate(input_ids=ids, attention_mask=mask, generation_config=settings)
    shared = reading.read_before(model, ids, mask)
    assert shared
    assert torch.equal(alone, model.generate(input_ids=ids, attention_mask=mask, generation_config=settings, **shared))


def test_rows_that_differ_are_read_as_ever(model, padded):
    ids, mask = padded
    assert reading.read_before(model, ids, mask) == {}


def test_a_model_without_an_ordinary_cache_is_read_whole(padded):
    settings = transformers.MambaConfig(vocab_size=40, hidden_size=16, num_hidden_layers=1, state_size=4)
    model = transformers.MambaForCausalLM(settings)
    assert reading.logits_of_replies(model, *padded, 4) is None


@pytest.mark.parametrize("grpo", [{"beta": 0.0}, {"beta": 0.1}, {"entropy_coef": 0.01}, {"temperature": 0.7}])
def test_steps_are_those_of_stock_trl(tiny, grpo, monkeypatch):
    ended = []
    for kind in (learning.PromptOnceTrainer, trl.GRPOTrainer):
        logps = "_get_per_token_logps_and_entropies"
        monkeypatch.setattr(learning.PromptOnceTrainer, logps, getattr(kind, logps))
        options = LanguageOptions(
            model=str(tiny), grpo=QUICK | grpo, torch_threads=1, reward="tests.language.test_learner:mixed"
        )
        one = learning.Learner(options, seed=0)
        history = one.train(rows(n=8), seed=3)
        ended.append((weights(one), [(step["grad_norm"], step["entropy"]) for step in history]))
        one.close()
    (ours, steps), (stock, expected) = ended
    assert any(norm > 0 for norm, _ in steps)
    torch.testing.assert_close(steps, expected, rtol=1e-3, atol=1e-5)
    for name, value in stock.items():
        torch.testing.assert_close(ours[name], value, rtol=0, atol=3e-4, msg=lambda said, name=name: f"{name}: {said}")


def test_a_frozen_head_gets_states_in_one_piece(tiny):
    """A slice of them takes a thousand times as long in bfloat16 on a CPU."""
    one = learning.Learner(LanguageOptions(model=str(tiny), grpo=dict(QUICK), torch_threads=1), seed=0)
    seen = []
    one.model.get_output_embeddings().register_forward_pre_hook(
        lambda head, inputs: seen.append(inputs[0].is_contiguous())
    )
    one.model(input_ids=torch.ones(3, 9, dtype=torch.long), logits_to_keep=torch.arange(2, 7, 2))
    one.model(input_ids=torch.ones(3, 9, dtype=torch.long), logits_to_keep=4)
    assert seen == [True, True]
    one.close()
