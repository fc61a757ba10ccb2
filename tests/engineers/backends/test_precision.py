"""Weights in a type that the processor only emulates: a warning that names the remedy."""

import warnings
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from engineers.backends import precision  # noqa: E402


def model(dtype, device="cpu"):
    return SimpleNamespace(dtype=dtype, device=torch.device(device))


def told(one, monkeypatch, times=10.0):
    monkeypatch.setattr(precision, "times_float32", lambda dtype: times)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        precision.warn_if_emulated(one, "trainee.options.dtype=float32")
    return [str(one.message) for one in caught]


def test_an_emulated_type_is_told_with_its_factor_and_the_remedy(monkeypatch):
    assert told(model(torch.bfloat16), monkeypatch) == [
        "the model's weights are in bfloat16, and a product in it takes 10 times as long on this processor as in float32: "
        "trainee.options.dtype=float32 is faster, and takes twice the memory"
    ]


@pytest.mark.parametrize(
    ("one", "times"),
    [(model(torch.bfloat16), 0.3), (model(torch.float32), 10.0), (model(torch.bfloat16, "cuda"), 10.0)],
    ids=["a processor that has it", "float32", "not on the processor"],
)
def test_nothing_is_told_of_other_models(one, times, monkeypatch):
    assert told(one, monkeypatch, times) == []


def test_a_type_is_timed_against_float32_and_float64_is_slower():
    assert 0.2 < precision.times_float32(torch.float32) < 5
    assert precision.times_float32(torch.float64) > 1.2
