"""The client: ``with TextEnv(base_url=URL).sync() as env: env.reset(seed=0, num_agents=3)``. Without ``sync()`` it is asynchronous."""

from __future__ import annotations

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult

from .models import TextAction, TextObservation, TextState


class TextEnv(EnvClient[TextAction, TextObservation, TextState]):
    """A separate session on the server; an action may be a plain string."""

    def _step_payload(self, action: TextAction | str) -> dict[str, Any]:
        return {"message": action} if isinstance(action, str) else action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[TextObservation]:
        done, reward = payload["done"], payload["reward"]
        observation = TextObservation(**payload["observation"], done=done, reward=reward)
        return StepResult(observation=observation, reward=reward, done=done, metadata=observation.metadata)

    def _parse_state(self, payload: dict[str, Any]) -> TextState:
        return TextState(**payload)
