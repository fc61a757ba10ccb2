"""A prompt that stands in many rows is read once, and all rows continue from what was read."""

from __future__ import annotations

from inspect import signature
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache


class Read(NamedTuple):
    cache: DynamicCache  # of all rows
    logits: torch.Tensor  # of the token after the prompt, for each row


def read_once(model: Any, ids: torch.Tensor, mask: torch.Tensor, *, by_mask: bool) -> Read | None:
    """Reads each different row of left-padded prompts once; None for a model that keeps no ordinary cache.

    ``by_mask``: a token's position does not count the padding before it, as in ``generate``; else it does, as in TRL's loss.
    """
    different, row = torch.unique(torch.stack((ids, mask), dim=-1), dim=0, return_inverse=True)
    prompts, shown = different.unbind(-1)
    places = {"position_ids": (shown.cumsum(-1) - 1).clamp(min=0)} if by_mask else {}
    if not places.keys() <= signature(owner(model).forward).parameters.keys():
        return None
    read = model(input_ids=prompts, attention_mask=shown, use_cache=True, logits_to_keep=1, **places)
    cache = read.get("past_key_values")
    if type(cache) is not DynamicCache:
        return None
    cache.batch_select_indices(row)
    return Read(cache, read.logits[row])


def logits_of_replies(model: Any, ids: torch.Tensor, mask: torch.Tensor, length: int) -> torch.Tensor | None:
    """The logits of the last ``length`` tokens of each row; None for a model that keeps no ordinary cache."""
    read = read_once(model, ids[:, :-length], mask[:, :-length], by_mask=False)
    if read is None or length == 1:
        return read and read.logits
    others = model(
        input_ids=ids[:, -length:-1], attention_mask=mask[:, :-1], past_key_values=read.cache, use_cache=True
    )
    return torch.cat((read.logits, others.logits), dim=1)


def read_before(model: Any, ids: torch.Tensor, mask: torch.Tensor) -> dict[str, Any]:
    """Arguments for ``generate``: what the model has read of these rows but their last tokens. Empty if reading once saves nothing."""
    if len(torch.unique(ids, dim=0)) == len(ids) or ids.shape[1] < 2:
        return {}
    with torch.no_grad():
        read = read_once(model, ids[:, :-1], mask[:, :-1], by_mask=True)
    return {} if read is None else {"past_key_values": read.cache}


def owner(model: Any) -> Any:
    """The transformers model itself, without peft's wrapper."""
    return model.get_base_model() if hasattr(model, "peft_config") else model
