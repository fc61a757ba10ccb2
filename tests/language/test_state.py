"""What a checkpoint is made of, how its first model is named, and what a trained group of replies is reduced to; without a trainer."""

from __future__ import annotations

import json
import pickle
import warnings
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from tests.lazily import Lazy, needed

needed("torch", "trl", extra="grpo")
torch, state = Lazy("torch"), Lazy("envtuning.trainees.language.state")


def copying(model, weights, folder):
    from safetensors.torch import save_file

    from envtuning.trainees.language.state import load_weights

    save_file(weights, folder / "model.safetensors")
    load_weights(folder, model)


class Model:
    """A layer that saves itself as transformers would."""

    def __init__(self, name="models/first/", tied=()):
        self.layer, self.all_tied_weights_keys = torch.nn.Linear(2, 1), dict.fromkeys(tied)
        self.config = SimpleNamespace(_name_or_path=name)

    def state_dict(self):
        return self.layer.state_dict()

    def save_pretrained(self, folder):
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        save_file({"bias": self.state_dict()["bias"]}, folder / "model-1.safetensors")
        save_file({"weight": self.state_dict()["weight"]}, folder / "model-2.safetensors")


TOKENIZER = SimpleNamespace(save_pretrained=lambda folder: (folder / "tokenizer.json").touch())
FIRST = "0123456789abcdef"  # identifies the run's first model


def trainer_of(model, reference=None, made=None):
    one = SimpleNamespace(
        optimizer=None, ref_model=reference, accelerator=SimpleNamespace(unwrap_model=lambda model: model)
    )

    def create_optimizer():
        (made if made is not None else []).append(True)
        one.optimizer = SimpleNamespace(optimizer=torch.optim.Adam(model.layer.parameters()))  # as accelerate wraps it

    one.create_optimizer = create_optimizer
    return one


def test_a_checkpoint_brings_weights_and_moments_back_in_place(tmp_path):
    model, made = Model(), []
    trainer = trainer_of(model, made=made)
    state.optimiser_of(trainer)
    model.layer(torch.ones(1, 2)).sum().backward()
    state.optimiser_of(trainer).step()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    moments = state.optimiser_of(trainer).state_dict()["state"][0]["exp_avg"].clone()
    state.save_state(tmp_path / "new" / "a", trainer, model, TOKENIZER, FIRST)
    state.save_state(tmp_path / "new" / "a", trainer, model, TOKENIZER, FIRST)
    assert sorted(path.name for path in (tmp_path / "new" / "a").iterdir()) == [
        "base.json", "model-1.safetensors", "model-2.safetensors", "optimizer.pt", "tokenizer.json",
    ]  # fmt: skip
    began = json.loads((tmp_path / "new" / "a" / "base.json").read_text())
    assert began == {"name": "first", "weights": FIRST}
    assert made == [True]
    other, addresses = Model(), []
    addresses = [value.data_ptr() for value in other.state_dict().values()]
    theirs = trainer_of(other)
    state.load_state(tmp_path / "new" / "a", theirs, other, FIRST)
    assert all(torch.equal(value, before[name]) for name, value in other.state_dict().items())
    assert [value.data_ptr() for value in other.state_dict().values()] == addresses
    assert torch.equal(state.optimiser_of(theirs).state_dict()["state"][0]["exp_avg"], moments)
    (tmp_path / "new" / "a" / "optimizer.pt").unlink()
    state.load_state(tmp_path / "new" / "a", theirs, other, FIRST)
    assert state.optimiser_of(theirs).state_dict()["state"] == {}


def test_moments_of_a_stranger_run_no_code(tmp_path):
    class Attack:
        def __reduce__(self):
            return (tmp_path / "touched").touch, ()

    model = Model()
    state.save_state(tmp_path / "a", trainer_of(model), model, TOKENIZER, FIRST)
    torch.save(Attack(), tmp_path / "a" / "optimizer.pt")
    with pytest.raises(pickle.UnpicklingError):
        state.load_state(tmp_path / "a", trainer_of(model), model, FIRST)
    assert not (tmp_path / "touched").exists()


