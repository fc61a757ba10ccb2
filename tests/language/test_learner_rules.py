"""The learner's rules without a model: how long a stretch is, what it begins from, what a step counts, what it leaves as it was."""

from __future__ import annotations

import math
import random
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from engineers.backends.weights import WEIGHTS
from engineers.shared import own
from envtuning.outcomes import Outcome
from envtuning.trainees.language.options import LanguageOptions
from envtuning.trainees.language.outcomes import Outcomes
from tests.lazily import Lazy, needed

needed("torch", "trl", extra="grpo")
torch, learning = Lazy("torch"), Lazy("envtuning.trainees.language.learner")


def inside(name):
    """What the module keeps to itself."""
    return getattr(import_module("envtuning.trainees.language.learner"), name)


BATCH = {"per_device_train_batch_size": 4, "steps_per_generation": 4, "num_generations": 4}  # 16 replies to 4 prompts


class Trainer:
    """What a stretch sets and asks of TRL's trainer."""

    def __init__(self, vllm=False, fails=False):
        self.use_vllm, self.fails, self.modes = vllm, fails, []
        self._step, self._buffered_inputs, self._last_loaded_step = 7, ["old"], 7
        self._metrics = {"train": {"reward": [1.0]}}
        self.args = SimpleNamespace()
        self.take_trained_tokens = lambda: 7
        self.accelerator = SimpleNamespace(process_index=0, num_processes=1)
        self.model = SimpleNamespace(eval=lambda: self.modes.append("eval"))

    def train(self):
        self.began = {
            "rows": self.train_dataset["prompt"][:], "steps": self.args.max_steps, "seed": self.args.seed,
            "step": self._step, "buffered": self._buffered_inputs, "loaded": self._last_loaded_step,
            "metrics": dict(self._metrics["train"]), "drawn": float(torch.rand(1)), "threads": torch.get_num_threads(),
        }  # fmt: skip
        if self.fails:
            raise RuntimeError("out of memory")


def learner(unit="samples", trainer=None, gradient_steps=2, **options):
    """One that was never made: no model, no trainer of TRL's."""
    one = learning.Learner.__new__(learning.Learner)
    grpo = BATCH | {"gradient_accumulation_steps": gradient_steps} | options.pop("grpo", {})
    one.options, one.unit, one.tasks = LanguageOptions(model="m", grpo=grpo, **options), unit, None
    one.trainer, one.outcomes, one.watch = trainer or Trainer(), Outcomes(frozenset()), inside("_Watch")()
    return one


def rows(n):
    return [{"prompt": str(number), "metadata": {"slice": 3}} for number in range(n)]


@pytest.mark.parametrize(
    ("unit", "budget", "prompts"),
    [
        ("samples", 0, 4), ("samples", 1, 4), ("samples", 16, 4), ("samples", 17, 8), ("samples", 33, 12),
        ("tokens", 0, 4), ("tokens", 17 * 24 - 1, 4), ("tokens", 17 * 24, 8), ("tokens", 32 * 24, 8), ("tokens", 33 * 24, 12),
    ],
)  # fmt: skip
def test_a_budget_draws_whole_batches_of_prompts_a_reply_in_tokens_taken_as_at_least_24(unit, budget, prompts):
    assert learner(unit).prompts_for(budget) == prompts


@pytest.fixture
def seeded(monkeypatch):
    """The seeds that accelerate is given; it would draw each process's own from them, which needs a group of processes."""
    import accelerate.utils

    given, seed_for_real = [], accelerate.utils.set_seed

    def set_seed(seed, device_specific=False):
        given.append((seed, device_specific))
        seed_for_real(seed)

    monkeypatch.setattr(accelerate.utils, "set_seed", set_seed)
    return given


@pytest.mark.parametrize("vllm", [False, True])
def test_a_stretch_begins_from_its_rows_and_its_seed_alone(vllm, seeded):
    one = learner(trainer=Trainer(vllm), torch_threads=2)
    one.outcomes.tally.observe(
        Outcome("3", False, 0.0, "hole")
    )  # of a stretch that was interrupted between reply and step
    before = torch.get_num_threads()
    assert one.train(rows(8), seed=2**32 + 5) == []
    began = dict(one.trainer.began)
    assert one.trainer.modes == ["eval"]
    with torch.random.fork_rng():
        torch.manual_seed(5)
        assert began.pop("drawn") == float(torch.rand(1))
    assert began == {
        "rows": [str(number) for number in range(8)], "steps": 4, "seed": 2**32 + 5, "step": 0, "buffered": None,
        "loaded": -1 if vllm else 7, "metrics": {}, "threads": 2,
    }  # fmt: skip
    assert one.outcomes.metrics() == {}
    assert torch.get_num_threads() == before


