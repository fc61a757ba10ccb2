"""Small causal transformers, several side by side: products this small cost most when they are alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from envtuning.exam.families import Family

HEADS = 4


class Policies(nn.Module):
    """One transformer for each seed, of one family's size; ``words`` tokens in, ``symbols`` letters out."""

    def __init__(self, family: Family, sizes: tuple[int, int, int, int], seeds: Sequence[int]) -> None:
        super().__init__()
        self.words, self.symbols, question, answer = sizes
        self.first = question + 1  # the place of "=", which predicts the answer's first letter
        self.n, self.layers, width = len(seeds), family.layers, family.width
        shapes = {"tok": (self.words, width), "pos": (question + answer + 1, width), "head": (width + 1, self.symbols)}
        for layer in range(self.layers):
            shapes |= {f"qkv{layer}": (width + 1, 3 * width), f"out{layer}": (width + 1, width)}
            shapes |= {f"up{layer}": (width + 1, 4 * width), f"down{layer}": (4 * width + 1, width)}
        draws = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.weights = nn.ParameterDict()
        for name, (rows, columns) in shapes.items():  # a matrix has its bias as the last row
            scale = 0.5 if name in ("tok", "pos") else rows**-0.5
            drawn = torch.stack([torch.randn(rows, columns, generator=draw) for draw in draws])
            self.weights[name] = nn.Parameter(scale * drawn)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the answers' letters, each after the letters before it: policy, row, letter of the answer, letter."""
        n, rows, length = tokens.shape[0], tokens.shape[1], tokens.shape[2] - 1
        which = tokens[:, :, :-1] + self.words * torch.arange(n)[:, None, None]
        h = F.embedding(which, self.weights["tok"].flatten(0, 1)) + self.weights["pos"][:, None]
        h = h.view(n, rows * length, -1)
        for layer in range(self.layers):
            qkv = self.linear(f"qkv{layer}", norm(h)).view(n * rows, length, 3, HEADS, -1)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(h.shape)
            h = h + self.linear(f"out{layer}", attended)
            h = h + self.linear(f"down{layer}", F.gelu(self.linear(f"up{layer}", norm(h))))
        h = h.view(n, rows, length, -1)[:, :, self.first :].flatten(1, 2)
        return self.linear("head", norm(h)).view(n, rows, -1, self.symbols)

    def linear(self, name: str, h: Tensor) -> Tensor:
        weight = self.weights[name]
        return torch.baddbmm(weight[:, -1:], h, weight[:, :-1])

    def clip(self) -> None:
        """Each policy's gradient to a norm of at most 1."""
        gradients = [p.grad for p in self.parameters() if p.grad is not None]
        # Of each policy one row, so that it is added up in the same order whoever learns beside it.
        squares = torch.stack([g.flatten(1).square().sum(1) for g in gradients], 1).sum(1)
        scale = (1.0 / (squares.sqrt() + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(scale[:, None, None])


def norm(h: Tensor) -> Tensor:
    return F.layer_norm(h, h.shape[-1:])
