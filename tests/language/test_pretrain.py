"""Pretraining: what is taught, what is held out, and the folder that comes of it."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import mapf_frozenlake as mfl
from envtuning.trainees.language import pretrain as pretraining
from envtuning.trainees.language import supervised
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
    sizes = model.config.hidden_size, model.config.num_hidden_layers, model.config.num_attention_heads
    assert sizes == (32, 1, 2)
    assert tokenizer.chat_template
    assert tokenizer.eos_token_id == model.config.eos_token_id
    record = json.loads((tiny / "pretraining.json").read_text())
    assert record["loss"] < 2.0
    assert record["parameters"] == sum(each.numel() for each in model.parameters())
    assert mfl.LakeConfig.model_validate(record["config"]) == CONFIG


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
    with pytest.raises(mfl.LakeError, match=r"\d+ of \d+ held-out boards.*`envtuning pretrain --hold-out`"):
        raise_unless_unseen(folder, mfl.validation_suite(CONFIG, 40, seed=1))


def test_only_the_plan_is_taught_and_it_is_optimal(tiny):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    boards = mfl.generate(CONFIG, 5)
    for (ids, labels), board in zip(pretraining.lessons(tokenizer, boards, "short"), boards, strict=True):
        answer = [token for token in labels if token != supervised.IGNORED]
        assert ids[-len(answer) :] == answer
        assert mfl.judge(board, mfl.parse_plan(tokenizer.decode(answer, skip_special_tokens=True), 2)).optimal
        assert mfl.from_text(tokenizer.decode(ids[: -len(answer)], skip_special_tokens=True)) == board


def test_equal_seeds_give_equal_weights_and_other_seeds_others(tmp_path, monkeypatch):
    from safetensors.torch import load_file

    def weights(name, **changed):
        told = []
        times = iter([100.0, 103.26])
        monkeypatch.setattr(pretraining.time, "process_time", lambda: next(times))
        options = Pretraining(**vars(MOMENT) | changed)
        folder = pretrain(tmp_path / "new" / name, CONFIG, NONE, options, lambda done, loss: told.append((done, loss)))
        monkeypatch.undo()
        assert [done for done, _ in told] == [16, 32, 48, 64]
        written = (folder / "pretraining.json").read_text()
        assert json.dumps(json.loads(written), indent=1) + "\n" == written
        assert (json.loads(written)["loss"], json.loads(written)["cpu_seconds"]) == (told[-1][1], 3.3)
        return load_file(folder / "model.safetensors")["model.norm.weight"]

    torch.rand(3)
    first = weights("a")
    assert torch.equal(first, weights("b"))
    assert not torch.equal(first, weights("c", seed=1))


def test_a_folder_that_is_there_is_not_overwritten(tiny):
    with pytest.raises(mfl.LakeError, match="exists already"):
        pretrain(tiny, CONFIG, NONE, MOMENT)


def test_the_default_is_what_the_figures_of_small_models_were_measured_with():
    assert vars(Pretraining()) == {
        "samples": 60_000, "batch": 64, "learning_rate": 2e-3, "seed": 0, "style": "short", "width": 128, "layers": 4, "heads": 4,
    }  # fmt: skip
    assert Pretraining(samples=1, batch=1).samples == 1
    for name in ("samples", "batch"):
        with pytest.raises(ValueError, match=f"{name}=0: give at least 1"):
            Pretraining(**{name: 0})


def test_boards_come_in_stretches_of_one_sequence_and_each_is_taught_once(monkeypatch):
    """4,096 boards at a time for memory's sake: the same boards as at once, shuffled within a stretch."""
    keys, drawn = np.array([7], np.uint64), []

    def generate(config, n, seed=0, *, exclude=None, first=0, num_threads=None):
        drawn.append((config, n, seed, first, exclude is keys, num_threads))
        return list(range(first, first + n))

    monkeypatch.setattr(pretraining, "CHUNK", 6)
    monkeypatch.setattr(pretraining, "generate", generate)
    monkeypatch.setattr(
        pretraining, "lessons", lambda tokenizer, boards, style: [([board, 1], [board]) for board in boards]
    )
    monkeypatch.setattr(pretraining, "padded", lambda taught, pad: ([board for [board, _], _ in taught], pad))

    def batches(seed):
        tokenizer = SimpleNamespace(pad_token_id=3)
        return list(pretraining.batches_of(tokenizer, CONFIG, keys, Pretraining(samples=14, batch=4, seed=seed)))

    found = batches(5)
    assert drawn == [(CONFIG, n, 5, first, True, 1) for n, first in ((6, 0), (6, 6), (2, 12))]
    assert [len(rows) for rows, _ in found] == [4, 2, 4, 2, 2]
    assert {pad for _, pad in found} == {3}
    rows = [board for rows, _ in found for board in rows]
    assert [set(rows[:6]), set(rows[6:12]), set(rows[12:])] == [set(range(6)), set(range(6, 12)), {12, 13}]
    assert rows[:6] != sorted(rows[:6])
    assert found == batches(5) != batches(6)


