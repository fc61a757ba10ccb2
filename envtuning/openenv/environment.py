"""``TextEnvironment``: one session, an episode of a world's text environment after the other."""

from __future__ import annotations

import secrets
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from engineers.knobs import dump
from engineers.shared.extras import needs
from engineers.shared.sentences import in_sentences
from envtuning.worlds.world import World

try:
    from openenv.core.env_server.interfaces import Environment
except ImportError as error:
    raise needs("an OpenEnv server", error, extra="openenv") from None

from envtuning.openenv.models import TextAction, TextObservation, TextState


class TextEnvironment(Environment[TextAction, TextObservation, TextState]):
    """``reset(seed=…, **fields)`` begins an episode by the config that has these fields, others as they are by default.

    So the client sets the difficulty at each reset. With a seed, the episode is the first one of this seed in ``world.make_text_env(config)``.
    Without a seed, episodes of one config follow each other in a sequence: the last seed's or, if none was given, one that no other session has.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, world: World[Any]) -> None:
        super().__init__()
        self.world = world
        self._env: Any = None
        self._config: Any = None
        self._state = TextState()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **fields: Any) -> TextObservation:
        config = config_of(self.world, fields)
        if self._env is None or config != self._config:
            self.close()
            self._env, self._config = self.world.make_text_env(config, seed=secrets.randbits(31)), config
        message, info = self._env.reset(seed=seed)
        self._state = TextState(episode_id=episode_id or secrets.token_hex(8), seed=seed, config=dump(config))
        return TextObservation(message=message, metadata=plain(info))

    def step(self, action: TextAction, timeout_s: float | None = None, **_: Any) -> TextObservation:
        if self._env is None:
            raise RuntimeError("no episode is running: call reset first")
        message, reward, terminated, truncated, info = self._env.step(action.message)
        self._state.step_count += 1
        return TextObservation(
            message=message,
            reward=float(reward),
            done=bool(terminated or truncated),
            metadata=plain(info) | {"truncated": bool(truncated)},
        )

    @property
    def state(self) -> TextState:
        return self._state

    def close(self) -> None:
        if self._env is not None:
            self._env.close()
        self._env = None


def config_of(world: World[Any], fields: dict[str, Any]) -> Any:
    """The world's config with these fields; a ``ValueError`` in sentences where it has no such field, or not this value."""
    known = world.config_type.model_fields
    if unknown := sorted(set(fields) - set(known)):
        raise ValueError(f"reset has no field {unknown[0]!r}: its fields are seed, episode_id, {', '.join(known)}")
    try:
        return world.config_type.model_validate(fields)
    except ValidationError as error:
        raise ValueError(in_sentences(error)) from None


def plain(info: Any) -> Any:
    """The same in JSON's types."""
    return to_jsonable_python(info, fallback=lambda value: value.tolist() if hasattr(value, "tolist") else str(value))
