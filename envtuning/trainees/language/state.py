"""Save and load a language model: an ordinary transformers folder with the optimiser's state beside it; loads in place.

::

    CHECKPOINT/model.safetensors, config.json, tokenizer.json, …   as `save_pretrained` writes them; LoRA: the adapter alone
               optimizer.pt      Adam's moments; only the last stage of a run keeps them
               base.json         identifies the model of the KL term's reference
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from engineers.backends.weights import WEIGHTS, raise_unless_data
from engineers.shared import untrusted
from envtuning.trainees.tensors import copy_into, load_tensors, raise_unless_finite, raise_unless_fits
from envtuning.trainees.visited import FILE as VISITED

OPTIMISER = "optimizer.pt"
BASE = "base.json"


def save_state(folder: Path, trainer: Any, model: Any, tokenizer: Any, base: str) -> None:
    """``base`` is the ``base_digest`` of the run's first model."""
    save_weights(folder, model, tokenizer, optimiser_of(trainer))
    began = {"name": base_name(model), "weights": base}
    (folder / BASE).write_text(json.dumps(began) + "\n", encoding="utf-8")


def save_weights(folder: Path, model: Any, tokenizer: Any, optimiser: torch.optim.Optimizer) -> None:
    """Write the files that ``load_weights``, ``load_optimiser`` and transformers read."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    torch.save(optimiser.state_dict(), folder / OPTIMISER)


def remove_training_state(folder: Path) -> None:
    """Remove what only further training needs: the optimiser's state, which is larger than a large model itself, and the questions."""
    for name in (OPTIMISER, VISITED):
        (folder / name).unlink(missing_ok=True)


def load_state(folder: Path, trainer: Any, model: Any, base: str) -> None:
    """Raises ``ValueError`` for a checkpoint of a run that began with another model."""
    began = untrusted.parsed((folder / BASE).read_bytes())
    if began["weights"] != base:
        raise ValueError(
            f"{folder} continues from the model {began['name']} with weights {began['weights']}, but the weights there now are "
            f"{base}: restore the run's first model, or start a new run"
        )
    if is_peft(model):
        from peft import set_peft_model_state_dict
        from peft.utils import load_peft_weights

        adapter = load_peft_weights(str(folder), device=str(model.device))
        raise_unless_finite(adapter, "the adapter")
        set_peft_model_state_dict(model, adapter)
    else:
        load_weights(folder, model)
    load_optimiser(folder, optimiser_of(trainer))


def load_optimiser(folder: Path, optimiser: torch.optim.Optimizer) -> None:
    """Restore the saved moments; without a file the optimiser has none."""
    kept = folder / OPTIMISER
    if not kept.exists():
        optimiser.state.clear()
        return
    saved = load_tensors(kept)
    # The learning rate and similar settings come from the options, not from the checkpoint.
    pairs = zip(optimiser.state_dict()["param_groups"], saved["param_groups"], strict=True)
    saved["param_groups"] = [group | {"params": theirs["params"]} for group, theirs in pairs]
    optimiser.load_state_dict(saved)
    raise_unless_fits(optimiser)


def optimiser_of(trainer: Any) -> Any:
    """The trainer's optimiser; it is made here if there is none yet."""
    if trainer.optimizer is None:
        trainer.create_optimizer()
    return getattr(trainer.optimizer, "optimizer", trainer.optimizer)


def base_digest(trainer: Any, model: Any) -> str:
    """Identifies the model that a run begins with: the reference's weights, or those below the adapter. Call it before any training."""
    if trainer.ref_model is not None:
        return digest_of(trainer.accelerator.unwrap_model(trainer.ref_model).state_dict())
    if is_peft(model):
        return digest_of({name: value for name, value in model.state_dict().items() if "lora_" not in name})
    return digest_of({})  # beta 0: no reference model


def digest_of(weights: dict[str, torch.Tensor]) -> str:
    """Identifies the weights: 16 hex digits from each tensor's sum and norm in double precision."""
    found = hashlib.sha256()
    for name in sorted(weights):
        values = weights[name].detach().double()
        found.update(f"{name} {float(values.sum())!r} {float(values.norm())!r};".encode())
    return found.hexdigest()[:16]


def base_name(model: Any) -> str:
    return str(getattr(model.config, "_name_or_path", "") or "unnamed").rstrip("/").rpartition("/")[2]


def is_peft(model: Any) -> bool:
    return hasattr(model, "peft_config")


def _tensors(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    weights: dict[str, torch.Tensor] = {}
    for shard in sorted(folder.glob("*.safetensors")):
        weights |= load_file(shard)
        raise_unless_finite(weights, shard.name)
    return weights


def _as_in_memory(folder: Path, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """The saved tensors under their names in memory: transformers fuses the experts of a mixture, but saves them one by one."""
    from transformers import AutoModelForCausalLM

    raise_unless_data(str(folder), "trainee.options.model")
    loaded, found = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, output_loading_info=True, **WEIGHTS)
    absent = set(found["missing_keys"])
    return {name: value for name, value in loaded.state_dict().items() if name not in absent}


def load_weights(folder: Path, model: Any) -> None:
    """Every saved tensor into the model's own memory; tied weights are saved once."""
    own, weights = model.state_dict(), _tensors(folder)
    if not weights.keys() <= own.keys():
        weights = _as_in_memory(folder, model.dtype)
    for name, value in weights.items():
        copy_into(own[name], value, name)
    missing = sorted(own.keys() - weights.keys() - set(model.all_tied_weights_keys))
    if missing:
        raise ValueError(
            f"the checkpoint lacks {missing[0]} and {len(missing) - 1} more tensors, so it has another architecture: "
            "load it with the options that it was saved with"
        )
