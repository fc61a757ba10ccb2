"""One trainer for a whole run: what a swap leaves alone, what loading brings back, what is counted."""

from __future__ import annotations

import copy
from collections import Counter

import pytest

import mapf_frozenlake as mfl
from envtuning.trainees.language.options import LanguageOptions
from envtuning.trainees.language.outcomes import TRUNCATED
from envtuning.trainees.language.tasks import LakePlans
from tests.language.conftest import CONFIG
from tests.lazily import Lazy, needed

needed("torch", "trl", extra="grpo")
torch, learning, state = (
    Lazy(name) for name in ("torch", "envtuning.trainees.language.learner", "envtuning.trainees.language.state")
)

OTHER = mfl.LakeConfig.single(3, 2, hole_ratio=0.0, reward="shaped")


@pytest.fixture(scope="module")
def learner(tiny):
    from tests.language.conftest import QUICK

    one = learning.Learner(LanguageOptions(model=str(tiny), grpo=dict(QUICK), torch_threads=1), seed=0)
    yield one
    one.close()


def rows(config=CONFIG, n=4, seed=0):
    return LakePlans("short", ()).rows(config, n, seed)


def weights(learner):
    return {name: value.clone() for name, value in learner.model.state_dict().items()}


def moments(learner):
    return copy.deepcopy(state.optimiser_of(learner.trainer).state_dict()["state"])


