"""Plays a text policy on many Gymnasium text environments in step, with one call of the policy per turn.

A text environment's observations and actions are strings. A policy that replies to texts has

    reply(conversations, *, seed) -> one str or ``Reply`` for each conversation

where a conversation is a list of ``{"role": "user" | "assistant", "content": …}`` that ends with the user. A plain function
from a string to a string works as well: it gets the last message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, str]
Messages = list[Message]
MOST_TURNS = 1_000  # of one conversation; environments end their episodes much earlier


@dataclass(frozen=True)
class Reply:
    """A reply of a policy."""

    text: str
    tokens: int = 0  # of prompt and reply together
    prompt: int = 0  # tokens of the prompt, if the policy counts them separately
    truncated: bool = False  # whether it was cut off at its length limit
    error: str | None = None  # the policy's error instead of a reply


@dataclass
class Conversation:
    """One episode in words."""

    messages: Messages = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)  # per turn
    infos: list[dict[str, Any]] = field(default_factory=list)  # per turn, from the environment
    replies: list[Reply] = field(default_factory=list)
    terminated: bool = False
    truncated: bool = False  # by the environment

    @property
    def over(self) -> bool:
        return self.terminated or self.truncated or self.error is not None

    @property
    def turns(self) -> int:
        return len(self.replies)

    @property
    def tokens(self) -> int:
        """Tokens of the first prompt and of all replies. Later prompts repeat these and add the environment's texts."""
        return sum(reply.tokens - reply.prompt for reply in self.replies) + sum(
            each.prompt for each in self.replies[:1]
        )

    @property
    def truncated_reply(self) -> bool:
        return any(reply.truncated for reply in self.replies)

    @property
    def error(self) -> str | None:
        return next((reply.error for reply in self.replies if reply.error is not None), None)


def ask(policy: Any, conversations: Sequence[Messages], *, seed: int) -> list[Reply]:
    """A reply to each conversation, in one call. If it raises, each gets a call of its own, so that only a bad case fails."""
    if not conversations:
        return []
    try:
        return _replies(policy, conversations, seed)
    except Exception as error:
        if len(conversations) == 1:
            return [Reply("", error=f"{type(error).__name__}: {error}")]
    return [reply for one in conversations for reply in ask(policy, [one], seed=seed)]


def _replies(policy: Any, conversations: Sequence[Messages], seed: int) -> list[Reply]:
    if hasattr(policy, "reply"):
        said = list(policy.reply(conversations, seed=seed))
    else:
        said = [policy(messages[-1]["content"]) for messages in conversations]
    if len(said) != len(conversations):
        raise ValueError(
            f"the policy returned {len(said)} replies for {len(conversations)} conversations: return one for each"
        )
    for one in said:
        if not isinstance(one, str | Reply | None):
            raise TypeError(f"the policy replied with {type(one).__name__}: return a str or a Reply")
    return [one if isinstance(one, Reply) else Reply(one or "") for one in said]


def converse(
    envs: Sequence[Any],
    policy: Any,
    *,
    seeds: Sequence[int],
    options: Sequence[Mapping[str, Any] | None] | None = None,
    seed: int = 0,
) -> list[Conversation]:
    """Play one episode of every environment, all in step. The environments are reset at the start and left open."""
    talks = [Conversation() for _ in envs]
    for index, (env, talk) in enumerate(zip(envs, talks)):
        observation, _ = env.reset(seed=seeds[index], options=options[index] if options is not None else None)
        talk.messages.append({"role": "user", "content": observation})
    for turn in range(MOST_TURNS):
        going = [index for index, talk in enumerate(talks) if not talk.over]
        if not going:
            break
        replies = ask(policy, [talks[index].messages for index in going], seed=seed + turn)
        for index, reply in zip(going, replies):
            _take(envs[index], talks[index], reply)
    return talks


def _take(env: Any, talk: Conversation, reply: Reply) -> None:
    """One turn: the environment gets the reply, and its answer is the next question."""
    talk.replies.append(reply)
    if reply.error is not None:
        return
    talk.messages.append({"role": "assistant", "content": reply.text})
    observation, reward, terminated, truncated, info = env.step(reply.text)
    talk.rewards.append(float(reward))
    talk.infos.append(info)
    talk.terminated, talk.truncated = bool(terminated), bool(truncated)
    talk.messages.append({"role": "user", "content": observation})
