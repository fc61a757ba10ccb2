"""``human``: an engineer at a keyboard. It writes the report and an editable answer, and waits until the answer is saved.

The stage's folder contains ``report.md`` (to read), ``report.json`` (the complete report) and ``answer.json`` (to
edit and save; saved without an edit, it changes nothing). Errors in a saved answer are written to ``refused.txt`` and to
the screen, and the wait continues. An answer that was saved while no process waited is used when the question is asked again.
An accepted answer becomes ``accepted.json``, so that another run with the same question in this folder waits for a new answer.
Every saved answer is an exchange in the transcript, as a model's is, so that ``replay/FILE`` gives the same proposals again.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from engineers.engineer import Engineer
from engineers.from_file import PLAIN, reads
from engineers.guard import NO_GUARD, Guard
from engineers.model.answer_format import AnswerFormat, answer_format_of
from engineers.model.chat import Message
from engineers.model.context import Context, context_named
from engineers.model.prompt import PROMPT_VERSION, build_prompt, build_reask, quoted, require_templates
from engineers.model.reading import read_config
from engineers.model.replies import ReplyError
from engineers.model.transcript import Exchange, Transcript, now
from engineers.proposal import Proposal, Usage
from engineers.report import StageReport
from engineers.shared.untrusted import NotReadable, read_bytes
from engineers.space import Space, checked_space

ACCEPTED = "accepted.json"  # beside answer.json
MOST_ANSWERS = 1_000  # number of tries for one question in a transcript: a person may try again until the time is over

ConfigT = TypeVar("ConfigT", bound=BaseModel)
Stamp = tuple[int, int]  # of a file: when it was last written, and its size


class HumanEngineer(Engineer):
    """Asks the person who has the folder open. Gives up after ``timeout`` seconds: then the current config is kept."""

    name = "human"
    guard: Guard

    def __init__(
        self,
        desk: str | Path = "engineer-desk",
        *,
        timeout: float = 24 * 3600.0,  # seconds
        poll: float = 0.5,  # seconds between two looks at the file
        context: str | Context = "full",
        who: str = "",  # the person's name or initials, for the transcript
        transcript: str | Path | None = None,  # JSONL file that every saved answer is added to
        guard: Guard = NO_GUARD,
        space: Space | None = None,
        say: Callable[[str], object] | None = None,
    ) -> None:
        require_templates()
        if not poll >= 0:
            raise ValueError(f"poll={poll}: give a number of seconds, 0 or more")
        self.name = f"{type(self).name} {who}" if who else type(self).name
        self.transcript = Transcript(Path(transcript)) if transcript is not None else None
        self.desk, self.timeout, self.poll = Path(desk), timeout, poll
        self.context = context_named(context)
        self.tier = self.context.tier
        self.guard, self.space = guard, checked_space(space)
        self.say = say or (lambda text: print(text, file=sys.stderr, flush=True))

    def check_able(self, current: BaseModel, editable: Sequence[str] | None = None) -> None:
        """Raise ``KnobError`` if no answer could change or keep the config's knobs, or if ``space`` names other knobs."""
        answer_format_of(current, editable, self.space)

    def propose(
        self, report: StageReport, current: ConfigT, editable: Sequence[str] | None = None
    ) -> Proposal[ConfigT]:
        """The config in the saved answer, guarded like any other; the current one with ``fallback=True`` on a time-out."""
        answer_format = answer_format_of(current, editable, self.space)
        messages = build_prompt(report, answer_format, self.context, space=self.space).messages
        answer_file = self._lay_out(report, answer_format, messages[-1]["content"])
        given = answer_file.with_name(ACCEPTED)
        again = (
            f" An earlier answer is in {given}: copy it to {answer_file.name} to give it again."
            if given.exists()
            else ""
        )
        self.say(
            f"Stage {report.stage} is done: read {given.parent / 'report.md'}, edit and save {answer_file}.{again}"
        )
        begin, refusals = time.monotonic(), list[str]()
        for waited in self._saves(answer_file, begin, _untouched(answer_file, answer_format)):
            try:
                text = _read(answer_file)
                if text is None:  # an editor that saves by renaming is between its two steps
                    continue
                self._record(report.stage, messages, answer_format, text, waited)
                config, reasons = read_config(text, answer_format, report, guard=self.guard)
            except (ReplyError, NotReadable) as error:
                refusal = f"{answer_file.name} {error}" if isinstance(error, NotReadable) else str(error)
                refusals.append(refusal)
                if isinstance(error, ReplyError):
                    messages = [*messages, quoted(text or ""), build_reask(refusal)]
                _write(answer_file.parent / "refused.txt", f"{refusal}\n")
                self.say(f"Not accepted: {refusal}. Edit and save again.")
                continue
            answer_file.replace(given)
            usage = Usage(seconds=round(waited, 3), attempts=len(refusals) + 1)
            return Proposal(config=config, reasons=reasons, usage=usage, engineer=self.name, refusals=refusals)
        refusals.append(f"no accepted answer in {answer_file.name} within timeout={self.timeout:g} seconds")
        usage = Usage(seconds=round(time.monotonic() - begin, 3), attempts=len(refusals))
        return Proposal(config=current, usage=usage, engineer=self.name, fallback=True, refusals=refusals)

    def _saves(self, file: Path, begin: float, seen: Stamp | None) -> Iterator[float]:
        """The seconds since ``begin``, each time that the file was saved after it was ``seen``, until the time is over."""
        settling = None
        while (waited := time.monotonic() - begin) < self.timeout:
            stamp = _stamp(file)
            if stamp == seen or stamp != settling:  # not saved yet, or not completely
                settling = stamp
                time.sleep(min(self.poll, self.timeout - waited))
            else:
                seen = stamp
                yield waited

    def _record(
        self, stage: int, messages: list[Message], answer_format: AnswerFormat[Any], reply: str, waited: float
    ) -> None:
        """The answer as an exchange with a model: after a refusal, the question also has the bad answer and its faults."""
        if self.transcript is not None:
            exchange = Exchange(
                when=now(),
                prompt_version=PROMPT_VERSION,
                engineer=self.name,
                model=type(self).name,
                context=self.context,
                max_attempts=MOST_ANSWERS,
                stage=stage,
                number=len(messages) // 2 - 1,  # a question has two messages, and so has each refusal
                kind="proposal",
                messages=[dict(message) for message in messages],
                json_schema=answer_format.schema,
                max_tokens=0,
                reply=reply,
                cost=0.0,
                seconds=round(waited, 3),
            )
            self.transcript.append(exchange)

    def _lay_out(self, report: StageReport, answer_format: AnswerFormat[Any], read_me: str) -> Path:
        """Write the question. An answer that was already edited for the same question stays."""
        folder = self.desk / f"stage-{report.stage}"
        folder.mkdir(parents=True, exist_ok=True)
        question = report.model_dump_json(indent=2)
        (folder / "refused.txt").unlink(missing_ok=True)  # of an earlier wait
        report_file, answer_file = folder / "report.json", folder / "answer.json"
        asked_before = _holds(report_file, question)
        _write(report_file, question)
        _write(folder / "report.md", f"{read_me}\n")
        if not (asked_before and answer_file.exists()):
            _write(answer_file, _blank_answer(answer_format))
        return answer_file


