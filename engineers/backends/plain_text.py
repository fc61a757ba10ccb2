"""The chat template for a base model whose tokenizer has none: the contents, one after the other."""

from __future__ import annotations

from typing import Any

# The end token follows the model's text.
PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ message.content }}{% if message.role == 'assistant' %}{{ eos_token }}{% endif %}"
    "{{ '\\n\\n' }}{% endfor %}"
)


def missing_template(tokenizer: Any) -> str | None:
    """The template for a tokenizer without one; None if it has one.

    Some tokenizers begin every text with a special token (Llama's does). Their models were never trained without it.
    """
    if tokenizer.chat_template is not None:
        return None
    begin = tokenizer.bos_token_id
    begins_every_text = begin is not None and list(tokenizer("").input_ids[:1]) == [begin]
    return "{{ bos_token }}" + PLAIN_TEMPLATE if begins_every_text else PLAIN_TEMPLATE
