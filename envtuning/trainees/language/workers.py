"""Several processes for one trainee: a group of workers trains, replies and answers the engineer, outside of the loop's process.

``accelerate launch`` starts the group once for the run (on CPU ``torchrun``, because accelerate starts a single process there).
Rank 0 is connected to the loop and passes each call on to the others, so that all ranks do the same thing at the same time.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Listener
from typing import Any

from engineers.model.chat import Completion, Message
from engineers.shared.own import trusted
from envtuning.trainees.base import Trainee, WorkerLost
from envtuning.trainees.language.connection import ADDRESS, KEY, PLACES
from envtuning.trainees.language.options import LanguageOptions
from envtuning.trainees.privates.multiprocessing import limit_waiting

START_LIMIT = 600  # seconds until the group must have connected: loading a large model takes minutes
Told = Callable[[Any], None]


class WorkerGroup:
    """The loop's end of the connection. Every method of the workers' trainee, which is of this kind, can be called by its name."""

    def __init__(self, kind: Callable[..., Trainee], options: LanguageOptions, **trainee: Any) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="workers-")
        key = secrets.token_bytes(16)
        address = os.path.join(self.folder.name, "line")
        with Listener(address, authkey=key) as listener:
            told = {ADDRESS: address, KEY: key.hex(), PLACES: json.dumps(sys.path)}
            self.process = subprocess.Popen(command(options), env=os.environ | told, stdin=subprocess.DEVNULL)
            try:
                self.line = self._accepted(listener)
            except BaseException:  # an interrupt, too: nobody else can end a group that is still loading
                self._end_process()
                raise
        self.call("make", kind, trusted=trusted(), options=options.model_dump(), **trainee)

    def _accepted(self, listener: Listener) -> Connection:
        """The connection, when rank 0 has opened it. Raises ``WorkerLost`` if the group dies or stays silent."""
        limit_waiting(listener, 1.0)
        for _ in range(START_LIMIT):
            try:
                return listener.accept()
            except TimeoutError:
                if self.process.poll() is not None:
                    break
        raise WorkerLost(f"the workers did not start within {START_LIMIT} s (exit status {self.process.poll()})")

    def call(self, method: str, *given: Any, told: Told | None = None, **named: Any) -> Any:
        """Returns the result of the workers' trainee. ``told`` gets its reports meanwhile; if ``told`` raises, the workers stop."""
        raised: BaseException | None = None
        try:
            self.line.send((method, given, named))
            while True:
                kind, value = self.line.recv()
                if kind == "told":
                    try:
                        if told is not None and raised is None:
                            told(value)
                    except BaseException as error:
                        raised = error
                    self.line.send(raised is None)
                elif raised is not None:
                    raise raised
                elif kind == "raised":
                    raise value
                else:
                    return value
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            raise WorkerLost(f"the group of workers is gone (exit status {self.process.poll()})") from error

    def close(self) -> None:
        try:
            self.line.send(("stop", (), {}))
            self.process.wait(30)
        except (OSError, subprocess.TimeoutExpired):
            self._end_process()
        finally:
            self.line.close()
            self.folder.cleanup()

    def _end_process(self) -> None:
        self.process.terminate()
        self.process.wait(30)


class RemotePolicy:
    """Replies by the workers; each answers its part of the conversations."""

    def __init__(self, group: WorkerGroup) -> None:
        self.group = group

    def reply(self, conversations: Sequence[Any], *, seed: int = 0) -> list[Any]:
        return self.group.call("reply", [list(talk) for talk in conversations], seed=seed)


class RemoteChat:
    """The workers' model as an engineer's chat: asked in rank 0, while the others wait."""

    def __init__(self, group: WorkerGroup, which: str, options: dict[str, Any]) -> None:
        self.group, self.which, self.options = group, which, options

    @property
    def model(self) -> str:
        return f"live/{self.which}"

    def complete(self, messages: list[Message], schema: dict[str, Any] | None, *, max_tokens: int) -> Completion:
        return self.group.call("complete", self.which, self.options, messages, schema, max_tokens)


def command(options: LanguageOptions) -> list[str]:
    """The command that starts the group."""
    import torch

    count = str(options.processes)
    module = ["-m", "envtuning.trainees.language.worker"]
    if not torch.cuda.is_available():
        return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", count, *module]
    start = [sys.executable, "-m", "accelerate.commands.launch", "--num_processes", count]
    return [*start, *(options.launch or ("--multi_gpu",)), *module]
