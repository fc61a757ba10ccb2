"""What the readability figures count: prose alone, sentence by sentence."""

from __future__ import annotations

import re

import pytest

from benchmarks.readability import ROOT, figures, measured, pages_now, sentences, syllables, words

SCREEN = 45  # lines

PAGE = """# A heading. It counts not

![A picture. Of nothing](picture.svg)

Agents cross a [frozen lake](https://example.org/a.b). Do they wait? `env.step(a. b)` returns
3.5 points, e.g. in `docs`: **see there.** It ends

| a table | is. not prose |
| --- | --- |

```python
x = 1  # This is code. It counts not.
```

- one item
- another. With two
"""


def test_sentences_are_those_of_the_prose():
    assert sentences(PAGE) == [
        "Agents cross a frozen lake.",
        "Do they wait?",
        "`env.step(a. b)` returns 3.5 points, e.g. in `docs`: see there.",
        "It ends",
        "one item",
        "another.",
        "With two",
    ]


def test_a_code_quote_is_one_word():
    assert words("`env.step(a. b)` returns 3.5 points") == ["code", "returns", "3.5", "points"]


@pytest.mark.parametrize(
    ("word", "count"), [("lake", 1), ("frozen", 2), ("table", 2), ("played", 1), ("started", 2), ("environment", 4)]
)
def test_syllables(word, count):
    assert syllables(word) == count


def test_figures_of_two_sentences():
    found = figures(["We play here.", " ".join(["so"] * 27)])
    assert found["sentences"] == 2
    assert found["words a sentence"] == 15
    assert found["over 25 words, %"] == 50
    assert found["reading ease"] == pytest.approx(206.835 - 1.015 * 15 - 84.6, abs=0.05)


def test_an_area_of_the_changelog_fits_a_screen():
    """CHANGELOG.md is merged by union, which can bring back lines that were taken out."""
    areas = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n### ")[1:]
    lengths = {area.partition("\n")[0]: len(area.strip().splitlines()) for area in areas}
    assert {name: lines for name, lines in lengths.items() if lines > SCREEN} == {}
    assert len(lengths) == len(areas), "two areas have one name"


def test_the_exam_stays_a_small_package():
    """It trains, asks, scores and verifies: whoever adds to it simplifies something else in it."""
    files = (ROOT / "envtuning" / "exam").rglob("*.py")
    assert 1_000 < sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= 1_800


def test_the_glossary_has_at_most_24_words():
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    rows = [line for line in page.partition("\n## Words\n")[2].partition("\n## ")[0].splitlines() if line[:2] == "| "]
    assert rows[0] == "| word | meaning |"
    assert 0 < len(rows) - 2 <= 24


def test_what_the_table_of_additions_names_exists():
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    section = page.partition("\n## Where to add something\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line[:2] == "| "][2:]
    assert len(rows) >= 7
    for row in rows:
        places = re.findall(r"`((?:engineers|envtuning)/[\w/.]+)`", row)
        assert all((ROOT / place).exists() for place in places), row
        for name in re.findall(r"`([A-Za-z_]+)`", row):
            assert any(
                name in (ROOT / place).read_text(encoding="utf-8") for place in places if (ROOT / place).is_file()
            ), name


def test_the_pages_have_at_most_sixteen_words_a_sentence():
    assert measured(pages_now())["in all"]["words a sentence"] <= 16
