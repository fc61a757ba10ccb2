"""A tiny model with the small tokenizer, taught for a moment, and options under which a training step takes no time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mapf_frozenlake as mfl

CONFIG = mfl.LakeConfig.single(3, 2, hole_ratio=0.2, reward="shaped")

QUICK: dict[str, Any] = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "steps_per_generation": 2,
    "num_generations": 4,
    "max_completion_length": 24,
    "learning_rate": 1e-3,
}


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Tiny models are slower on many threads, and the cores are shared."""
    pytest.importorskip("torch").set_num_threads(1)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pretrained folder: a few dozen thousand parameters, a few batches of supervision."""
    pytest.importorskip("trl")
    from envtuning.trainees.language.pretrain import Pretraining, pretrain

    options = Pretraining(samples=2_400, batch=16, width=32, layers=1, heads=2, learning_rate=5e-3)
    return pretrain(tmp_path_factory.mktemp("models") / "tiny", CONFIG, np.empty(0, np.uint64), options)


@pytest.fixture(scope="session")
def foreign(tiny: Path) -> Path:
    """The same model with nothing said of what it was taught on, as one from the hub."""
    folder = tiny.with_name("foreign")
    shutil.copytree(tiny, folder, ignore=shutil.ignore_patterns("held_out.npy"))
    return folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights that write one sign a token."""
    from envtuning.trainees.language.small import small_model
    from envtuning.trainees.language.tokenizer import sign_tokenizer

    folder, tokenizer = tmp_path_factory.mktemp("models") / "signs", sign_tokenizer()
    small_model(tokenizer, width=16, layers=1, heads=2).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def options(tiny: Path) -> dict[str, Any]:
    return {"model": str(tiny), "grpo": dict(QUICK), "torch_threads": 1}
