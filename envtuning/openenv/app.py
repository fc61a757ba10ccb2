"""The server of a world: compiled before it answers, any number of sessions at once."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from envtuning.openenv.environment import TextEnvironment
from envtuning.openenv.models import TextAction, TextObservation, TextState
from envtuning.worlds.registry import make_world

SESSIONS = 256
PORT = 8000


def make_app(
    world: str, options: dict[str, Any] | None = None, *, name: str = "text_env", sessions: int = SESSIONS
) -> Any:
    """An ASGI app. Everything is compiled before it starts, because a client waits at most a minute for its first reset."""
    from openenv.core.env_server.http_server import create_app

    made = make_world(world, **options or {})
    made.prepare()
    env = made.make_text_env(made.config_type(), seed=0)
    if not isinstance(env.reset(seed=0)[0], str):
        raise TypeError(f"the observations of world {world!r} are not texts: give a world for language models")
    env.close()
    begin = partial(TextEnvironment, made)
    return create_app(
        begin, TextAction, TextObservation, env_name=name, max_concurrent_envs=sessions, state_cls=TextState
    )


def serve(app: Any) -> None:
    """The command line of an exported folder: ``python -m server.app --port 8000``."""
    import uvicorn

    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=PORT)
    arguments = parser.parse_args()
    uvicorn.run(app, host=arguments.host, port=arguments.port)