def test_weights_are_named_by_16_digits_that_depend_on_each_of_them_and_not_on_their_order():
    one = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([3.0])}
    digest = state.digest_of(one)
    assert (len(digest), set(digest) <= set("0123456789abcdef")) == (16, True)
    assert state.digest_of({"b": one["b"], "a": one["a"]}) == digest
    for other in ({}, {"a": one["a"]}, one | {"b": torch.tensor([3.5])}, one | {"a": torch.tensor([3.0, 0.0])}):
        assert state.digest_of(other) != digest


def test_a_run_began_with_its_reference_or_with_what_lies_below_its_adapter():
    model, reference = Model(), Model()
    assert state.base_digest(trainer_of(model), model) == state.digest_of({})  # beta 0: nothing refers to it
    assert state.base_digest(trainer_of(model, reference), model) == state.digest_of(reference.state_dict())
    adapter = SimpleNamespace(peft_config={}, state_dict=lambda: {"w": weight, "w.lora_A": torch.ones(1)})
    weight = torch.tensor([1.0, 2.0])
    assert state.base_digest(trainer_of(model), adapter) == state.digest_of({"w": weight})


def test_a_model_is_called_by_the_last_part_of_its_place():
    places = {"models/first": "first", "Qwen/Qwen3-4B/": "Qwen3-4B", "bare": "bare", "": "unnamed"}
    assert {place: state.base_name(Model(place)) for place in places} == places
    assert state.base_name(SimpleNamespace(config=SimpleNamespace())) == "unnamed"


def test_a_checkpoint_that_lacks_weights_is_of_another_model_tied_ones_aside(tmp_path):
    weights = {"bias": torch.tensor([5.0])}
    copying(model := Model(tied=["weight"]), weights, tmp_path)
    assert model.state_dict()["bias"].tolist() == [5.0]
    with pytest.raises(ValueError, match=r"\bweight\b.*\b0 more\b"):
        copying(Model(), weights, tmp_path)


def test_a_mixture_of_experts_comes_back_in_place(tmp_path):
    """transformers fuses the experts in memory and saves them one by one, by other names."""
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    from envtuning.trainees.language.state import load_weights

    sizes = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "moe_intermediate_size": 16}
    shape = {
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "head_dim": 8,
    }
    config = Qwen3MoeConfig(**sizes, **shape, num_key_value_heads=1)
    first, second = (Qwen3MoeForCausalLM(config) for _ in range(2))
    places = {name: value.data_ptr() for name, value in second.named_parameters()}
    first.save_pretrained(tmp_path)
    load_weights(tmp_path, second)
    assert all(torch.equal(value, second.state_dict()[name]) for name, value in first.state_dict().items())
    assert {name: value.data_ptr() for name, value in second.named_parameters()} == places
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "stranger/repo"}))
    with pytest.raises(ValueError, match="stranger/repo"):
        load_weights(tmp_path, second)


