"""docs/tools.md: its Python runs, its switches are those that the benchmark runs, its commands exist."""

import contextlib
import io
import re
from pathlib import Path

import yaml

from benchmarks.bfcl.ablations import SWITCHES
from benchmarks.bfcl.trained import FOUR_STAGES, spec_of
from envtuning.cli.arguments import parse_settings
from envtuning.runs.plan import Plan
from envtuning.runs.spec import load_spec

PAGE = (Path(__file__).parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")


def test_the_page_s_python_runs(v4):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    for code, said in zip(blocks, ("1 True True", "Hint: destination is missing", "no call was made"), strict=True):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, "docs/tools.md", "exec"), {})
        assert said in printed.getvalue()


def test_the_page_s_switches_are_those_that_were_measured():
    rows = dict(re.findall(r"^\| ([^|]+) \| `((?:--set [^`]+)+)` \|$", PAGE, re.MULTILINE))
    assert set(rows) == set(SWITCHES) - {"four stages"}
    for name, line in rows.items():
        settings = re.findall(r"--set (?:'([^']*)'|(\S+))", line)
        spec = load_spec(
            FOUR_STAGES, changes=parse_settings([quoted or plain for quoted, plain in settings]), trust=["benchmarks"]
        )
        measured = spec_of("v4", SWITCHES[name])
        assert [stage.config for stage in spec.stages] == [stage.config for stage in measured.stages]
        assert [stage.budget for stage in spec.stages] == [stage.budget for stage in measured.stages]
        assert spec.trainee == measured.trainee
        assert spec.target == measured.target


def test_the_preset_in_miniature_has_the_same_four_stages():
    miniature, full = Plan.of(load_spec("tools-in-miniature")), Plan.of(spec_of("v4", {}))
    assert [stage.name for stage in miniature.spec.stages] == [stage.name for stage in full.spec.stages]
    for small, whole in zip(miniature.configs, full.configs, strict=True):
        assert (small.reward, small.feedback) == (whole.reward, whole.feedback)
        assert set(small.slices) == set(whole.slices) - {"long_context"}  # too long for it
    assert "models/tools" in yaml.safe_dump(load_spec("tools-in-miniature").trainee.options)
