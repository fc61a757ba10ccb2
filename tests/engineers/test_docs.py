"""The Python of docs/engineers.md and of docs/own_engineer.md runs, each page from top to bottom."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import engineers
from envtuning import EngineerCurriculum, Outcome
from mapf_frozenlake import LakeConfig

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "count", "printed"), [("engineers.md", 1, "slices.4.wait_ratio 0.2 → 0.23"), ("own_engineer.md", 6, "")]
)
def test_the_examples_run(monkeypatch, capsys, page, count, printed):
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, f"docs/{page}", "exec"), names)
    assert len(blocks) == count
    assert printed in capsys.readouterr().out


def test_the_gentle_engineer_is_found_where_it_was_saved(monkeypatch, tmp_path, example_report):
    """Its listing is a whole file; made as the page says, with all that a loop gives."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own_engineer.md").read_text(), re.DOTALL)
    listing = next(block for block in blocks if "class Gentle" in block)
    (tmp_path / "gentle.py").write_text(listing)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    config = LakeConfig.model_validate(example_report.config)
    for name in ("gentle:make", "gentle:make/0.05", "gentle:Gentle"):
        made = engineers.make(name, seed=1, transcript=tmp_path / "t.jsonl", context="V6", max_cost=1.0, max_drop=0.5)
        assert made.propose(example_report, config).config.slices[4].hole_ratio == 0.17
        assert (made.seed, made.guard.max_drop) == (1, 0.5)
    for name, options in (("gentle:make/0.1", {}), ("gentle:make", {"step": 0.1}), ("gentle:Gentle", {"step": 0.1})):
        assert engineers.make(name, **options).propose(example_report, config).config.slices[4].hole_ratio == 0.12


def test_the_weak_engineer_divides_data_in_a_script_too(monkeypatch):
    """There, a report has no validation: its results are those of training."""
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own_engineer.md").read_text(), re.DOTALL)
    place = next(place for place, block in enumerate(blocks) if "class Weak" in block)
    names: dict[str, object] = {}
    for block in blocks[: place + 1]:
        exec(compile(block, "docs/own_engineer.md", "exec"), names)
    start = LakeConfig(slices={3: {}, 4: {}, 5: {}}, num_agents=2)
    curriculum = EngineerCurriculum(names["Weak"](), start, target=start, every=30)
    found = []
    for number in range(120):
        size = "345"[number % 3]
        curriculum.observe(Outcome(size, success := number % int(size) < 2 + number // 60, float(success)))
        if (config := curriculum.next()) is not None:
            found.append(tuple(one.share for one in config.slices.values()))
    assert len(set(found)) >= 2
    assert all(easy < hard for easy, _, hard in found)
    assert curriculum.incidents == []


def test_every_engineer_and_context_is_in_the_tables():
    from engineers import CONTEXTS, available

    text = (ROOT / "docs" / "engineers.md").read_text()
    assert all(f"| `{name}" in text for name in available())
    assert all(f"| `{name}`" in text for name in CONTEXTS)
