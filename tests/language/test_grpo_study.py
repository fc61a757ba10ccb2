"""The study of GRPO, in two steps of everything: its arms and what it keeps."""

from __future__ import annotations

import json

from filelock import FileLock

from tests.lazily import Lazy, needed

needed("torch", "trl", extra="grpo")
grpo = Lazy("benchmarks.grpo")


def test_two_steps_of_every_arm(tmp_path, monkeypatch):
    small = {"per_device_train_batch_size": 16, "gradient_accumulation_steps": 1, "steps_per_generation": 1}
    monkeypatch.setattr("benchmarks.grpo.SMALL", grpo.SMALL | small)
    study = grpo.Study(tmp_path, samples=64, grpo_samples=32, boards=24, best_of=2)
    assert not study.claim(1, "continued supervision")  # which takes as long as GRPO did
    with FileLock(study.file(1, "warm start").with_suffix(".lock")):
        assert not study.claim(1, "warm start")  # another process does it
    study.work([1])
    found = {arm: study.figures(1, arm) for arm in grpo.ARMS}
    assert found["GRPO"]["steps"] == found["GRPO, random rewards"]["steps"] == 2
    assert found["GRPO"]["samples"] == found["rejection fine-tuning"]["samples"] == 32
    assert found["continued supervision"]["cpu_seconds"] >= found["GRPO"]["cpu_seconds"]
    brief = grpo.briefly(found["GRPO"])
    assert len(brief["success_rate"]) == len(brief["entropy"]) == 2
    assert "history" not in brief
    assert grpo.briefly(found["warm start"]) == found["warm start"]
    for figures in found.values():
        assert (figures["boards"], figures["best_of_16_boards"]) == (24, 2)
        assert all(0 <= figures[column] <= 1 for column in ("greedy", "sampled", "best_of_16"))
    study.file(1, "GRPO").write_text(json.dumps(found["GRPO"] | {"greedy": 0.75}))
    assert study.figures(1, "GRPO")["greedy"] == 0.75  # done once
    table = grpo.summary({arm: [found[arm] | {"greedy": 0.25}, study.figures(1, arm)] for arm in grpo.ARMS})
    assert table["GRPO"]["greedy"]["mean"] == 0.5
    assert "gain" not in table["warm start"]["greedy"]


def test_the_papers_weight_of_the_kl_term_is_trained_with_and_then_no_group_is_skipped(tmp_path, monkeypatch):
    small = {"per_device_train_batch_size": 16, "gradient_accumulation_steps": 1, "steps_per_generation": 1}
    monkeypatch.setattr("benchmarks.grpo.SMALL", grpo.SMALL | small)
    study = grpo.Study(tmp_path, samples=64, grpo_samples=32, boards=8, best_of=1, beta=0.1)
    found = [study.figures(1, arm) for arm in ("warm start", "GRPO")][-1]
    assert study.grpo["beta"] == 0.1
    assert all("kl" in step for step in found["history"])  # TRL logs it where there is a KL term
