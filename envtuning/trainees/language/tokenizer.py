"""A tokenizer for small models: the words of lakes, plans and reports are single tokens, and so are JSON's signs.

It is made by counting in texts that this package writes, and is the same on every machine. It can encode any text, because
other words are spelt in bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from engineers.backends.plain_text import missing_template
from mapf_frozenlake import LakeConfig, explain, generate, plan_prompt
from mapf_frozenlake.letters import GOAL_LETTERS, HOLE, ICE, START_LETTERS
from mapf_frozenlake.text import STYLES, state_text, turns_prompt
from mapf_frozenlake.text.answer import open_thought
from mapf_frozenlake.types import Action

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

VOCABULARY = 2048
PAD, END = "<|pad|>", "<|end|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
# One token before each turn, and one after each reply of the model.
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message.role + '|>' + message.content }}"
    "{% if message.role == 'assistant' %}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# A word or a number of up to two digits, with the blank before it. Every other sign or blank stands alone.
PIECES = r" ?[A-Za-z]+| ?\d{1,2}|\s|[^A-Za-z\d\s]"
WEIGHT = 1_000  # how often a word that must be a single token is counted


def small_tokenizer() -> PreTrainedTokenizerFast:
    """A new tokenizer, equal to all others that this version makes."""
    return _tokenizer_of(_trained())


def sign_tokenizer() -> PreTrainedTokenizerFast:
    """Every byte of a text is a token: for short texts of any kind."""
    return _tokenizer_of(_spelt())


def _tokenizer_of(described: str) -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(described),
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=list(ROLES),
        chat_template=CHAT_TEMPLATE,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


@cache  # training takes a second or two
def _trained() -> str:
    return _counted(_texts(), VOCABULARY)


@cache
def _spelt() -> str:
    return _counted((), 0)


def _counted(texts: Iterable[str], vocabulary: int) -> str:
    """A vocabulary of bytes and of byte pairs that are frequent in these texts, up to this many tokens."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, END, *ROLES],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer.to_str()


def single_tokens() -> list[str]:
    """Words that must be single tokens: cells, numbers, moves, the words of the short style and of an answer."""
    letters = [ICE, HOLE, *START_LETTERS, *GOAL_LETTERS]
    numbers = [str(number) for number in range(100)]
    moves = [action.name for action in Action]
    words = [*letters, *numbers, *moves, "Lake", "Step", "Agent"]
    return [f"{blank}{word}" for word in words for blank in ("", " ")]


def _texts() -> Iterator[str]:
    for word in single_tokens():
        yield from [word] * WEIGHT
    yield from _of_engineers()
    yield from _of_lakes()


def _of_engineers() -> Iterator[str]:
    """Texts of an engineer's prompts: the templates, the knobs' descriptions, configs."""
    for template in sorted(_templates(resources.files("engineers.model") / "templates")):
        yield from [template] * 20
    yield from [json.dumps(LakeConfig.model_json_schema())] * 20
    yield from [LakeConfig.single(4).model_dump_json()] * 20
    yield from [ENGINEERING] * 20


def _templates(folder: Traversable) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _templates(entry)
        elif entry.name.endswith(".j2"):
            yield entry.read_text(encoding="utf-8")


def _of_lakes() -> Iterator[str]:
    """Prompts in every style, and the judge's words about a bad plan."""
    config = LakeConfig(num_agents=3, slices={size: {"hole_ratio": 0.2} for size in (3, 4, 5, 6)})
    for instance in generate(config, n=40, seed=0, num_threads=1):
        plan = [[int(Action.RIGHT), int(Action.DOWN)]] * 3
        yield explain(instance, plan)
        for style in STYLES:
            yield plan_prompt(instance, style)
            yield turns_prompt(instance, 24, style)
            yield state_text(instance, instance.starts, 1, 24, style)


ENGINEERING = (
    "stage report results validation training success rate valid optimal legal failures failed episodes parse error illegal "
    "move hole conflict goal missed truncated waits wait ratio share slices config reasons path reason agents budget left "
    "samples tokens gradient norm entropy history default fixed rules held out sampled greedy seed checkpoint "
)


def templated(tokenizer: Any, messages: Sequence[Mapping[str, str]], **template: Any) -> str:
    """A conversation as the model reads it, up to its answer. ``template``: switches such as Qwen3's ``enable_thinking``."""
    talk = [dict(turn) for turn in messages]
    return tokenizer.apply_chat_template(
        talk, chat_template=missing_template(tokenizer), tokenize=False, add_generation_prompt=True, **template
    )


def begun_thought(tokenizer: Any, **template: Any) -> str:
    """The beginning of a thought that the chat template writes for the model, such as "<think>"; the reply lacks it."""
    text = templated(tokenizer, [{"role": "user", "content": "question"}], **template)
    return open_thought(text.rpartition("question")[2])


def turn_markup(tokenizer: Any, **template: Any) -> tuple[str, str]:
    """The chat template's texts around the user's words: before them (first the end of the last answer), and after them."""
    talk = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "answer"},
        {"role": "user", "content": "second"},
    ]
    behind = templated(tokenizer, talk, **template).rpartition("answer")[2]
    before, _, after = behind.partition("second")
    return before, after


def prompt_ids(tokenizer: Any, messages: Sequence[Mapping[str, str]], **template: Any) -> list[int]:
    """A conversation's tokens, up to the model's answer.

    Later turns are appended, and earlier ones stay as they were written. Many templates would rewrite them (Qwen3's removes the
    thoughts), but a model is trained on whole conversations, token by token.
    """
    first = next((at for at, turn in enumerate(messages) if turn["role"] == "assistant"), len(messages))
    text = templated(tokenizer, messages[:first], **template)
    if first < len(messages):
        begun = begun_thought(tokenizer, **template)
        behind, after = turn_markup(tokenizer, **template)
        for reply, said in zip(messages[first::2], messages[first + 1 :: 2], strict=True):
            text += reply["content"].removeprefix(begun) + behind + said["content"] + after
    return tokenizer(text, add_special_tokens=False).input_ids
