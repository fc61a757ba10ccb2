"""Checkpoints of tensors are data: numbers are finite, and shapes are those of the parameters."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch: pip install 'mapf-frozenlake[rllib]'")

import torch

from envtuning.trainees.tensors import copy_into, load_tensors, raise_unless_fits


def optimiser_of(shape: tuple[int, ...]) -> torch.optim.Adam:
    weights = torch.zeros(shape, requires_grad=True)
    weights.grad = torch.ones(shape)
    optimiser = torch.optim.Adam([weights])
    optimiser.step()
    return optimiser


def test_moments_of_the_parameters_own_shape_fit_and_others_do_not():
    optimiser = optimiser_of((2, 3))
    raise_unless_fits(optimiser)
    optimiser.load_state_dict(optimiser_of((3, 2)).state_dict())  # PyTorch takes them
    with pytest.raises(ValueError, match=r"\(3, 2\).*\(2, 3\)"):
        raise_unless_fits(optimiser)


def test_a_tensor_is_not_broadcast_into_a_parameter():
    own = torch.zeros(2, 3)
    with pytest.raises(ValueError, match="head"):
        copy_into(own, torch.ones(3), "head")
    assert not own.any()
    copy_into(own, torch.ones(2, 3), "head")
    assert own.all()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_refused_with_their_place(tmp_path, number):
    torch.save({"net": [torch.zeros(1), torch.tensor([number])]}, tmp_path / "state.pt")
    with pytest.raises(ValueError, match=r"net\.1"):
        load_tensors(tmp_path / "state.pt")


def test_finite_numbers_are_read(tmp_path):
    torch.save({"steps": torch.tensor(3), "net": torch.ones(2)}, tmp_path / "state.pt")
    assert load_tensors(tmp_path / "state.pt")["net"].tolist() == [1.0, 1.0]