def test_after_a_stretch_that_failed_the_model_answers_and_threads_are_the_processs_own(seeded):
    one, before = learner(trainer=Trainer(fails=True)), torch.get_num_threads()
    with pytest.raises(RuntimeError, match="out of memory"):
        one.train(rows(4), seed=1)
    assert one.trainer.modes == ["eval"]
    assert one.trainer.began["threads"] == before == torch.get_num_threads()


@pytest.mark.parametrize("n", [0, 3, 6])
def test_rows_that_make_no_whole_batches_are_refused(n):
    with pytest.raises(ValueError, match=f"{n} rows: give a multiple of the 4 prompts that make a batch"):
        learner().train(rows(n), seed=1)


def stepped(watch, step, replies=0, **logs):
    """The metrics of one optimiser step before which replies were generated, and whether TRL is told to stop."""
    for _ in range(replies):
        watch.learner.outcomes.tally.observe(Outcome("3", False, 0.0, "hole"))
    state, control = SimpleNamespace(global_step=step), SimpleNamespace(should_training_stop=False)
    watch.on_log(None, state, control, {"grad_norm": 0.5} | logs)
    return watch.history[-1], control.should_training_stop


def test_replies_are_counted_at_the_step_before_which_they_were_generated():
    one, samples = learner(), [16, 0, 24, 0]
    one.watch.begin(one, None, None)
    told = [stepped(one.watch, number, replies) for number, replies in enumerate(samples, 1)]
    assert [step["samples"] for step, _ in told] == samples
    assert not any(stops for _, stops in told)


def test_tokens_of_dropped_replies_are_charged_and_those_of_replies_are_told():
    one = learner()
    one.watch.begin(one, None, None)
    one.outcomes.tokens.update(generated=40, dropped=25)
    step = stepped(one.watch, 1, 8, num_tokens=100.0)[0]
    assert (step["tokens"], step["generated_tokens"], step["trained_tokens"]) == (125.0, 40.0, 7.0)
    assert stepped(one.watch, 2, num_tokens=100.0)[0]["tokens"] == 0.0


def test_tokens_are_those_since_the_last_step():
    one = learner()
    one.watch.begin(one, None, None)
    tokens = [stepped(one.watch, step, **logs)[0]["tokens"] for step, logs in
              enumerate([{}, {"num_tokens": 100.0}, {"num_tokens": 250.0}, {}, {"num_tokens": 260.0}], 1)]  # fmt: skip
    assert tokens == [0.0, 100.0, 150.0, 0.0, 10.0]
    one.watch.begin(one, None, None)
    assert stepped(one.watch, 1, num_tokens=30.0)[0]["tokens"] == 30.0


@pytest.mark.parametrize(
    ("unit", "budget", "stopped"),
    [
        ("samples", 16, 2),
        ("samples", 17, 4),
        ("samples", 32, 4),
        ("tokens", 20, 2),
        ("tokens", 21, 4),
        ("tokens", 5, 2),
    ],
)
def test_a_stretch_stops_behind_the_batch_that_spends_its_budget(unit, budget, stopped):
    """Two optimiser steps a batch, ten tokens each: never in the middle of a batch, and not one batch more."""
    one = learner(unit)
    one.watch.begin(one, None, budget)
    stops = [stepped(one.watch, number, 16 * (number % 2), num_tokens=10.0 * number)[1] for number in range(1, 7)]
    assert stops.index(True) + 1 == stopped