def equal(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


def test_a_swap_leaves_weights_and_moments_alone_and_brings_only_new_rows(learner, monkeypatch):
    learner.train(rows(), seed=1)
    before, adam = weights(learner), moments(learner)
    steps = {int(state["step"]) for state in adam.values()}
    seen = []
    generate = learner.trainer._generate_and_score_completions

    def look(inputs):
        if not seen:  # the swap is done, nothing is learnt yet
            assert equal(weights(learner), before)
            assert equal(moments(learner), adam)
        seen.extend(row["metadata"]["text"] for row in inputs)
        return generate(inputs)

    monkeypatch.setattr(learner.trainer, "_generate_and_score_completions", look)
    new = rows(OTHER, seed=9)
    learner.train(new, seed=2)
    assert set(seen) == {row["metadata"]["text"] for row in new}
    assert not equal(weights(learner), before)
    assert {int(state["step"]) for state in moments(learner).values()} == {step + 2 for step in steps}


def test_a_stretch_is_a_function_of_what_is_loaded_of_its_rows_and_of_its_seed(learner, tmp_path):
    learner.save(tmp_path / "a")
    first = learner.train(rows(), seed=5)
    once = weights(learner), moments(learner)
    torch.rand(7)
    learner.load(tmp_path / "a")
    assert learner.train(rows(), seed=5) == first
    assert equal((weights(learner), moments(learner))[0], once[0])
    assert equal(moments(learner), once[1])
    learner.load(tmp_path / "a")
    assert learner.train(rows(), seed=6) != first


def test_another_process_goes_on_bit_by_bit(learner, tmp_path, options):
    """A fresh trainer stands for a fresh process: it knows nothing but the folder."""
    learner.save(tmp_path / "a")
    learner.train(rows(), seed=5)
    fresh = learning.Learner(LanguageOptions(**options), seed=123)
    fresh.load(tmp_path / "a")
    fresh.train(rows(), seed=5)
    assert equal(weights(fresh), weights(learner))
    assert equal(moments(fresh), moments(learner))
    fresh.close()


def test_the_reference_stays_the_first_model(learner, tmp_path):
    reference = state.digest_of(learner.trainer.ref_model.state_dict())
    learner.train(rows(), seed=1)
    learner.save(tmp_path / "a")
    learner.load(tmp_path / "a")
    assert state.digest_of(learner.trainer.ref_model.state_dict()) == reference
    assert state.digest_of(learner.model.state_dict()) != reference


def test_a_checkpoint_of_another_first_model_is_refused(learner, tmp_path):
    learner.save(tmp_path / "a")
    (tmp_path / "a" / "base.json").write_text('{"name": "another", "weights": "0"}')
    with pytest.raises(ValueError, match="from the model another with weights 0"):
        learner.load(tmp_path / "a")


def test_without_its_optimiser_a_checkpoint_begins_with_fresh_moments(learner, tmp_path):
    learner.save(tmp_path / "a")
    (tmp_path / "a" / "optimizer.pt").unlink()
    learner.load(tmp_path / "a")
    assert moments(learner) == {}
    learner.train(rows(), seed=1)
    assert {int(state["step"]) for state in moments(learner).values()} == {2}


def test_the_learning_rate_is_constant_across_swaps(learner):
    optimiser = state.optimiser_of(learner.trainer)
    rates = []
    for seed in (1, 2):
        learner.train(rows(seed=seed), seed=seed, on_iteration=lambda _: rates.append(optimiser.param_groups[0]["lr"]))
    assert set(rates) == {1e-3}


def test_what_is_counted(learner):
    steps = learner.train(rows(n=8), seed=3)
    assert [step["samples"] for step in steps] == [16.0, 0.0, 16.0, 0.0]
    assert all(step["tokens"] >= 0 for step in steps)
    assert sum(step["tokens"] for step in steps) > 0
    counted = [step for step in steps if "success_rate" in step]
    assert len(counted) == 2  # a batch of replies serves two optimiser steps
    for step in counted:
        assert {
            "truncated_rate",
            "parse_error_rate",
            "equal_groups",
            "entropy",
            "kl",
            "grad_norm",
            "loss",
        } <= step.keys()


def test_replies_cut_at_the_limit_fail_as_truncated(tiny):
    from tests.language.conftest import QUICK

    never_ended = {"max_completion_length": 2, "generation_kwargs": {"min_new_tokens": 2}}
    short = learning.Learner(LanguageOptions(model=str(tiny), grpo=QUICK | never_ended, torch_threads=1), seed=0)
    kinds = []
    take = short.outcomes.take
    short.outcomes.take = lambda: kinds.append(taken := take()) or taken
    steps = short.train(rows(), seed=0)
    assert steps[0]["truncated_rate"] == 1.0
    tallies = [outcome.tally for outcome in kinds if outcome.tally.episodes]
    assert sum((counts.failures for counts in tallies[0].first.values()), Counter()) == {TRUNCATED: 16}
    short.close()


def test_an_interrupted_stretch_leaves_a_trainer_that_goes_on(learner, tmp_path):
    learner.save(tmp_path / "a")
    first = learner.train(rows(), seed=5)
    learner.load(tmp_path / "a")

    def stop(_):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        learner.train(rows(seed=7), seed=8, on_iteration=stop)
    learner.load(tmp_path / "a")
    assert learner.train(rows(), seed=5) == first


def test_the_process_keeps_its_random_state(learner):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    learner.train(rows(), seed=5)
    assert torch.equal(torch.rand(3), expected)


def test_one_batch_of_boards_is_one_call_of_generation(learner, monkeypatch):
    policy = learner.policy()
    calls = []
    generate = policy.model.generate
    monkeypatch.setattr(policy.model, "generate", lambda **given: calls.append(1) or generate(**given))
    talks = [[{"role": "user", "content": row["prompt"][0]["content"]}] for row in rows(n=20)]
    together = policy.reply(talks)
    assert len(calls) == 1
    assert together == [policy.reply([talk])[0] for talk in talks]
    assert all(reply.tokens > 0 for reply in together)


def test_replies_take_the_threads_of_the_options_too(learner, monkeypatch):
    policy, seen, before = learner.policy(), [], torch.get_num_threads()
    generate = policy.model.generate
    monkeypatch.setattr(
        policy.model, "generate", lambda **given: seen.append(torch.get_num_threads()) or generate(**given)
    )
    talk = [{"role": "user", "content": "Lake"}]
    torch.set_num_threads(2)
    try:
        policy.reply([talk])
        assert (seen, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("whole", [None, ["lm_head"]])
def test_an_adapter_alone_is_trained_saved_and_brought_back(options, tmp_path, whole):
    """With it the modules that are trained whole."""
    pytest.importorskip("peft")
    given = LanguageOptions(**options, lora={"r": 4, "target_modules": ["q_proj", "v_proj"], "modules_to_save": whole})
    one = learning.Learner(given, seed=0)
    assert one.trainer.ref_model is None  # the adapter is switched off instead
    assert not any(part.training for part in one.trainer.model.modules())
    one.train(rows(), seed=1)
    one.save(tmp_path / "a")
    assert not (tmp_path / "a" / "model.safetensors").exists()
    after = one.train(rows(), seed=2)
    other = learning.Learner(given, seed=0)
    other.load(tmp_path / "a")
    assert other.train(rows(), seed=2) == after
    assert equal(weights(other), weights(one))
    one.close()
    other.close()


def test_what_the_model_says_of_drawing_touches_no_training_and_is_saved_with_it(tiny, tmp_path):
    """transformers fills from it whatever TRL leaves open."""
    import shutil

    from transformers import GenerationConfig

    from tests.language.conftest import QUICK

    shutil.copytree(tiny, tmp_path / "opinionated")
    habits = GenerationConfig.from_pretrained(tiny)
    habits.update(suppress_tokens=[5, 6], no_repeat_ngram_size=1, do_sample=True, min_p=0.9)
    habits.save_pretrained(tmp_path / "opinionated")
    ended = []
    for folder in (tiny, tmp_path / "opinionated"):
        one = learning.Learner(LanguageOptions(model=str(folder), grpo=dict(QUICK), torch_threads=1), seed=0)
        ended.append(one.train(rows(), seed=1))
        one.save(tmp_path / "saved")
        one.close()
    assert ended[0] == ended[1]
    assert GenerationConfig.from_pretrained(tmp_path / "saved").to_diff_dict() == habits.to_diff_dict()


@pytest.mark.parametrize("grpo", [{}, {"beta": 0.0}])
def test_the_first_model_draws_as_the_one_under_training_does(tiny, tmp_path, grpo):
    """Whatever the hub's model says of it: engineers on the two differ in their weights alone."""
    import shutil

    from transformers import GenerationConfig

    from tests.language.conftest import QUICK

    shutil.copytree(tiny, tmp_path / "opinionated")
    habits = GenerationConfig.from_pretrained(tiny)
    habits.update(do_sample=True, top_k=1, repetition_penalty=1.3)
    habits.save_pretrained(tmp_path / "opinionated")
    given = LanguageOptions(model=str(tmp_path / "opinionated"), grpo=QUICK | grpo, torch_threads=1)
    one = learning.Learner(given, seed=0)
    assert one.base_model().generation_config.to_diff_dict() == one.model.generation_config.to_diff_dict()
    one.close()


def test_a_checkpoint_is_gone_on_from_with_the_learning_rate_of_the_options(learner, tmp_path, tiny):
    from tests.language.conftest import QUICK

    learner.train(rows(), seed=1)
    learner.save(tmp_path / "a")
    given = LanguageOptions(model=str(tiny), grpo=QUICK | {"learning_rate": 1e-5, "adam_beta1": 0.5}, torch_threads=1)
    lower = learning.Learner(given, seed=0)
    lower.load(tmp_path / "a")
    assert equal(moments(lower), moments(learner))
    lower.train(rows(), seed=1)
    optimiser = state.optimiser_of(lower.trainer)
    assert {(group["lr"], group["betas"][0]) for group in optimiser.param_groups} == {(1e-5, 0.5)}
    lower.close()


def mixed(completions, **_):
    """Groups of four: one paid alike, one not, by turns."""
    return [float(number % 8 in (4, 5)) for number in range(len(completions))]


@pytest.mark.parametrize("loss", ["grpo", "dr_grpo", "dapo"])
def test_without_equal_groups_every_step_is_the_same_and_reads_fewer_replies(tiny, loss, monkeypatch):
    from tests.language.conftest import QUICK

    ended, read = [], []
    for skip in (False, True):
        # Adam divides by a gradient's size plus epsilon: with the usual 1e-8, the order of a sum would show where a gradient is almost 0
        grpo = QUICK | {"beta": 0.0, "loss_type": loss, "gradient_accumulation_steps": 2, "adam_epsilon": 1e-6}
        one = learning.Learner(
            LanguageOptions(
                model=str(tiny),
                grpo=grpo,
                torch_threads=1,
                skip_equal_groups=skip,
                reward="tests.language.test_learner:mixed",
            ),
            seed=0,
        )
        read.append(0)
        whole = one.trainer._get_per_token_logps_and_entropies

        def counted(model, ids, *rest, whole=whole, **options):
            read[-1] += len(ids)
            return whole(model, ids, *rest, **options)

        monkeypatch.setattr(one.trainer, "_get_per_token_logps_and_entropies", counted)
        history = one.train(rows(n=8), seed=3)
        assert [step["equal_groups"] for step in history] == [0.5, 0.5]
        ended.append((weights(one), [step["grad_norm"] for step in history]))
        one.close()
    assert read[0] == 32
    assert read[1] == 16
    assert ended[0][1] == pytest.approx(ended[1][1], rel=1e-4)
    for name, value in ended[0][0].items():
        torch.testing.assert_close(ended[1][0][name], value, rtol=0, atol=2e-5, msg=name)


def test_a_batch_of_equal_groups_alone_moves_nothing(tiny):
    from tests.language.conftest import QUICK

    one = learning.Learner(
        LanguageOptions(
            model=str(tiny),
            grpo=QUICK | {"beta": 0.0},
            torch_threads=1,
            skip_equal_groups=True,
            reward="tests.language.test_learner:alike",
        ),
        seed=0,
    )
    before = weights(one)
    history = one.train(rows(), seed=3)
    assert {step["grad_norm"] for step in history} == {0.0}
    assert equal(weights(one), before)
    one.close()


def alike(completions, **_):
    return [1.0] * len(completions)
