"""The README's picture: what ``rising`` does with the data of 24 tasks, and what comes of it, ``python -m benchmarks.engineer_picture``.

One sitting of ``codes-slow``, on the first root of the studies. No figure is taken from it.
"""

from __future__ import annotations

from pathlib import Path

from envtuning.curriculum.engineer_curriculum import EngineerCurriculum
from envtuning.exam.families import CODES
from envtuning.exam.session import Session
from envtuning.exam.sitting import Paper, examined, trained

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "engineer.svg"
ROOT = 1000


def main() -> None:
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "the same bytes each time"
    paper = Paper(engineer="rising", family=CODES, root=ROOT)
    session = Session(CODES, [paper.start], paper.decisions)
    curriculum = examined(paper, session, None, {})
    trained(paper, session, curriculum)
    assert isinstance(curriculum, EngineerCurriculum)
    curriculum.plot().savefig(PICTURE, metadata={"Date": None})
    print(PICTURE)


if __name__ == "__main__":
    main()
