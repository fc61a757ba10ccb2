"""Reads checkpoints of PyTorch's tensors as data: no code runs, every number must be finite, and every shape must be the trainee's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch


def load_tensors(file: Path) -> Any:
    """The content of a file of ``torch.save``. Raises ``ValueError`` if a number is not finite."""
    state = torch.load(file, map_location="cpu", weights_only=True)
    raise_unless_finite(state, file.name)
    return state


def are_finite(tensors: Iterable[torch.Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


def raise_unless_finite(state: Any, name: str) -> None:
    for place, tensor in _tensors_in(state, name):
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise ValueError(f"{place} holds numbers that are not finite")


def copy_into(own: torch.Tensor, saved: torch.Tensor, name: str) -> None:
    """Copy without PyTorch's broadcasting: a tensor of another shape belongs to another model. Raises ``ValueError``."""
    if own.shape != saved.shape:
        raise ValueError(f"{name} has shape {tuple(saved.shape)}, this trainee's is {tuple(own.shape)}")
    with torch.no_grad():
        own.copy_(saved)


def raise_unless_fits(optimiser: torch.optim.Optimizer) -> None:
    """Raises ``ValueError`` unless the moments have the parameters' shapes, which ``load_state_dict`` does not check."""
    for parameter, moments in optimiser.state.items():
        for name, moment in moments.items():
            if isinstance(moment, torch.Tensor) and moment.dim() and moment.shape != parameter.shape:
                raise ValueError(
                    f"the optimiser's {name} has shape {tuple(moment.shape)}, its parameter {tuple(parameter.shape)}"
                )


def _tensors_in(state: Any, place: str) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(state, torch.Tensor):
        yield place, state
    elif isinstance(state, Mapping | list | tuple):
        for name, inner in state.items() if isinstance(state, Mapping) else enumerate(state):
            yield from _tensors_in(inner, f"{place}.{name}")