def test_rows_are_padded_on_the_right_and_padding_is_not_taught():
    ids, labels = supervised.padded([([5, 6, 7], [-100, 6, 7]), ([8], [8])], pad=3)
    assert ids.tolist() == [[5, 6, 7], [8, 3, 3]]
    assert labels.tolist() == [[-100, 6, 7], [8, -100, -100]]
    assert torch.nn.CrossEntropyLoss().ignore_index == supervised.IGNORED  # so that any trainer reads our labels


class Table:
    """A model whose odds of the next token are a row of weights, larger steps for larger tokens; and its twin in numpy."""

    def __new__(cls, size):
        nn = torch.nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.lm_head = nn.Linear(size, size, bias=False)
                with torch.no_grad():
                    self.lm_head.weight.copy_(torch.linspace(-1, 1, size * size).reshape(size, size))
                self.read = []

            def model(self, input_ids, use_cache=True):
                self.read.append((self.training, use_cache))
                states = torch.eye(size)[input_ids] * (input_ids[..., None] + 1.0)
                return SimpleNamespace(last_hidden_state=states)

        return Model()


def adam(weights, batches, rates):
    """AdamW with betas 0.9 and 0.98, a decay of 0.01 and gradients of norm 1 at most, in double precision."""
    weights, first, second, losses = weights.astype(float).copy(), 0.0, 0.0, []
    for step, ((ids, labels), rate) in enumerate(zip(batches, rates, strict=True), 1):
        loss, gradient, taught = 0.0, np.zeros_like(weights), 0
        for row, wanted in zip(ids, labels, strict=True):
            for token, label in zip(row[:-1], wanted[1:], strict=True):
                if label >= 0:
                    odds = weights[:, token] * (token + 1.0)
                    chances = np.exp(odds - np.logaddexp.reduce(odds))
                    loss, taught = loss - np.log(chances[label]), taught + 1
                    chances[label] -= 1
                    gradient[:, token] += chances * (token + 1.0)
        losses.append(loss / taught)
        gradient = gradient / taught
        gradient = gradient * min(1.0, 1.0 / (np.linalg.norm(gradient) + 1e-6))
        first, second = 0.9 * first + 0.1 * gradient, 0.98 * second + 0.02 * gradient**2
        weights = weights * (1 - rate * 0.01)
        weights = weights - rate * first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.98**step)) + 1e-8)
    return weights, losses


def test_supervision_is_cross_entropy_of_the_taught_tokens_under_adam_with_a_warm_cosine(monkeypatch):
    batches = [
        ([[4, 3, 1], [4, 4, 2]], [[-100, 3, 1], [-100, 4, 2]]),
        ([[0, 1, 0]], [[-100, -100, 0]]),
        ([[0, 0, 3], [1, 0, 2]], [[0, 1, -100], [-100, -100, 2]]),
        ([[3, 2, 2]], [[-100, 0, 1]]),
    ]
    tensors = [(torch.tensor(ids), torch.tensor(labels)) for ids, labels in batches]
    monkeypatch.setattr(pretraining, "batches_of", lambda *given: iter(tensors))
    model, told = Table(5), []
    start = model.lm_head.weight.detach().numpy().copy()
    options = Pretraining(samples=7, batch=2, learning_rate=0.1)
    losses = pretraining.teach(model, None, CONFIG, NONE, options, lambda done, loss: told.append((done, loss)))
    rates = [0.1 * pretraining.warmed_cosine(number / 4) for number in range(4)]
    expected, its_losses = adam(start, batches, rates)
    assert losses == pytest.approx(its_losses, rel=1e-4)
    assert model.lm_head.weight.detach().numpy() == pytest.approx(expected, abs=1e-4)
    assert told == list(zip((2, 4, 6, 7), losses, strict=True))
    assert model.read == [(True, False)] * 4
    assert not model.training
