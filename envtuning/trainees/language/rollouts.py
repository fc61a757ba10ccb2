"""Turn-based rollouts for GRPO: the shared player plays, and every token is kept with its author.

TRL trains on the tokens of a whole conversation; those that the environment wrote are masked out of the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from envtuning.trainees.language.policy import ReplyPolicy
from envtuning.trainees.language.tokenizer import turn_markup
from envtuning.worlds.text_player import Conversation, Messages, Reply, converse

# a case's number -> environment, seed and options of reset
Begin = Callable[[int], tuple[Any, int, dict[str, Any] | None]]


class Judged(NamedTuple):
    """A played conversation: its reward, its kind of failure, and its score."""

    paid: float
    failure: str | None
    score: float


Judge = Callable[[int, Conversation], Judged]
# the return value of TRL's ``rollout_func``: columns, with an entry for each conversation
Played = dict[str, list[Any]]


@dataclass
class Tape:
    """One conversation, token by token."""

    prompt: list[int]
    written: list[int] = field(default_factory=list)  # after the prompt
    mine: list[int] = field(default_factory=list)  # 1: the model's, 0: the environment's


class Recorder:
    """A policy for the player that samples and keeps the tokens. Its list of messages identifies a conversation."""

    def __init__(self, policy: ReplyPolicy) -> None:
        self.policy = policy
        self.tapes: dict[int, Tape] = {}
        # An error of sampling: the player would ask again, and continue without an answer.
        self.error: Exception | None = None
        self.between = turn_markup(policy.tokenizer, **policy.template)

    def reply(self, conversations: Sequence[Messages], *, seed: int) -> list[Reply]:
        if self.error is not None:
            raise self.error
        try:
            return self._reply(conversations)
        except Exception as error:
            self.error = error
            raise

    def _reply(self, conversations: Sequence[Messages]) -> list[Reply]:
        for messages in conversations:
            self._hear(messages)
        tapes = [self.tapes[id(messages)] for messages in conversations]
        replies = []
        for tape, ids in zip(tapes, self.policy.sample([tape.prompt + tape.written for tape in tapes]), strict=True):
            replies.append(self.policy.told(tape.prompt + tape.written, ids))
            tape.written += ids
            tape.mine += [1] * len(ids)
        return replies

    def _hear(self, messages: Messages) -> None:
        """Append the environment's last message, as the chat template writes it."""
        tape = self.tapes.get(id(messages))
        if tape is None:
            self.tapes[id(messages)] = Tape(self.policy.prompt(messages))
            return
        behind, after = self.between
        last = tape.written[-1:]
        ended = self.policy.tokenizer.decode(last) if last and last[0] in self.policy.eos else ""
        before = behind.removeprefix(ended)  # a reply that was cut gets its missing end
        said = self.policy.tokenizer(before + messages[-1]["content"] + after, add_special_tokens=False).input_ids
        tape.written += said
        tape.mine += [0] * len(said)


def rollout(policy: ReplyPolicy, prompts: Sequence[Messages], begin: Begin, judge: Judge) -> Played:
    """Every prompt is played to its end, all in step. A prompt's first message names its ``case``."""
    cases = [int(prompt[0]["case"]) for prompt in prompts]
    envs, seeds, options = zip(*(begin(case) for case in cases), strict=True)
    recorder = Recorder(policy)
    with ExitStack() as ending:
        for env in envs:
            ending.callback(env.close)
        talks = converse(envs, recorder, seeds=seeds, options=options)
    if recorder.error is not None:
        raise recorder.error  # never learn from conversations in which the model could not reply
    tapes = [recorder.tapes[id(talk.messages)] for talk in talks]
    judged = [judge(case, talk) for case, talk in zip(cases, talks, strict=True)]
    return {
        "prompt_ids": [tape.prompt for tape in tapes],
        "completion_ids": [tape.written[: _last(tape.mine)] for tape in tapes],
        "env_mask": [tape.mine[: _last(tape.mine)] for tape in tapes],
        "logprobs": None,  # type: ignore[dict-item]  # the model's own forward pass gives them
        "paid": [one.paid for one in judged],
        "failure": [one.failure for one in judged],
        "score": [one.score for one in judged],
    }


def refilled(
    play: Callable[[list[Messages]], Played], prompts: list[Messages], spare: list[Messages], group: int
) -> tuple[Played, Played]:
    """Play groups of equal prompts, and play other prompts in place of groups whose replies were all paid alike.

    Spare prompts are used up in their order. Returns the batch, and the replies that have no place in it.
    """
    kept = play(prompts)
    dropped: Played = {name: [] for name, values in kept.items() if values is not None}
    alike = [place for place in _groups(prompts, group) if _paid_alike(kept["paid"][place])]
    while alike and spare:
        others = [spare.pop(0) for _ in alike[: len(spare)]]
        more = play([prompt for prompt in others for _ in range(group)])
        for new in _groups(more["paid"], group):
            if _paid_alike(more["paid"][new]):
                _append(dropped, more, new)
                continue
            place = alike.pop(0)
            _append(dropped, kept, place)
            for name in dropped:
                kept[name][place] = more[name][new]
    return kept, dropped


def _groups(replies: Sequence[Any], group: int) -> list[slice]:
    return [slice(begin, begin + group) for begin in range(0, len(replies), group)]


def _paid_alike(paid: Sequence[float]) -> bool:
    return max(paid) == min(paid)


def _append(to: Played, played: Played, place: slice) -> None:
    for name, values in to.items():
        values += played[name][place]


def _last(mine: Sequence[int]) -> int:
    """The index after the model's last token."""
    return max((at + 1 for at, own in enumerate(mine) if own), default=0)
