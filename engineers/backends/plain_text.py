"""How a base model reads a conversation: its tokenizer has no chat template, so the contents stand one after the other."""

from __future__ import annotations

from typing import Any

# The end stands behind what the model wrote.
PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message.content }}{% if message.role == 'assistant' %}{{ eos_token }}{% endif %}"
    "{{ '\\n\\n' }}{% endfor %}"
)


def missing_template(tokenizer: Any) -> str | None:
    """The template to use where the tokenizer has none of its own; None: it has one.

    A model whose tokenizer begins every text with a token of its own (Llama's does) was never trained on a text without it.
    """
    if tokenizer.chat_template is not None:
        return None
    return "{{ bos_token }}" + PLAIN_TEMPLATE if _begins_every_text(tokenizer) else PLAIN_TEMPLATE


def _begins_every_text(tokenizer: Any) -> bool:
    return tokenizer.bos_token_id is not None and list(tokenizer("").input_ids[:1]) == [tokenizer.bos_token_id]
