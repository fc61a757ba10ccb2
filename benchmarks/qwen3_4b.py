"""Does ``examples/qwen3-4b.yaml`` fit on its GPU, and how fast is it? ``python -m benchmarks.qwen3_4b``: two optimiser steps on a GPU.

The model has Qwen3-4B's published dimensions and random weights: memory and time of a step are those of the real one, what it learns
is not. It never ends a reply, so every one is as long as the settings allow, and our tokenizer spells a board in more tokens than
Qwen's: the figures are upper bounds. ``--tiny`` runs the same on a CPU with small numbers and stores nothing.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from benchmarks._record import raise_unless_committed, record
from benchmarks.bfcl.memory import highest_kib
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, load_spec
from envtuning.trainees.language.learner import Learner
from envtuning.trainees.language.options import LanguageOptions
from envtuning.trainees.language.tasks import LakePlans
from envtuning.trainees.language.tokenizer import small_tokenizer

SETTINGS = Path(__file__).parents[1] / "examples" / "qwen3-4b.yaml"
PUBLISHED: dict[str, Any] = {  # config.json of Qwen/Qwen3-4B
    "vocab_size": 151_936,
    "hidden_size": 2_560,
    "intermediate_size": 9_728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40_960,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
}
TINY: dict[str, Any] = {
    "vocab_size": 2_048,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
}
ON_A_CPU: dict[str, Any] = {
    "trainee.options.dtype": "float32",
    "trainee.options.grpo.bf16": False,
    "trainee.options.grpo.max_completion_length": 8,
}


def random_model(folder: Path, dimensions: dict[str, Any], dtype: str) -> int:
    """A transformers folder of these dimensions with our tokenizer; how many parameters it has."""
    tokenizer = small_tokenizer()
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.device(device):
        model = Qwen3ForCausalLM(Qwen3Config(**dimensions, **special)).to(getattr(torch, dtype))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.num_parameters()


def two_steps(spec: RunSpec, model: Path) -> dict[str, Any]:
    """One batch of replies and the optimiser steps on it, by the settings of this run; what they took."""
    options = LanguageOptions(**spec.trainee.options | {"model": str(model)})
    config = Plan.of(spec).target
    rows = LakePlans(spec.world.options["style"], ()).rows(config, options.batch // options.group, seed=0)
    learner = Learner(options, seed=0)
    try:
        begin = time.perf_counter()
        steps = learner.train(rows, seed=0)
        seconds = time.perf_counter() - begin
    finally:
        learner.close()
    tokens = sum(step["tokens"] for step in steps)
    return {
        "optimiser_steps": len(steps),
        "replies": options.batch,
        "longest_reply": options.of_grpo("max_completion_length"),
        "tokens": tokens,
        "seconds": round(seconds, 2),
        "tokens_per_second": round(tokens / seconds, 1),
        "peak_memory_gb": round(peak_memory() / 1e9, 2),
    }


def peak_memory() -> int:
    """Bytes on the GPU; without one, of this process."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_reserved()
    return highest_kib() * 1024


def measured(*, tiny: bool = False) -> dict[str, Any]:
    """Memory and pace of the settings' first steps; ``tiny`` on a CPU."""
    spec = load_spec(SETTINGS, changes=ON_A_CPU if tiny else {})
    with tempfile.TemporaryDirectory() as made:
        parameters = random_model(Path(made), TINY if tiny else PUBLISHED, spec.trainee.options["dtype"])
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
        return {"device": device, "parameters": parameters, **two_steps(spec, Path(made))}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--tiny", action="store_true", help="small numbers on a CPU: whether the command works; stores nothing"
    )
    arguments = parser.parse_args()
    if not arguments.tiny:
        if not torch.cuda.is_available():
            raise SystemExit("there is no GPU here: give --tiny to try the command with a tiny model on the CPU")
        raise_unless_committed()
    figures = measured(tiny=arguments.tiny)
    for name, value in figures.items():
        print(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}")
    if not arguments.tiny:
        print(f"figures: {record('qwen3_4b', figures)}")


if __name__ == "__main__":
    main()
