"""The page's ten lines run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "engineering_gym.md"


@pytest.mark.slow
def test_sb3_s_ppo_trains_in_the_ten_lines():
    pytest.importorskip("stable_baselines3")
    [block] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len([line for line in block.splitlines() if line.strip()]) <= 11
    ran: dict[str, object] = {}
    exec(block, ran)
    assert ran["model"].num_timesteps >= 1024
    assert isinstance(ran["gained"], float)
    assert ran["held_out"].observation_space.contains(ran["observation"])
