"""What the warmup's command line takes."""

from __future__ import annotations

import pytest

from mapf_frozenlake import warmup


@pytest.mark.parametrize(
    ("words", "code", "said"), [(["--help"], 0, "usage: python -m mapf_frozenlake.warmup"), (["--quick"], 2, "--quick")]
)
def test_help_and_what_is_unknown_compile_nothing(monkeypatch, capsys, words, code, said):
    monkeypatch.setattr(warmup, "steps", lambda: pytest.fail("compiles"))
    with pytest.raises(SystemExit) as ended:
        warmup.main(words)
    assert ended.value.code == code
    printed = capsys.readouterr()
    assert said in printed.out + printed.err


def test_every_step_is_named_before_it_is_taken(monkeypatch, capsys):
    taken: list[str] = []
    monkeypatch.setattr(
        warmup, "steps", lambda: iter([("one", lambda: taken.append("one")), ("two", lambda: taken.append("two"))])
    )
    warmup.main([])
    assert taken == ["one", "two"]
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()[1:]] == ["one", "two", "done"]
