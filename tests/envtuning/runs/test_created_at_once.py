"""Two processes that make one folder a run at the same moment make one run."""

from __future__ import annotations

import json
import subprocess
import sys

from envtuning.runs.log import RunLog

FOLDERS = 16  # in every second one the two processes have different specs
MAKER = """
import json, sys
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import load_spec

plans = [Plan.of(load_spec("scripted", changes={"seed": seed})) for seed in (0, 1)]
print(json.dumps(["ready", ""]), flush=True)
for line in sys.stdin:
    folder, seed = json.loads(line)
    try:
        said = ["made", RunLog.create(folder, plans[seed]).plan.spec.seed]
    except Exception as error:
        said = [type(error).__name__, str(error)]
    print(json.dumps(said), flush=True)
"""


def test_two_processes_that_create_a_run_at_once_create_one(tmp_path):
    both = [
        subprocess.Popen([sys.executable, "-c", MAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        for one in both:
            assert json.loads(one.stdout.readline())[0] == "ready"
        for number in range(FOLDERS):
            folder = tmp_path / str(number)
            for seed, one in zip((0, number % 2), both, strict=True):
                one.stdin.write(json.dumps([str(folder), seed]) + "\n")
                one.stdin.flush()
            said = [tuple(json.loads(one.stdout.readline())) for one in both]
            assert {kind for kind, _ in said} <= {"made", "RunError"}, said
            assert not any("damaged" in str(what) for _, what in said), said
            made = [seed for kind, seed in said if kind == "made"]
            assert set(made) == {RunLog.open(folder).plan.spec.seed}, said
    finally:
        for one in both:
            one.kill()
            one.communicate()
