"""The small tokenizer: nothing is lost, what lakes are made of costs one token, and JSON can be decoded sign by sign."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mapf_frozenlake as mfl
from engineers.backends.plain_text import PLAIN_TEMPLATE
from envtuning.trainees.language import tokenizer as making
from envtuning.trainees.language.tokenizer import (
    CHAT_TEMPLATE,
    PAD,
    prompt_ids,
    single_tokens,
    small_tokenizer,
    turn_markup,
)
from mapf_frozenlake.text import STYLES, state_text, turns_prompt
from tests.lazily import needed
from tests.text.lakes import instances

needed("transformers", extra="grpo")


@pytest.fixture(scope="module")
def tokenizer():
    return small_tokenizer()


def test_a_tokenizer_without_a_template_and_one_with_the_plain_template_read_alike():
    bare, plain = small_tokenizer(), small_tokenizer()
    bare.chat_template, plain.chat_template = None, PLAIN_TEMPLATE
    talk = [
        {"role": "user", "content": "Lake"},
        {"role": "assistant", "content": "UP"},
        {"role": "user", "content": "?"},
    ]
    for messages in (talk[:1], talk):
        assert prompt_ids(bare, messages) == prompt_ids(plain, messages)
    assert turn_markup(bare) == turn_markup(plain) == ("<|end|>\n\n", "\n\n")


@given(st.text(max_size=200))
def test_any_text_comes_back(tokenizer, text):
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids
    assert tokenizer.decode(ids) == text


def test_words_of_lakes_and_signs_of_json_are_single_tokens(tokenizer):
    for word in [*single_tokens(), *'"{}[]:,', "\n", " "]:
        assert len(tokenizer(word, add_special_tokens=False).input_ids) == 1, word
    text = json.dumps({"config": {"slices": {"4": {"share": 0.25}}}})
    tokens = [tokenizer.decode([index]) for index in tokenizer(text, add_special_tokens=False).input_ids]
    assert all(token in '"{}[]:,' for token in tokens if set(token) & set('"{}[]:,'))


@given(instances(max_side=10, max_agents=5))
@settings(max_examples=50)
def test_the_short_prompt_is_short(tokenizer, instance):
    cells, agents = instance.height * instance.width, instance.num_agents
    for prompt in (mfl.plan_prompt(instance, "short"), turns_prompt(instance, 24, "short")):
        assert mfl.from_text(prompt) == instance
    prompt = [{"role": "user", "content": mfl.plan_prompt(instance, "short")}]
    assert len(prompt_ids(tokenizer, prompt)) <= cells + 4 * agents + 8


def test_it_is_counted_from_its_words_from_what_engineers_read_and_from_lakes_of_every_size_and_style():
    count, of_lakes = Counter(making._texts()), list(making._of_lakes())
    assert {"F", " F", "0", " 0", "99", " 99", "RIGHT", " WAIT", "Lake"} <= set(single_tokens())
    assert "100" not in single_tokens()
    assert {count[word] for word in single_tokens()} == {1_000}
    often = [text for text, times in count.items() if times == 20]
    assert len([text for text in often if "{%" in text or "{{" in text]) > 3  # an engineer's templates
    for text in (
        json.dumps(mfl.LakeConfig.model_json_schema()),
        mfl.LakeConfig.single(4).model_dump_json(),
        making.ENGINEERING,
    ):
        assert count[text] == 20
    boards = mfl.generate(mfl.LakeConfig(num_agents=3, slices={size: {"hole_ratio": 0.2} for size in (3, 4, 5, 6)}), 40)
    assert len(of_lakes) == 40 * (1 + 3 * len(STYLES))
    told = iter(of_lakes)
    for board in boards:
        assert next(told) == mfl.explain(board, [[int(mfl.Action.RIGHT), int(mfl.Action.DOWN)]] * 3)
        for style in STYLES:
            assert next(told) == mfl.plan_prompt(board, style)
            assert next(told) == turns_prompt(board, 24, style)
            assert next(told) == state_text(board, board.starts, 1, 24, style)


@pytest.mark.parametrize("template", [None, CHAT_TEMPLATE])
def test_a_tokenizers_own_beginning_stands_in_front_only_where_the_template_is_missing(template):
    from tokenizers.processors import TemplateProcessing

    marking = small_tokenizer()
    marking.bos_token, marking.chat_template = PAD, template
    before = prompt_ids(marking, [{"role": "user", "content": "Lake"}])
    mark = TemplateProcessing(single=f"{PAD} $A", special_tokens=[(PAD, marking.bos_token_id)])
    marking.backend_tokenizer.post_processor = mark
    begun = [marking.bos_token_id] * (template is None)
    assert prompt_ids(marking, [{"role": "user", "content": "Lake"}]) == begun + before
    assert turn_markup(marking) == (
        ("<|end|>\n\n", "\n\n") if template is None else ("<|end|><|user|>", "<|assistant|>")
    )


def test_blanks_are_neither_added_nor_tidied_away(tokenizer):
    text = "Lake Lake . , n't 's !"
    ids = tokenizer(text, add_special_tokens=False).input_ids
    assert tokenizer.convert_ids_to_tokens(ids)[:2] == ["Lake", "ĠLake"]
    assert tokenizer.decode(ids) == text


def test_it_is_made_the_same_again(tokenizer):
    before = tokenizer.backend_tokenizer.to_str()
    making._trained.cache_clear()
    assert small_tokenizer().backend_tokenizer.to_str() == before


def test_a_turn_costs_one_token_and_an_answer_one_more(tokenizer):
    talk = [
        {"role": "user", "content": "Lake"},
        {"role": "assistant", "content": "RIGHT"},
        {"role": "user", "content": "Step"},
    ]
    assert len(prompt_ids(tokenizer, talk)) == 2 + 3 + 2 + 1  # the last opens the answer
