"""How easy the pages are to read: words a sentence, long sentences, and Flesch's reading ease, before and after.

    python -m benchmarks.readability [PAGE …]                     # prints the table of these pages, or of all
    python -m benchmarks.readability --before COMMIT --record     # stores it beside the same of an older commit

Prose is a page without its code blocks, tables, headings, pictures and the addresses of links. A code quote counts as one
word of one syllable. A sentence ends at a full stop, a question mark, an exclamation mark, or with its paragraph or list item.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks._command import arguments_of, command, record_if_asked

ROOT = Path(__file__).parents[1]
ALONE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")  # pages outside of docs/
LONG = 25  # words; a longer sentence counts as long
SAMPLE, SEED = 20, 0
NOT_PROSE = (
    re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"!\[[^\]]*\]\([^)]*\)"),
    re.compile(r"^\s*\|.*$", re.MULTILINE),
    re.compile(r"^#.*$", re.MULTILINE),
)
CODE = re.compile(r"``.+?``|`[^`]+`", re.DOTALL)
HELD = "\0"  # stands for a code quote while a paragraph is split
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
PARAGRAPH_ENDS = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)")
MARK_OF_AN_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
SENTENCE_ENDS = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[\")*_]*\s+|(?<=[.!?][\")*_])\s+")
WORD = re.compile(r"[^\W_](?:[\w'’.,%×/-]*[\w%×])?")
VOWELS = re.compile(r"[aeiouy]+")
SILENT = re.compile(r"(?:[^laeiouy]es|[^dt]ed|[^l]e)$")  # of "makes", "played", "page"


def sentences(page: str) -> list[str]:
    """The sentences of a page in Markdown, without its marks."""
    return [sentence for paragraph in paragraphs(page) for sentence in split(paragraph) if words(sentence)]


def split(paragraph: str) -> list[str]:
    """At the ends of sentences, but not inside of code quotes."""
    quotes = iter(CODE.findall(paragraph))
    parts = SENTENCE_ENDS.split(CODE.sub(HELD, paragraph))
    return [re.sub(HELD, lambda _: next(quotes), part) for part in parts]


def paragraphs(page: str) -> Iterator[str]:
    for pattern in NOT_PROSE:
        page = pattern.sub("\n", page)
    page = LINK.sub(r"\1", CODE.sub(lambda found: found[0].replace("\n", " "), page))
    for paragraph in PARAGRAPH_ENDS.split(page):
        yield " ".join(MARK_OF_AN_ITEM.sub("", paragraph).replace("**", "").split())


def words(sentence: str) -> list[str]:
    return WORD.findall(CODE.sub("code", sentence))


def syllables(word: str) -> int:
    """Groups of vowels, without an e that is silent at the end."""
    small = word.lower()
    return max(1, len(VOWELS.findall(small)) - bool(SILENT.search(small)))


def figures(found: list[str]) -> dict[str, float]:
    """Of sentences: how many, mean words, the share of long ones in percent, and Flesch's reading ease."""
    lengths = [len(words(sentence)) for sentence in found]
    said = [word for sentence in found for word in words(sentence)]
    mean, per_word = len(said) / len(found), sum(map(syllables, said)) / len(said)
    return {
        "sentences": len(found),
        "words a sentence": round(mean, 1),
        f"over {LONG} words, %": round(100 * sum(length > LONG for length in lengths) / len(found), 1),
        "reading ease": round(206.835 - 1.015 * mean - 84.6 * per_word, 1),
    }


def measured(pages: dict[str, str]) -> dict[str, Any]:
    """By page and in all, with some sentences drawn at random."""
    by_page = {name: found for name, text in pages.items() if (found := sentences(text))}
    everything = [sentence for found in by_page.values() for sentence in found]
    return {
        "in all": figures(everything),
        "by page": {name: figures(found) for name, found in by_page.items()},
        "drawn": random.Random(SEED).sample(everything, min(SAMPLE, len(everything))),
    }


def pages_now() -> dict[str, str]:
    paths = [*(ROOT / name for name in ALONE), *sorted((ROOT / "docs").glob("*.md"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def pages_at(commit: str) -> dict[str, str]:
    listed = git("ls-tree", "--name-only", commit, "--", *ALONE, "docs/").splitlines()
    return {name: git("show", f"{commit}:{name}") for name in listed if name.endswith(".md")}


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def show(table: dict[str, dict[str, float]]) -> None:
    for name, row in table.items():
        print(f"{name:24} " + "   ".join(f"{what} {value:g}" for what, value in row.items()))


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="pages to measure (default: all)")
    parser.add_argument("--before", metavar="COMMIT", help="measure the pages of this commit beside")
    options = arguments_of(parser)
    pages = pages_now()
    chosen = {name: pages[name] for name in options.pages} if options.pages else pages
    found = {"now": measured(chosen)}
    if options.before:
        commit = git("rev-parse", "--short=12", options.before).strip()
        found["before"] = {"commit": commit} | measured(pages_at(commit))
    for when, of_then in found.items():
        print(f"{when}:")
        show(of_then["by page"] | {"in all": of_then["in all"]})
    record_if_asked(options, "readability", found)


if __name__ == "__main__":
    main()