def _read(file: Path) -> str | None:
    """Raises ``NotReadable`` for a pipe, which would never end, and the like."""
    found = read_bytes(file)
    return None if found is None else found.decode("utf-8", "replace")


def _holds(file: Path, text: str) -> bool:
    try:
        return _read(file) == text
    except NotReadable:
        return False


def _write(file: Path, text: str) -> None:
    """Replace any file of that name, even a pipe or a link to another place."""
    draft = file.with_name(f".{file.name}.draft")
    draft.unlink(missing_ok=True)
    draft.write_text(text, encoding="utf-8")
    draft.replace(file)


def _blank_answer(answer_format: AnswerFormat[Any]) -> str:
    return json.dumps(answer_format.blank(), indent=2) + "\n"


def _stamp(file: Path) -> Stamp | None:
    """A value that changes when the file is saved; None without a file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _untouched(answer_file: Path, answer_format: AnswerFormat[Any]) -> Stamp | None:
    """The stamp of a blank answer; None, which never equals a stamp, if it has been edited already."""
    return _stamp(answer_file) if _holds(answer_file, _blank_answer(answer_format)) else None


@reads({"poll": PLAIN, "timeout": PLAIN, "who": PLAIN})
def make(
    model: str = "",
    *,
    desk: str | Path = "engineer-desk",
    timeout: float = 24 * 3600.0,
    poll: float = 0.5,
    context: str | Context = "full",
    who: str = "",
    transcript: str | Path | None = None,
    guard: Guard = NO_GUARD,
    space: Space | None = None,
    say: Callable[[str], object] | None = None,
) -> HumanEngineer:
    """Asks a person, by a file. ``human`` works in the folder ``desk`` (inside a run, ``RUN/desk``); ``human/FOLDER`` works in FOLDER."""
    return HumanEngineer(
        model or desk,
        timeout=timeout,
        poll=poll,
        context=context,
        who=who,
        transcript=transcript,
        guard=guard,
        space=space,
        say=say,
    )
