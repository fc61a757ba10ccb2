"""The small tokenizer: nothing is lost, what lakes are made of costs one token, and JSON can be decoded sign by sign."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mapf_frozenlake as mfl
from envtuning.trainees.language import tokenizer as making
from envtuning.trainees.language.tokenizer import prompt_ids, single_tokens, small_tokenizer
from mapf_frozenlake.text import turns_prompt
from tests.lazily import needed
from tests.text.lakes import instances

needed("transformers", extra="grpo")


@pytest.fixture(scope="module")
def tokenizer():
    return small_tokenizer()


@given(st.text(max_size=200))
@settings(deadline=None)
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
@settings(max_examples=50, deadline=None)
def test_the_short_prompt_is_short(tokenizer, instance):
    cells, agents = instance.height * instance.width, instance.num_agents
    for prompt in (mfl.plan_prompt(instance, "short"), turns_prompt(instance, 24, "short")):
        assert mfl.from_text(prompt) == instance
    prompt = [{"role": "user", "content": mfl.plan_prompt(instance, "short")}]
    assert len(prompt_ids(tokenizer, prompt)) <= cells + 4 * agents + 8


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
