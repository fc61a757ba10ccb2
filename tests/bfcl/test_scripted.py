"""The policies that figures on this world are compared with: what each writes, and that they write it as ever."""

import hashlib
import json
import random

from benchmarks.bfcl.policies import POLICIES
from benchmarks.bfcl.scripts import perturbed
from envtuning.worlds.bfcl.package import SPLITS
from envtuning.worlds.bfcl.tasks import load_tasks


def written(package, policy, task):
    return POLICIES[policy](package, task, random.Random(task.id))


def test_each_baseline_is_the_ground_truth_but_for_what_its_name_says(v4):
    for split in SPLITS:
        for task in load_tasks(v4, split)[::20]:
            truth = [[f"[{', '.join(calls)}]"] if calls else [] for calls in task.ground_truth]
            first = next(turn for turn, calls in enumerate(task.ground_truth) if calls)
            assert written(v4, "no-op", task) == [[]] * task.turns
            assert written(v4, "ground truth", task) == truth
            assert written(v4, "first turn only", task) == truth[: first + 1]
            for policy, more in (("drop one call", -1), ("repeat one call", 1)):
                script = written(v4, policy, task)
                changed = [turn for turn in range(task.turns) if script[turn] != truth[turn]]
                assert len(changed) == 1
                found = sum(len(json.dumps(replies)) for replies in script)
                assert (found > sum(len(json.dumps(replies)) for replies in truth)) == (more > 0)
            assert all(1 <= len(replies) <= 3 for replies in written(v4, "random", task))


def test_scripts_are_what_they_were_when_the_stored_figures_were_made(v4):
    """Mistakes of each kind, and the random calls: by their digest, over 800 tasks and 80."""
    whole = hashlib.sha256()
    for split in SPLITS:
        for task in load_tasks(v4, split):
            whole.update(json.dumps(perturbed(v4, task, random.Random(task.id))).encode())
        for task in load_tasks(v4, split)[::10]:
            whole.update(json.dumps(written(v4, "random", task)).encode())
    assert whole.hexdigest()[:16] == "b303f30fa113b456"
