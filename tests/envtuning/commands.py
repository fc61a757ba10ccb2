"""The command line as a user calls it, in the tests' own process."""

from __future__ import annotations

from typer.testing import CliRunner

from envtuning.cli import app


def called(*words: object) -> tuple[int, str]:
    """The exit code and the output of ``envtuning`` with these words. Raises what would end in a traceback."""
    ended = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return ended.exit_code, ended.output
