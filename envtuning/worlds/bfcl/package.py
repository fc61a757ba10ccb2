"""Finds ``bfcl-eval``, verifies its files and loads its modules. No file of it is copied into this project.

Its data, tool classes and checkers are read in place: in the folder that ``python -m envtuning.worlds.bfcl install`` filled, in
the interpreter's own packages, or in the folder of an unpacked wheel. The modules of the two versions have the same names, so a
process can use only one of them.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

from engineers.shared.errors import UserError
from engineers.shared.extras import how_to_install

Version = Literal["v4", "v3-paper"]
VERSIONS: tuple[Version, ...] = get_args(Version)

Split = Literal["base", "miss_func", "miss_param", "long_context"]
SPLITS: tuple[Split, ...] = get_args(Split)
# The classes of the multi-turn part; the package has others, which need the network or a vector store.
ToolClass = Literal[
    "GorillaFileSystem",
    "MathAPI",
    "MessageAPI",
    "TwitterAPI",
    "TicketAPI",
    "TradingBot",
    "TravelAPI",
    "VehicleControlAPI",
]
TOOL_CLASSES: tuple[ToolClass, ...] = get_args(ToolClass)

INSTALL = "python -m envtuning.worlds.bfcl install"


class PackageError(UserError, RuntimeError):
    """The benchmark's package is absent or not the requested one, or the process already uses the other version."""


@dataclass(frozen=True)
class Release:
    """One published wheel, with checksums."""

    number: str
    prefix: str  # of its data files
    wheel_sha256: str
    files_sha256: str  # over the files that are used here: see ``digest``


RELEASES: dict[Version, Release] = {
    "v4": Release(
        number="2026.3.23",
        prefix="BFCL_v4_",
        wheel_sha256="3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
        files_sha256="6d7e2b48c5699cf8d4db60d18abb3a70b4fe881394a0ac1833c4749872f0ea80",
    ),
    "v3-paper": Release(  # the one that the paper trained on
        number="2025.6.9.2",
        prefix="BFCL_v3_",
        wheel_sha256="566e8fe77b7f1b640338cd4f371a447c0ae05f7986d349d36870a6f393eb572a",
        files_sha256="8ec7224f4ed88de970b61ee69a8085e6908ceb73a3a28f89d8961caa7bb2131a",
    ),
}


@dataclass(frozen=True, eq=False)  # there is one per process, and it is used as a key
class Package:
    """A loaded ``bfcl-eval``: its folder and the modules that the environment uses."""

    version: Version
    root: Path  # the folder that holds bfcl_eval/
    checker: ModuleType
    executor: ModuleType
    class_modules: dict[str, str]  # tool class -> its module
    stateless: frozenset[str]
    long_context: ModuleType
    added_tools_sentence: str  # what the user says when held-back tools appear
    step_limit: int  # steps with calls in one turn; with one more the episode fails

    def executor_finds(self, name: str) -> bool:
        """Whether the official executor would call something other than a tool under this name: it evaluates calls in its own namespace."""
        itself = self.executor.execute_multi_turn_func_call
        found = vars(self.executor).get(name, getattr(builtins, name, None))
        return callable(found) or name in itself.__code__.co_varnames

    def tool_class(self, name: str) -> Any:
        return getattr(importlib.import_module(self.class_modules[name]), name)

    def data_file(self, split: str, *, answers: bool = False) -> Path:
        folder = self.root / "bfcl_eval" / "data"
        if answers:
            folder /= "possible_answer"
        return folder / f"{RELEASES[self.version].prefix}multi_turn_{split}.json"

    def docs_file(self, class_name: str) -> Path:
        module = self.class_modules[class_name].rsplit(".", 1)[-1]
        return self.root / "bfcl_eval" / "data" / "multi_turn_func_doc" / f"{module}.json"


_loaded: Package | None = None


def load(version: Version = "v4", path: str | Path | None = None) -> Package:
    """The package of this version, imported the first time.

    Raises ``PackageError`` if it is absent (with the command that installs it), if its files are not the published ones, or
    if this process already uses the other version or another folder.
    """
    global _loaded
    if version not in RELEASES:
        raise PackageError(f"version={version!r}: give one of {', '.join(VERSIONS)}")
    if _loaded is not None:
        if _loaded.version != version:
            raise PackageError(
                f"this process uses bfcl-eval {_loaded.version}, and {version} has modules of the same names: "
                f"use {version} in a process of its own"
            )
        if path is not None and Path(path).resolve() != _loaded.root.resolve():
            raise PackageError(
                f"this process uses the bfcl-eval of {_loaded.root}: use that of {path} in a process of its own"
            )
        return _loaded
    root = find(version, path)
    verify(version, root)
    _loaded = _import(version, root)
    return _loaded