def test_a_step_has_trls_figures_under_the_reports_names_and_the_rates_of_its_replies():
    one, told = learner(), []
    one.watch.begin(one, told.append, None)
    one.outcomes.tally.observe(Outcome("3", True, 1.0))
    one.outcomes.tally.observe(Outcome("3", False, 0.0, "hole"))
    step, _ = stepped(
        one.watch, 1, loss=0.25, reward=1, kl=None, entropy=2.0, frac_reward_zero_std=0.5, learning_rate=9.0
    )
    assert step == {
        "grad_norm": 0.5, "loss": 0.25, "reward": 1.0, "entropy": 2.0, "equal_groups": 0.5, "tokens": 0.0, "samples": 2.0,
        "success_rate": 0.5, "parse_error_rate": 0.0, "truncated_rate": 0.0, "generated_tokens": 0.0, "trained_tokens": 7.0,
    }  # fmt: skip
    tally = told[0].pop("outcomes")
    assert (tally.first["3"].episodes, tally.first["3"].successes, tally.first["3"].failures) == (2, 1, {"hole": 1})
    assert told == [step]
    told[0]["loss"] = -1.0  # the caller's own to change
    assert one.watch.history == [step]
    assert step["loss"] == 0.25
    assert "success_rate" not in stepped(one.watch, 2)[0]


@pytest.mark.parametrize("logs", [None, {}, {"train_runtime": 3.0}])
def test_what_trl_logs_at_the_end_of_a_stretch_is_no_step(logs):
    one = learner()
    one.watch.begin(one, None, 1)
    one.watch.on_log(None, None, None, logs)
    assert one.watch.history == []


@pytest.mark.parametrize(("processes", "gathered"), [(1, 0), (2, 1), (3, 1)])
def test_replies_of_several_processes_are_counted_together(processes, gathered, monkeypatch):
    asked = []
    monkeypatch.setattr(Outcomes, "of_all_processes", lambda self: asked.append(1) or self)
    one = learner(processes=processes)
    one.watch.begin(one, None, None)
    stepped(one.watch, 1)
    assert len(asked) == gathered


def test_training_leaves_every_random_state_as_it_was(seeded):
    def draw():
        return random.random(), float(np.random.rand()), float(torch.rand(1))  # noqa: NPY002

    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002
    expected = draw()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002
    with inside("_random_state")(3):
        drawn = draw()
    assert draw() == expected
    with inside("_random_state")(3):
        assert draw() == drawn
    with inside("_random_state")(4):
        assert draw() != drawn


@pytest.mark.parametrize(("begun", "devices"), [(True, [0, 1]), (False, [])])
def test_on_gpus_their_random_states_are_kept_too_and_each_process_draws_its_own(begun, devices, seeded, monkeypatch):
    kept = []

    @contextmanager
    def fork(devices=None):
        kept.append(devices)
        yield

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: begun)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.random, "fork_rng", fork)
    before = torch.random.get_rng_state()
    with inside("_random_state")(2**32 + 9):
        pass
    torch.random.set_rng_state(before)
    assert kept == [devices]
    assert seeded == [(9, True)]


