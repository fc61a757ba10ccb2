"""One worker of a group: ``python -m envtuning.trainees.language.worker``, started by ``workers.WorkerGroup``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Client, Connection
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object

from engineers.shared.own import trust
from envtuning.trainees.base import Trainee
from envtuning.trainees.language.connection import ADDRESS, KEY, PLACES, StretchStopped


class Worker:
    """Carries out the loop's calls, together with the other ranks. Only rank 0 talks to the loop."""

    def __init__(self, state: PartialState, line: Connection | None) -> None:
        self.state, self.line = state, line
        self.trainee: Any = None

    def serve(self) -> None:
        """Serve calls until the loop says stop, or is gone."""
        while True:
            method, given, named = self._next()
            if method == "stop":
                return
            try:
                result = ("done", getattr(self, method)(*given, **named))
            except Exception as error:  # the loop handles the trainee's errors
                result = ("raised", error)
            if self.line is not None:
                self.line.send(result)

    def _next(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        try:
            told: list[Any] = [self.line.recv() if self.line is not None else None]
        except EOFError:
            told = [("stop", (), {})]
        broadcast_object_list(told)
        return told[0]

    def make(
        self, kind: Callable[..., Trainee], *, trusted: frozenset[str], options: dict[str, Any], **trainee: Any
    ) -> None:
        """Make the trainee; this process trusts the same modules as the loop's."""
        trust(trusted)
        self.trainee = kind(**trainee, **options, within_group=True)

    def train(self, config: Any, budget: int, *, seed: int) -> Any:
        return self.trainee.train(config, budget, seed=seed, on_iteration=self._tell)

    def _tell(self, step: dict[str, Any]) -> None:
        """Send an iteration's metrics to the loop; all ranks stop together if it asks for that."""
        go_on = [True]
        if self.line is not None:
            self.line.send(("told", step))
            go_on = [self.line.recv()]
        broadcast_object_list(go_on)
        if not go_on[0]:
            raise StretchStopped("the loop stopped this stretch")

    def reply(self, conversations: list[Any], *, seed: int) -> list[Any]:
        """Every rank does its part of the list; returns all replies in order."""
        count, rank = self.state.num_processes, self.state.process_index
        bounds = [len(conversations) * part // count for part in range(count + 1)]
        mine = conversations[bounds[rank] : bounds[rank + 1]]
        done = self.trainee.policy().reply(mine, seed=seed) if mine else []
        return gather_object(done)

    def complete(self, which: str, options: dict[str, Any], messages: Any, schema: Any, max_tokens: int) -> Any:
        from engineers.backends.live import LiveChat

        if self.line is None:
            return None
        model, tokenizer = self.trainee.language_model() if which == "checkpoint" else self.trainee.base_model()
        chat = LiveChat(model, tokenizer, model=f"live/{which}", **options)
        return chat.complete(messages, schema, max_tokens=max_tokens)

    def save(self, folder: Any) -> None:
        if self.line is not None:
            self.trainee.save(folder)
        self.state.wait_for_everyone()

    def load(self, folder: Any) -> None:
        self.trainee.load(folder)


def main() -> None:
    sys.path += [place for place in json.loads(os.environ[PLACES]) if place not in sys.path]
    cpu = not torch.cuda.is_available()
    state = PartialState(cpu=cpu)
    line = None
    if state.is_main_process:
        line = Client(os.environ[ADDRESS], authkey=bytes.fromhex(os.environ[KEY]))
    Worker(state, line).serve()
    state.destroy_process_group()


if __name__ == "__main__":
    main()
