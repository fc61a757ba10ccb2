"""A Qwen3 of about a million parameters with random weights: the architecture of the large models in small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

CONTEXT = 16_384  # tokens: an engineer's question has thousands


def small_model(
    tokenizer: PreTrainedTokenizerFast, seed: int = 0, *, width: int = 128, layers: int = 4, heads: int = 4
) -> Qwen3ForCausalLM:
    """A model with random weights from this seed; by default it has 1.2 million. Does not change torch's random state."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    if width % heads:
        raise ValueError(f"width={width} is not a multiple of heads={heads}: choose one that is")
    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": max(1, heads // 2),
        "head_dim": width // heads,
        "max_position_embeddings": CONTEXT,
        "tie_word_embeddings": True,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(Qwen3Config(**sizes))
