"""``teach``: makes a small language model with random weights and teaches it the ground-truth calls of some training tasks.

The model need not be good at the benchmark. GRPO learns only from groups in which some replies are right and others wrong, and a
model with random weights is never right. Needs the extra grpo.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from envtuning import atomic
from envtuning.trainees.language.pretrain import warmed_cosine
from envtuning.trainees.language.quiet import quiet
from envtuning.trainees.language.small import small_model
from envtuning.trainees.language.supervised import IGNORED, step
from envtuning.trainees.language.tokenizer import small_tokenizer
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.prompts import ToolStyle
from envtuning.worlds.bfcl.reply_format import ReplyFormat, write_answer
from envtuning.worlds.bfcl.scripted import DONE, ground_truth_in
from envtuning.worlds.bfcl.tasks import Task
from envtuning.worlds.text_player import Message, Messages

LEARNING_RATE = 2e-3  # the highest


def lesson(package: Package, task: Task, tool_style: ToolStyle, reply_format: ReplyFormat = "readable") -> Messages:
    """The task's whole conversation, with the ground truth's calls as the agent's replies."""
    return _talked(Conversation(package, task, tool_style=tool_style, reply_format=reply_format), _answer)


def stumble(
    package: Package,
    task: Task,
    tool_style: ToolStyle,
    generator: random.Random,
    reply_format: ReplyFormat = "readable",
) -> Messages:
    """A conversation in which each reply with calls breaks off and the turn then ends; the broken replies are marked ``untaught``.

    A model that has seen only successful calls would call tools for ever after its first mistake.
    """

    def broken(reply: str) -> Message:
        return _answer(reply[: generator.randint(1, len(reply) - 1)]) | {"untaught": "broken"}

    return _talked(Conversation(package, task, tool_style=tool_style, reply_format=reply_format), broken)


def _talked(talk: Conversation, answered: Callable[[str], Message]) -> Messages:
    """The conversation to its end; ``answered`` makes the agent's answers from the ground truth's replies."""
    messages: Messages = []
    for replies in ground_truth_in(talk.package, talk.task, talk.reply_format):
        for answer in [*map(answered, replies), _answer(write_answer(DONE, talk.reply_format))]:
            messages += [{"role": "user", "content": talk.said}, answer]
            talk.act(answer["content"])
    return messages


def _answer(reply: str) -> Message:
    return {"role": "assistant", "content": reply}


def encoded(tokenizer: Any, messages: Messages) -> tuple[list[int], list[int]]:
    """(ids, labels) of a conversation. The model is taught the assistant's words and the end of each reply."""
    ids: list[int] = []
    labels: list[int] = []
    for message in messages:
        spoken = message["role"] == "assistant"
        taught = spoken and "untaught" not in message
        head = tokenizer.convert_tokens_to_ids(f"<|{message['role']}|>")
        body = tokenizer(message["content"], add_special_tokens=False).input_ids + [tokenizer.eos_token_id] * spoken
        ids += [head, *body]
        labels += [IGNORED, *(body if taught else [IGNORED] * len(body))]
    return ids, labels


def teach(
    out: str | Path,
    package: Package,
    tasks: Sequence[Task],
    *,
    tool_style: ToolStyle = "short",
    reply_format: ReplyFormat = "readable",
    passes: int = 25,
    seed: int = 0,
    width: int = 128,
    layers: int = 4,
    progress: Callable[[int, float], None] | None = None,
) -> Path:
    """Make a model and a tokenizer, train on the tasks, and save both in transformers' format; returns the folder.

    The folder appears only when it is complete. Equal arguments give equal weights. Raises ``ValueError`` if the folder exists.
    """
    import torch

    out = Path(out)
    if out.exists():
        raise ValueError(f"{out} exists already: choose another folder, or remove it to train the model again")
    tokenizer = small_tokenizer()
    model = small_model(tokenizer, seed, width=width, layers=layers)
    right = [encoded(tokenizer, lesson(package, task, tool_style, reply_format)) for task in tasks]
    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    order = random.Random(seed)
    model.train()
    for number in range(passes):
        rate = LEARNING_RATE * warmed_cosine(number / passes)
        total = 0.0
        broken = [encoded(tokenizer, stumble(package, task, tool_style, order, reply_format)) for task in tasks]
        for ids, labels in order.sample(right + broken, 2 * len(tasks)):
            total += step(model, optimiser, torch.tensor([ids]), torch.tensor([labels]), rate).loss
        if progress is not None:
            progress(number + 1, total / (2 * len(tasks)))
    model.eval()
    atomic.make_folder(out.parent)
    with atomic.new_folder(out) as draft, quiet():
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
    return out
