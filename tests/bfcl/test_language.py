"""What a small language model is taught before GRPO on tool use."""

from __future__ import annotations

import pytest

from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.lessons import encoded, lesson
from envtuning.worlds.bfcl.package import TOOL_CLASSES
from envtuning.worlds.bfcl.pool import fitting
from envtuning.worlds.bfcl.scripted import DONE
from envtuning.worlds.bfcl.splits import by_scenario

pytest.importorskip("trl")

# Few short tasks, no texts of tools before them: the model has a million parameters.
FEW = {
    "tool_style": "none",
    "max_turns": 3,
    "tools": {name: float(name == "TradingBot") for name in TOOL_CLASSES},
    "slices": {"base": {}},
}


def test_only_what_the_assistant_says_is_taught(v4):
    from envtuning.trainees.language.tokenizer import small_tokenizer

    tokenizer = small_tokenizer()
    task = fitting(v4, by_scenario(), "train", BFCLConfig(**FEW))[0]
    messages = lesson(v4, task, "short")
    assert [message["role"] for message in messages[:2]] == ["user", "assistant"]
    assert messages[-1]["content"] == DONE
    ids, labels = encoded(tokenizer, messages)
    assert len(ids) == len(labels)
    taught = tokenizer.decode([label for label in labels if label >= 0])
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    assert taught.replace(tokenizer.eos_token, "") == "".join(said)
