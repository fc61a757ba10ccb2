"""Several processes for one trainee: a group of workers trains, replies and answers the engineer; the loop stays in its own.

``accelerate launch`` starts the group once for the run (``torchrun`` on CPU, where accelerate starts a single process). Rank 0
holds the line to the loop and passes each call on to the others, so that all ranks do the same thing at the same time.
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
from engineers.own import trusted
from envtuning.trainees.base import WorkerLost
from envtuning.trainees.language.options import LanguageOptions

ADDRESS, KEY = "ENVTUNING_WORKERS_ADDRESS", "ENVTUNING_WORKERS_KEY"
PLACES = "ENVTUNING_WORKERS_PATH"  # that modules are imported from: what the loop's process imports, the workers find as well
START_LIMIT = 600  # seconds until the group must have called back: loading a large model takes minutes
Told = Callable[[Any], None]


class StretchStopped(RuntimeError):
    """The loop has seen enough of this stretch of training. Defined here: the loop's process cannot read a class of a worker's main module."""


class WorkerGroup:
    """The loop's end of the line. Every method of the trainee in the workers can be called by its name."""

    def __init__(self, options: LanguageOptions, **trainee: Any) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="workers-")
        key = secrets.token_bytes(16)
        address = os.path.join(self.folder.name, "line")
        with Listener(address, authkey=key) as listener:
            told = {ADDRESS: address, KEY: key.hex(), PLACES: json.dumps(sys.path)}
            self.process = subprocess.Popen(command(options), env=os.environ | told, stdin=subprocess.DEVNULL)
            self.line = self._accepted(listener)
        self.call("make", trusted=trusted(), options=options.model_dump(), **trainee)

    def _accepted(self, listener: Listener) -> Connection:
        """The line, once rank 0 has called. Raises ``WorkerLost`` where the group dies or stays silent."""
        listener._listener._socket.settimeout(1.0)  # type: ignore[attr-defined]  # no public way to wait for a while only
        for _ in range(START_LIMIT):
            try:
                return listener.accept()
            except TimeoutError:
                if self.process.poll() is not None:
                    break
        raise WorkerLost(f"the workers did not start within {START_LIMIT} s (exit status {self.process.poll()})")

    def call(self, method: str, *given: Any, told: Told | None = None, **named: Any) -> Any:
        """What the workers' trainee returns. ``told`` gets what it reports on the way; what ``told`` raises stops the workers."""
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
            self.process.terminate()
            self.process.wait(30)
        finally:
            self.line.close()
            self.folder.cleanup()


class RemotePolicy:
    """Replies by the workers, each of which answers its part of the conversations."""

    def __init__(self, group: WorkerGroup) -> None:
        self.group = group

    def reply(self, conversations: Sequence[Any], *, seed: int = 0) -> list[Any]:
        return self.group.call("reply", [list(talk) for talk in conversations], seed=seed)

    def beliefs(self, conversations: Sequence[Any]) -> list[Any]:
        return self.group.call("beliefs", [list(talk) for talk in conversations])


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
    """How the group is started."""
    import torch

    count = str(options.processes)
    module = ["-m", "envtuning.trainees.language.worker"]
    if not torch.cuda.is_available():
        return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", count, *module]
    start = [sys.executable, "-m", "accelerate.commands.launch", "--num_processes", count]
    return [*start, *(options.launch or ("--multi_gpu",)), *module]
