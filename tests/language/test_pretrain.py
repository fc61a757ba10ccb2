"""Pretraining: what is taught, what is held out, and the folder that comes of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mapf_frozenlake as mfl
from envtuning.trainees.language import pretrain as pretraining
from envtuning.trainees.language.pretrain import Pretraining, pretrain, raise_unless_unseen
from mapf_frozenlake.generator.symmetry import canonical_keys
from tests.language.conftest import CONFIG
from tests.lazily import Lazy, needed

needed("torch", "transformers", extra="grpo")
torch = Lazy("torch")

NONE = np.empty(0, np.uint64)
MOMENT = Pretraining(samples=64, batch=16, width=32, layers=1, heads=2)


def test_the_learning_rate_rises_for_a_twentieth_and_falls_to_a_fiftieth():
    shares = [pretraining.warmed_cosine(done) for done in (0.0, 0.025, 0.05, 0.525, 1.0)]
    assert shares == pytest.approx([0.02, 0.52, 1.0, 0.51, 0.02])


def test_the_folder_is_an_ordinary_one(tiny):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(tiny), AutoTokenizer.from_pretrained(tiny)
    assert type(model).__name__ == "Qwen3ForCausalLM"
    assert model.config.max_position_embeddings >= 8_192
    assert tokenizer.chat_template
    assert tokenizer.eos_token_id == model.config.eos_token_id
    assert json.loads((tiny / "pretraining.json").read_text())["loss"] < 2.0


def test_held_out_boards_are_never_taught_not_even_turned(monkeypatch, tmp_path):
    held_out = mfl.validation_suite(CONFIG, 40)
    keys, taught = canonical_keys(held_out), []
    lessons = pretraining.lessons
    monkeypatch.setattr(
        pretraining, "lessons", lambda tok, boards, style: taught.append(boards) or lessons(tok, boards, style)
    )
    folder = pretrain(tmp_path / "a", CONFIG, keys, Pretraining(samples=600, batch=100, width=16, layers=1, heads=2))
    assert sum(map(len, taught)) == 600
    assert not any(np.isin(canonical_keys(boards), keys).any() for boards in taught)
    raise_unless_unseen(folder, held_out)
    with pytest.raises(mfl.LakeError, match=r"held-out boards may have been taught .* `envtuning pretrain --hold-out`"):
        raise_unless_unseen(folder, mfl.validation_suite(CONFIG, 40, seed=1))


def test_only_the_plan_is_taught_and_it_is_optimal(tiny):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    boards = mfl.generate(CONFIG, 5)
    for (ids, labels), board in zip(pretraining.lessons(tokenizer, boards, "short"), boards, strict=True):
        answer = [token for token in labels if token != pretraining.IGNORED]
        assert ids[-len(answer) :] == answer
        assert mfl.judge(board, mfl.parse_plan(tokenizer.decode(answer, skip_special_tokens=True), 2)).optimal
        assert mfl.from_text(tokenizer.decode(ids[: -len(answer)], skip_special_tokens=True)) == board


def test_equal_seeds_give_equal_weights_and_other_seeds_others(tmp_path):
    from safetensors.torch import load_file

    def weights(name, **changed):
        folder = pretrain(tmp_path / name, CONFIG, NONE, Pretraining(**vars(MOMENT) | changed))
        return load_file(folder / "model.safetensors")["model.norm.weight"]

    torch.rand(3)
    first = weights("a")
    assert torch.equal(first, weights("b"))
    assert not torch.equal(first, weights("c", seed=1))


def test_a_folder_that_is_there_is_not_overwritten(tiny):
    with pytest.raises(mfl.LakeError, match="exists already"):
        pretrain(tiny, CONFIG, NONE, MOMENT)
