"""What the backend tests share: a config that is no lake, a report, and a tiny Qwen3 made on the spot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from engineers.report import SliceResult, StageReport


class Terrain(BaseModel):
    """One kind of ground that a walker trains on."""

    model_config = ConfigDict(extra="forbid")

    share: float = Field(0.5, ge=0.0, le=1.0, description="Weight of this terrain in the data.")
    slope: float = Field(0.1, ge=0.0, le=0.9, description="Steepness of the ground.")
    gust: float | None = Field(None, ge=0.0, le=1.0, description="Strength of the wind; null for calm air.")


class WalkerConfig(BaseModel):
    """An environment that has nothing to do with lakes."""

    model_config = ConfigDict(extra="forbid")

    terrains: dict[str, Terrain] = Field(default_factory=lambda: {"sand": Terrain(), "ice": Terrain(slope=0.3)})
    payload: int = Field(3, ge=0, le=1_000_000, description="What the walker carries, in grams.")
    weather: str = Field("calm", description="Words that nobody may edit.")


EDITABLE = ("terrains.*.share", "terrains.*.slope", "terrains.*.gust", "payload")


@pytest.fixture
def config() -> WalkerConfig:
    return WalkerConfig()


@pytest.fixture
def editable() -> tuple[str, ...]:
    return EDITABLE


@pytest.fixture
def report(config: WalkerConfig) -> StageReport:
    results = [
        SliceResult(name="sand", episodes=50, metrics={"valid_rate": 0.8}, failures={"fell": 10}),
        SliceResult(name="ice", episodes=50, metrics={"valid_rate": 0.1}, failures={"fell": 45}),
    ]
    return StageReport(
        objective="valid_rate",
        stage=1,
        environment="A walker on slopes.",
        config=config.model_dump(mode="json"),
        results=results,
    )


@pytest.fixture(scope="session")
def tiny_qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a randomly initialised Qwen3 and a byte-level tokenizer, as ``save_pretrained`` writes it."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("tiny-qwen3")
    tokenizer = byte_tokenizer()
    torch.manual_seed(0)
    sizes = transformers.Qwen3Config(
        vocab_size=len(tokenizer) + 27,  # padded beyond the tokenizer, as Qwen's own checkpoints are
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=16_384,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    transformers.Qwen3ForCausalLM(sizes).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def byte_tokens() -> Any:
    """The tokenizer of ``tiny_qwen3``."""
    pytest.importorskip("transformers")
    return byte_tokenizer()


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Tiny models are slower on many threads, and the cores are shared."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


def byte_tokenizer() -> Any:
    """One token per byte, and Qwen's special tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: index for index, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=CHAT_TEMPLATE,
    )
