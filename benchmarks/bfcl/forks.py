"""The tools of a fork, to compare their messages with the stock ones."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from envtuning.worlds.bfcl.package import Package, PackageError


def with_tools(package: Package, folder: str | Path) -> Package:
    """The package with the tool classes of another folder, such as a fork's ``func_source_code``.

    Raises ``PackageError`` if a tool class's file is missing. The code is run unchecked.
    """
    place = Path(folder).resolve()
    files = {name: module.rsplit(".", 1)[-1] for name, module in package.class_modules.items()}
    if missing := [f"{file}.py" for file in files.values() if not (place / f"{file}.py").is_file()]:
        raise PackageError(f"{folder} has no {', '.join(missing)}: give the folder that holds all tool classes' files")
    sys.path.insert(0, str(place.parent.parent))  # forks import their own files as parent.folder.file
    try:
        modules = {name: f"{place.parent.name}.{place.name}.{file}" for name, file in files.items()}
        forked = dataclasses.replace(package, class_modules=modules)
        for name in files:
            forked.tool_class(name)
    finally:
        sys.path.remove(str(place.parent.parent))
    return forked
