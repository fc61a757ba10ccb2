"""A user's own ``datasets.Dataset`` with a column ``slice``: drawn by shares, and steered under a ``GRPOTrainer``."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from envtuning import EngineerCurriculum, Thompson
from envtuning.errors import SpecError
from tests.lazily import Lazy, needed

needed("torch", "trl", extra="grpo")
trl, callbacks, own = (
    Lazy(name) for name in ("trl", "envtuning.curriculum.trl_callback", "envtuning.curriculum.dataset_prompts")
)


def rows():
    from datasets import Dataset

    kinds = ["odd"] * 30 + ["even"] * 10
    told = [{"prompt": f"{kind} {number}", "slice": kind, "metadata": "mine"} for number, kind in enumerate(kinds)]
    return Dataset.from_list(told)


def shares(odd, even):
    return own.Parts(slices={"odd": own.Part(share=odd), "even": own.Part(share=even)})


def test_rows_are_drawn_by_the_shares_and_follow_a_swap():
    prompts, same = own.DatasetPrompts(rows(), n=400), own.DatasetPrompts(rows(), n=400)
    assert prompts.dataset[7] == same.dataset[7]
    drawn = prompts.dataset[:]
    assert Counter(drawn["slice"])["odd"] == pytest.approx(200, abs=40)  # equal shares, whatever the numbers of rows
    assert all(prompt.startswith(name) for prompt, name in zip(drawn["prompt"], drawn["slice"], strict=True))
    assert set(drawn["config_version"]) == {1}
    prompts.set_config(shares(0, 0.5))
    drawn = prompts.dataset[:]
    assert set(drawn["slice"]) == {"even"}
    assert len(set(drawn["prompt"])) == 10
    assert set(drawn["config_version"]) == {2}


def test_shares_that_do_not_fit_and_a_missing_column_are_refused():
    prompts = own.DatasetPrompts(rows(), n=4)
    for wrong in (shares(0, 0), own.Parts(slices={"odd": own.Part()})):
        with pytest.raises(SpecError, match="give one to each of even, odd, not all 0"):
            prompts.set_config(wrong)
    with pytest.raises(SpecError, match="no column 'kind', but prompt, slice, metadata: pass column="):
        own.DatasetPrompts(rows(), column="kind")


def by_length(completions, **columns: Any) -> list[float]:
    """Pays by the reply's length, so that a model of random weights is paid differently."""
    return [
        1.0 if len(reply) % 2 == (name == "odd") else 0.5
        for reply, name in zip(completions, columns["slice"], strict=True)
    ]


class Trained:
    """After training; ``read`` has for each batch that was paid the version of its rows and the one in force."""

    def __init__(self, out: Any, curriculum_of: Any, **settings: Any) -> None:
        from envtuning.trainees.language.small import small_model
        from envtuning.trainees.language.tokenizer import sign_tokenizer

        tokenizer = sign_tokenizer()
        model = small_model(tokenizer, width=16, layers=1, heads=2)
        self.prompts = own.DatasetPrompts(rows())
        self.curriculum = curriculum_of(self.prompts.config)
        callback = callbacks.TRLCurriculumCallback(self.prompts, self.curriculum)
        self.read: list[tuple[int, int]] = []

        def paid(completions, config_version, **columns):
            [version] = set(config_version)
            self.read.append((version, self.prompts.version))
            return by_length(completions, **columns)

        self.trainer = trl.GRPOTrainer(
            model, processing_class=tokenizer, train_dataset=self.prompts.dataset, callbacks=[callback],
            reward_funcs=[callback.rewards(paid), lambda completions, **_: [0.0] * len(completions)],
            args=trl.GRPOConfig(
                output_dir=str(out), per_device_train_batch_size=8, num_generations=4, max_completion_length=4, save_strategy="no",
                use_cpu=True, bf16=False, report_to="none", disable_tqdm=True, seed=1, reward_weights=[0.1, 1.0], **settings,
            ),
        )  # fmt: skip
        self.trainer.train()


def rising(config):
    return EngineerCurriculum("rising", config, target=config, every=16, max_questions=3, editable=["slices.*.share"])


def test_rising_steers_the_trainer_and_replies_of_earlier_shares_do_not_count(tmp_path):
    one = Trained(tmp_path, rising, max_steps=10)
    assert one.curriculum.incidents == []
    assert one.curriculum.stage >= 2
    seen = sum(row.episodes for record in one.curriculum.history for row in record.training_results)
    seen += sum(row.episodes for row in one.curriculum.report.training_results)
    assert seen == 8 * sum(version == now for version, now in one.read)  # the weights .1 and 1 change no success


def test_a_sampler_takes_the_engineer_s_place(tmp_path):
    one = Trained(tmp_path, lambda config: Thompson(config, every=16), max_steps=6)
    assert one.prompts.config == one.curriculum.config
    assert one.prompts.version > 1


@pytest.mark.parametrize(
    ("settings", "late"),
    [({}, 1), ({"gradient_accumulation_steps": 2}, 1), ({"steps_per_generation": 2}, 0), ({"num_iterations": 2}, 0)],
)
def test_how_many_generations_after_a_swap_still_have_the_shares_before(tmp_path, settings, late):
    """TRL fetches one batch ahead: that of the next generation only where this one serves a single update."""
    one = Trained(tmp_path, lambda config: Thompson(config, every=16), max_steps=12, **settings)
    behind = [now - version for version, now in one.read]
    assert one.prompts.version > 1
    assert max(behind) == late