def test_a_cpu_computes_in_its_own_precision(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert inside("_of_device")() == {"use_cpu": True, "bf16": False}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert inside("_of_device")() == {}


def test_types_are_torchs_own():
    assert inside("_dtype")("auto") == "auto"
    assert inside("_dtype")("bfloat16") is torch.bfloat16
    for name in ("float31", "nn"):
        with pytest.raises(ValueError, match=f"dtype='{name}': give 'auto' or a type as torch names it"):
            inside("_dtype")(name)


def test_an_adapter_is_one_for_language_models():
    small, large = (SimpleNamespace(num_parameters=lambda count=count: count) for count in (49_999_999, 50_000_000))
    assert inside("_lora")(None, large) is None
    made = inside("_lora")({"r": 4}, small)
    assert (made.r, made.task_type) == (4, "CAUSAL_LM")
    assert inside("_lora")("auto", small) is None
    assert (inside("_lora")("auto", large).r, inside("_lora")("auto", large).target_modules) == (16, "all-linear")


def test_a_reward_function_is_named_by_its_module():
    assert learning.named(None) is None
    own.trust(["math"])
    assert learning.named("math:sqrt")(9.0) == 3.0
    for place in ("math:root", "no_such_module:f", "math"):
        with pytest.raises(ValueError, match=f"reward='{place}'"):
            learning.named(place)


def test_replies_in_training_are_sampled_and_others_as_the_options_say(monkeypatch):
    grpo = {"temperature": 0.9, "max_completion_length": 7, "chat_template_kwargs": {"enable_thinking": False}}
    one = learner(grpo=grpo, reply_temperature=0.25, reply_batch=3)
    one.trainer.accelerator, one.tokenizer = SimpleNamespace(unwrap_model=lambda model: "the model"), "its tokenizer"

    def made(policy):
        return policy.model, policy.tokenizer, policy.max_tokens, policy.temperature, policy.batch, policy.template

    rest = 3, {"enable_thinking": False}
    assert made(one.policy()) == ("the model", "its tokenizer", 7, 0.25, *rest)
    assert made(one.policy(0.0)) == ("the model", "its tokenizer", 7, 0.0, *rest)
    played = []
    monkeypatch.setattr(
        "envtuning.trainees.language.learner.rollout",
        lambda policy, *given: played.append((policy.sampling, *given)) or conversation,
    )
    conversation = {
        "prompt_ids": [[1]] * 4, "completion_ids": [[2, 3]] * 4, "logprobs": None,
        "paid": [1.0] * 4, "failure": [None] * 4, "score": [1.0] * 4,
    }  # fmt: skip
    one.metadata, one.spare = [{"slice": 3, "case": "a"}], []
    prompts = [[{"role": "user", "content": "?", "case": 0}]] * 4
    one.tasks = SimpleNamespace(begin="begin", judge="judge")
    one.trainer.generation_config = "as TRL draws"
    assert one._play(prompts, one.trainer) == conversation
    assert played == [("as TRL draws", prompts, "begin", "judge")]
    assert (one.outcomes.tally.episodes, one.outcomes.tokens["generated"]) == (4, 8)


@pytest.mark.parametrize("name", ["use_vllm", "use_transformers_continuous_batching", "use_transformers_paged"])
def test_turns_are_refused_where_another_generator_was_asked_for(name):
    options = LanguageOptions(model="m", grpo={name: True})
    with pytest.raises(ValueError, match=f"grpo.{name}: conversations of several turns are generated by transformers"):
        learning.Learner(options, 0, SimpleNamespace())


def test_closing_removes_the_trainers_folder():
    one, removed = learner(), []
    one.folder = SimpleNamespace(cleanup=lambda: removed.append(True))
    one.close()
    assert removed == [True]


def test_the_first_model_is_the_reference_where_there_is_one_and_otherwise_loaded_once(monkeypatch):
    loaded = []

    class Model(SimpleNamespace):
        def to(self, device):
            return Model(device=device)

        def eval(self):
            return self

    class Loading:
        @staticmethod
        def from_pretrained(name, dtype=None, **weights):
            loaded.append((name, dtype, weights))
            return Model()

    monkeypatch.setattr("envtuning.trainees.language.learner.AutoModelForCausalLM", Loading)
    one = learner(dtype="bfloat16")
    reference = Model()
    one._base, one.trainer.ref_model, one.habits = None, reference, SimpleNamespace(eos_token_id=1)
    one.trainer.accelerator = SimpleNamespace(unwrap_model=lambda model: model)
    assert one.base_model() is reference
    assert loaded == []
    one.trainer.ref_model, one.trainer.model = None, Model(device="there")
    assert one.base_model().device == "there"
    assert one.base_model() is one.base_model()
    assert loaded == [("m", torch.bfloat16, WEIGHTS)]


def test_a_learner_is_made_as_its_options_and_its_tasks_say(tmp_path):
    """Its prompts are padded on the left whatever the tokenizer's folder says; plans are no rollouts; nothing is printed."""
    from transformers import PrinterCallback

    from envtuning.trainees.language.small import small_model
    from envtuning.trainees.language.tokenizer import small_tokenizer

    tokenizer = small_tokenizer()
    tokenizer.padding_side = "right"
    tokenizer.save_pretrained(tmp_path)
    small_model(tokenizer, width=8, layers=1, heads=1).save_pretrained(tmp_path)
    grpo = BATCH | {"gradient_accumulation_steps": 2, "beta": 0.0}
    own.trust(["math"])
    options = LanguageOptions(model=str(tmp_path), dtype="float64", grpo=grpo, reward="math:sqrt")
    one = learning.Learner(options, 0)
    assert one.outcomes.pays is math.sqrt
    assert one.outcomes.eos == {tokenizer.eos_token_id}
    assert one.tokenizer.padding_side == "left"
    assert one.model.dtype == torch.float64
    assert not one.model.training
    assert one.trainer.rollout_func is None
    assert not [each for each in one.trainer.callback_handler.callbacks if isinstance(each, PrinterCallback)]
    assert Path(one.folder.name).name.startswith("grpo-")
    one.close()
