"""Many conversations in step: one question per turn for all that go on, each environment hearing its own replies."""

from __future__ import annotations

import pytest

from envtuning.worlds.text_player import Reply, ask, converse


class Countdown:
    """Says a number; the reply must be the next one down. Over at 0, truncated at the first wrong reply."""

    def reset(self, *, seed=None, options=None):
        self.left = (options or {}).get("from", seed)
        return f"{self.left}", {}

    def step(self, action):
        right = action == str(self.left - 1)
        self.left -= 1
        over = right and self.left == 0
        return f"{self.left}", float(right), over, not right, {"success": over}


class Counter:
    """Counts down, and remembers how many it was asked at once."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def reply(self, conversations, *, seed):
        self.asked.append(len(conversations))
        assert all(messages[-1]["role"] == "user" for messages in conversations)
        return [Reply(str(int(messages[-1]["content"]) - 1), tokens=3) for messages in conversations]


def test_all_are_asked_at_once_and_those_that_are_over_no_more():
    policy = Counter()
    talks = converse([Countdown() for _ in range(4)], policy, seeds=[1, 3, 3, 5])
    assert policy.asked == [4, 3, 3, 1, 1]
    assert [talk.turns for talk in talks] == [1, 3, 3, 5]
    assert all(talk.terminated and not talk.truncated for talk in talks)
    assert [talk.tokens for talk in talks] == [3, 9, 9, 15]
    assert [message["content"] for message in talks[1].messages] == ["3", "2", "2", "1", "1", "0", "0"]
    assert talks[3].infos[-1]["success"]
    assert talks[3].rewards == [1.0] * 5


def test_a_conversation_s_tokens_are_its_first_prompt_and_what_was_written():
    class Telling(Counter):
        """Reads 10 tokens more at each turn, and writes 2."""

        def reply(self, conversations, *, seed):
            said = super().reply(conversations, seed=seed)
            read = [5 * (1 + len(messages)) for messages in conversations]
            return [Reply(one.text, tokens=at + 2, prompt=at) for one, at in zip(said, read, strict=True)]

    talks = converse([Countdown() for _ in range(2)], Telling(), seeds=[1, 3])
    assert [talk.tokens for talk in talks] == [10 + 2, 10 + 3 * 2]


def test_the_options_of_each_reach_it():
    talks = converse([Countdown(), Countdown()], Counter(), seeds=[9, 9], options=[{"from": 1}, {"from": 2}])
    assert [talk.turns for talk in talks] == [1, 2]


def test_a_plain_function_from_text_to_text_will_do():
    talk = converse([Countdown()], lambda text: str(int(text) - 1), seeds=[4])[0]
    assert talk.terminated
    assert talk.turns == 4
    assert converse([Countdown()], lambda text: "no", seeds=[4])[0].truncated


class Fussy(Counter):
    def reply(self, conversations, *, seed):
        if any(messages[0]["content"] == "3" for messages in conversations):
            raise RuntimeError("no threes")
        return super().reply(conversations, seed=seed)


def test_a_policy_that_raises_on_one_conversation_loses_that_one_alone():
    talks = converse([Countdown() for _ in range(3)], Fussy(), seeds=[2, 3, 4])
    assert [talk.error for talk in talks] == [None, "RuntimeError: no threes", None]
    assert [talk.terminated for talk in talks] == [True, False, True]


@pytest.mark.parametrize("replies", [["a", 1], "ab c", 7])
def test_what_are_no_replies_is_an_error_of_each(replies):
    class Wrong:
        def reply(self, conversations, *, seed):
            return replies

    found = ask(Wrong(), [[{"role": "user", "content": "?"}]] * 2, seed=0)
    assert len(found) == 2
    assert any(reply.error for reply in found)


class Endless(Countdown):
    def step(self, action):
        return "?", 0.0, False, False, {}


def test_a_conversation_that_never_ends_is_ended_after_a_thousand_turns():
    [talk] = converse([Endless()], lambda text: "", seeds=[1])
    assert talk.turns == 1_000
    assert not talk.over


def test_each_turn_is_asked_with_a_seed_of_its_own_and_a_reset_with_the_seed_and_options_of_its_case():
    asked, began = [], []

    class Noting(Countdown):
        def reset(self, *, seed=None, options=None):
            began.append((seed, options))
            return super().reset(seed=seed, options=options)

    class Policy(Counter):
        def reply(self, conversations, *, seed):
            asked.append(seed)
            return super().reply(conversations, seed=seed)

    converse([Noting()], Policy(), seeds=[3])
    converse([Noting(), Noting()], Policy(), seeds=[2, 1], options=[None, {"from": 1}], seed=7)
    assert asked == [0, 1, 2, 7, 8]
    assert began == [(3, None), (2, None), (1, {"from": 1})]


def test_a_reply_is_what_was_said_and_no_more_unless_it_says_so():
    assert Reply("x") == Reply("x", tokens=0, truncated=False, error=None)
    [talk] = converse([Countdown()], lambda text: None, seeds=[1])
    assert talk.replies == [Reply("")]
    assert (talk.truncated, talk.terminated, talk.truncated_reply, talk.error) == (True, False, False, None)
    [cut] = converse([Countdown()], lambda text: Reply("0", truncated=True), seeds=[1])
    assert (cut.truncated, cut.terminated, cut.truncated_reply) == (False, True, True)
    assert ask(Counter(), [], seed=0) == []


def test_a_policy_that_raised_hears_no_more_and_its_message_is_not_kept():
    def policy(text):
        raise RuntimeError("no weights")

    [talk] = converse([Countdown()], policy, seeds=[4])
    assert (talk.turns, talk.over, talk.error) == (1, True, "RuntimeError: no weights")
    assert talk.messages == [{"role": "user", "content": "4"}]