@pytest.mark.parametrize("heads", [1, 2, 4, 6])
def test_a_small_model_has_the_sizes_it_is_asked_for_and_weights_of_its_seed(heads):
    from envtuning.trainees.language.small import small_model

    class Words:
        pad_token_id, eos_token_id = 0, 1

        def __len__(self):
            return 10

    before = torch.random.get_rng_state()
    model = small_model(Words(), 3, width=12, layers=2, heads=heads)
    assert torch.equal(torch.random.get_rng_state(), before)
    sizes = model.config
    assert (sizes.hidden_size, sizes.intermediate_size, sizes.num_hidden_layers) == (12, 48, 2)
    assert (sizes.num_attention_heads, sizes.num_key_value_heads, sizes.head_dim) == (
        heads,
        max(1, heads // 2),
        12 // heads,
    )
    assert (sizes.vocab_size, sizes.max_position_embeddings, sizes.tie_word_embeddings) == (10, 16_384, True)
    again, other = (small_model(Words(), seed, width=12, layers=2, heads=heads) for seed in (3, 4))
    assert (
        state.digest_of(again.state_dict())
        == state.digest_of(model.state_dict())
        != state.digest_of(other.state_dict())
    )
    with pytest.raises(ValueError, match="width=13 is not a multiple of heads=5: choose one that is"):
        small_model(Words(), width=13, heads=5)


def test_the_small_model_has_1_2_million_parameters():
    from envtuning.trainees.language.small import small_model

    class Words:
        pad_token_id, eos_token_id = 0, 1

        def __len__(self):
            return 1572

    model = small_model(Words())
    assert 1.1e6 < sum(each.numel() for each in model.parameters()) < 1.3e6
    sizes = model.config
    assert (sizes.hidden_size, sizes.num_hidden_layers, sizes.num_attention_heads) == (128, 4, 4)
    assert state.digest_of(model.state_dict()) == state.digest_of(small_model(Words(), 0).state_dict())


@pytest.mark.parametrize(
    ("advantages", "kept", "loss", "part"),
    [
        ([1.0, -1.0, 0.5, 2.0], [0, 1, 2, 3], "grpo", 1.0),
        ([1.0, 0.0, -1.0, 0.0], [0, 2], "grpo", 0.5),
        ([0.0, 0.0, -1.0, 0.0], [2], "dr_grpo", 0.25),
        ([0.0, 0.0, -1.0, 0.0], [2], "dapo", 1.0),  # divided by the tokens of the whole batch, equal groups or not
        ([0.0, 0.0, 0.0, 0.0], [0], "grpo", 0.25),
    ],
)
def test_replies_of_equal_groups_are_left_out_and_the_mean_is_over_all(advantages, kept, loss, part, monkeypatch):
    from trl import GRPOTrainer

    from envtuning.trainees.language.trainers import SignalTrainer

    seen = []
    monkeypatch.setattr(
        GRPOTrainer, "_compute_loss", lambda self, model, inputs: seen.append(inputs) or torch.tensor(8.0)
    )
    trainer = SignalTrainer.__new__(SignalTrainer)
    trainer.loss_type = loss
    inputs = {
        "advantages": torch.tensor(advantages), "completion_mask": torch.ones(4, 3), "ids": torch.arange(8).reshape(4, 2), "whole": torch.tensor(7.0),
        "pixels": torch.arange(3), "number": 5, "names": list("abcd"),
    }  # fmt: skip
    assert float(trainer._compute_loss(None, inputs)) == 8.0 * part
    [given] = seen
    assert given["advantages"].tolist() == [advantages[row] for row in kept]
    assert given["ids"].tolist() == [[2 * row, 2 * row + 1] for row in kept]
    assert (float(given["whole"]), given["pixels"].tolist(), given["number"], given["names"]) == (
        7.0,
        [0, 1, 2],
        5,
        list("abcd"),
    )


@pytest.mark.parametrize("shown", [True, False])
def test_while_it_is_quiet_transformers_shows_no_bars_and_warns_of_no_future_and_afterwards_it_is_as_before(shown):
    from transformers.utils import logging

    from envtuning.trainees.language.quiet import quiet

    before = logging.is_progress_bar_enabled()

    def warned(category, name):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            with quiet() if name else nullcontext():
                warnings.warn_explicit("text", category, "file.py", 1, module=name or "transformers.models")
        return len(found)

    try:
        (logging.enable_progress_bar if shown else logging.disable_progress_bar)()
        with quiet():
            assert not logging.is_progress_bar_enabled()
        assert logging.is_progress_bar_enabled() is shown
        assert warned(FutureWarning, "transformers.models") == 0
        assert (
            warned(FutureWarning, "")
            == warned(FutureWarning, "numpy.core")
            == warned(UserWarning, "transformers.models")
            == 1
        )
    finally:
        (logging.enable_progress_bar if before else logging.disable_progress_bar)()