def find(version: Version, path: str | Path | None = None) -> Path:
    """The folder that holds this version's ``bfcl_eval/``; raises ``PackageError`` if there is none."""
    if path is not None:
        if not _holds(Path(path), version):
            raise PackageError(
                f"{path} does not hold bfcl-eval {RELEASES[version].number}: give the folder that its wheel was unpacked in, "
                f"with bfcl_eval/data/{RELEASES[version].prefix}multi_turn_base.json below it"
            )
        return Path(path)
    for root in (home(version), *map(Path, sys.path)):
        if _holds(root, version):
            return root
    raise PackageError(
        f"bfcl-eval {RELEASES[version].number} ({version}) is not installed: run `{INSTALL} --version {version}`, "
        "or give the folder of an unpacked wheel as path="
    )


def home(version: Version) -> Path:
    """Where ``install`` puts a version: beside this interpreter's packages, so that both versions can be installed."""
    return Path(sys.prefix) / "share" / "bfcl-eval" / RELEASES[version].number


def _holds(root: Path, version: Version) -> bool:
    return (root / "bfcl_eval" / "data" / f"{RELEASES[version].prefix}multi_turn_base.json").is_file()


def digest(root: Path, version: Version) -> str:
    """SHA-256 of the names and bytes of the files that this project reads or runs."""
    package, prefix = root / "bfcl_eval", RELEASES[version].prefix
    files = [
        *(package / "data").glob(f"{prefix}multi_turn_*.json"),
        *(package / "data" / "possible_answer").glob(f"{prefix}multi_turn_*.json"),
        *(package / "data" / "multi_turn_func_doc").glob("*.json"),
        *(package / "eval_checker" / "multi_turn_eval").rglob("*.py"),
        *(package / "constants").glob("*.py"),
    ]
    whole = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.relative_to(root).as_posix()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        whole.update(f"{file.relative_to(root).as_posix()} {content}\n".encode())
    return whole.hexdigest()


def verify(version: Version, root: Path) -> None:
    """Raise ``PackageError`` unless the files in use are those of the published wheel."""
    if digest(root, version) != RELEASES[version].files_sha256:
        raise PackageError(
            f"the files of bfcl-eval in {root} are not those of version {RELEASES[version].number}: "
            f"remove it and run `{INSTALL} --version {version}`"
        )


def requirement(version: Version) -> str:
    """The line for pip: the version, and the hash of the only wheel that is accepted."""
    return f"bfcl-eval=={RELEASES[version].number} --hash=sha256:{RELEASES[version].wheel_sha256}"


def install_command(version: Version, requirements: Path) -> list[str]:
    """The command that ``install`` runs: pip without the package's own requirements, which would pin half of the environment."""
    options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--upgrade", "--target", str(home(version))]
    return [sys.executable, "-m", "pip", "install", "--quiet", *options, "-r", str(requirements)]


def install(version: Version, say: Callable[[str], None] = print) -> Path:
    """Print and run pip for this version, and verify the installed files; returns their folder."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(requirement(version) + "\n", encoding="utf-8")
        command = install_command(version, requirements)
        say(f"{requirements.name}: {requirement(version)}")
        say(shlex.join(command))
        subprocess.run(command, check=True)
    verify(version, home(version))
    return home(version)


def _import(version: Version, root: Path) -> Package:
    foreign = sys.modules.get("bfcl_eval")
    if foreign is not None and root not in [Path(place).parent for place in foreign.__path__]:
        raise PackageError(
            f"another bfcl_eval, of {list(foreign.__path__)}, is already imported: load version {version} in a process of its own"
        )
    sys.path.insert(0, str(root))
    try:
        evaluation = "bfcl_eval.eval_checker.multi_turn_eval"
        executor = importlib.import_module(f"{evaluation}.multi_turn_utils")
        prompts = importlib.import_module("bfcl_eval.constants.default_prompts")
        package = Package(
            version=version,
            root=root,
            checker=importlib.import_module(f"{evaluation}.multi_turn_checker"),
            executor=executor,
            class_modules={name: executor.CLASS_FILE_PATH_MAPPING[name] for name in TOOL_CLASSES},
            stateless=frozenset(executor.STATELESS_CLASSES),
            long_context=importlib.import_module(f"{evaluation}.func_source_code.long_context"),
            added_tools_sentence=prompts.DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC,
            step_limit=prompts.MAXIMUM_STEP_LIMIT,
        )
        for name in TOOL_CLASSES:
            package.tool_class(name)
    except ImportError as error:
        raise PackageError(f"bfcl-eval needs {error.name}: {how_to_install('bfcl')}") from error
    finally:
        sys.path.remove(str(root))
    return package
