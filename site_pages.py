"""Makes the site of the repository: pages that lie outside docs/ become pages of the site, and other linked files are copied.

MkDocs calls the two functions below. A page keeps the relative links that work in the repository; here each is led to where its
target lies on the site, so that no page is written twice and none is written for the site alone.
"""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent
# Where a file of the repository lies on the site; what lies in docs/ keeps its name.
PAGES = {
    "README.md": "index.md",
    "examples/first_lake.ipynb": "first_lake.md",
    "benchmarks/README.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/, and every file of the repository that a page links to."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=notebook_page(text) if source.endswith(".ipynb") else text))
    for source in sorted({path for file in files for path in _linked(file)}):
        if not files.get_file_from_path(_place(source)):
            files.append(File.generated(config, _place(source), abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead each relative link to where its target lies on the site."""
    source = _source(page.file.src_uri)

    def lead(link: re.Match[str]) -> str:
        target = _target(source, link[2])
        if target is None:
            return link[0]  # MkDocs says that it leads nowhere
        return link[1] + os.path.relpath(_place(target), PurePosixPath(page.file.src_uri).parent) + link[3]

    return LINK.sub(lead, markdown)


def notebook_page(text: str) -> str:
    """A notebook as it was stored, outputs included, as Markdown."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [_shown(output) for output in cell.get("outputs", ())]
    return "\n\n".join(parts)


def _shown(output: dict[str, Any]) -> str:
    """One output of a cell: a picture, else what a notebook shows as HTML, else text."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        picture = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
        return f"![what the cell shows](data:image/svg+xml;base64,{picture})"
    if "text/html" in data:
        return f"<div>\n{''.join(data['text/html'])}\n</div>"
    return f"```text\n{''.join(output.get('text') or data['text/plain'])}\n```"


def _source(place: str) -> str:
    """The repository's file behind a page of the site."""
    return next((source for source, page in PAGES.items() if page == place), f"docs/{place}")


def _place(source: str) -> str:
    """Where a file of the repository lies on the site: a page under its own name, anything else under files/."""
    return PAGES.get(source) or (source.removeprefix("docs/") if source.startswith("docs/") else f"files/{source}")


def _target(source: str, link: str) -> str | None:
    """The file that a relative link in ``source`` means, from the repository's root; a folder means the README that is about it."""
    path = os.path.normpath(PurePosixPath(source).parent / link)
    if (ROOT / path).is_dir():
        path = next(
            (f"{at}/README.md" for at in (path, os.path.dirname(path)) if (ROOT / at / "README.md").exists()), path
        )
    return path if (ROOT / path).is_file() else None


def _linked(file: File) -> list[str]:
    """The repository's files that a page links to."""
    if not file.src_uri.endswith(".md"):
        return []
    source = _source(file.src_uri)
    targets = [_target(source, link[2]) for link in LINK.finditer((ROOT / source).read_text(encoding="utf-8"))]
    return [target for target in targets if target is not None]
