# /// script
# dependencies = ["datasets"]
# [tool.client]
# title = "Hugging Face Datasets"
# quick = true
# how = "`datasets.Dataset.from_list(mfl.text_dataset(config, n=1000))`"
# ///
"""Text rows as a Hugging Face dataset, written here and read back by another process."""

import subprocess
import sys
import tempfile

import datasets

import mapf_frozenlake as mfl

PACKAGES = ["datasets"]
READ_BACK = """
import sys, datasets, mapf_frozenlake as mfl
rows = datasets.load_from_disk(sys.argv[1])
fresh = mfl.text_dataset(mfl.LakeConfig.single(4, 3, reward="progress"), 20, seed=2)
assert list(rows) == fresh
print(sum(mfl.score_answer(row["answer"], row) for row in rows))
"""


def check_text_rows():
    """text rows, written to disk: another process reads the same and scores every answer"""
    rows = mfl.text_dataset(mfl.LakeConfig.single(4, 3, reward="progress"), 20, seed=2)
    folder = tempfile.mkdtemp()
    datasets.Dataset.from_list(rows).save_to_disk(folder)
    printed = subprocess.run(
        [sys.executable, "-c", READ_BACK, folder], capture_output=True, text=True, check=True
    ).stdout
    assert float(printed.split()[-1]) == 20.0


def check_splits_with_unknown_facts():
    """rows whose least makespan is unknown keep it unknown"""
    config = mfl.LakeConfig.single(12, 6)
    rows = mfl.text_dataset(config, 3, seed=0, style="coordinates")
    assert rows[0]["metadata"]["makespan"] is None
    assert list(datasets.Dataset.from_list(rows)) == rows


if __name__ == "__main__":
    import _checks

    _checks.run(globals())
