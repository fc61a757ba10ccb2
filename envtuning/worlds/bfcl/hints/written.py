"""``WrittenHints``: hints that an engineer wrote into the config, by error template; where it wrote none, the rules' hints are used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from envtuning.worlds.bfcl.events import CallAugmenter, CallEvent
from envtuning.worlds.bfcl.hints.rules import augment
from envtuning.worlds.bfcl.hints.templates import template_of


@dataclass(frozen=True)
class WrittenHints:
    """An augmenter that uses the written hints; for an empty hint the rules' hint is used."""

    hints: Mapping[str, str]
    otherwise: CallAugmenter | None = augment

    def __call__(self, event: CallEvent, /) -> str | None:
        if event.error and (hint := self.hints.get(template_of(event.call.name, event.result))):
            return hint
        return self.otherwise(event) if self.otherwise is not None else None
