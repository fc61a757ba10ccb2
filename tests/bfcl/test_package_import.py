"""Importing the benchmark: of the folder that was verified and of no other, whole or not at all. On small packages made here."""

import hashlib
import sys
from pathlib import Path

import pytest

from benchmarks.bfcl.forks import with_tools
from envtuning.worlds.bfcl import package as packages
from envtuning.worlds.bfcl.package import TOOL_CLASSES, PackageError, _import, digest, load
from tests.bfcl.conftest import available

MULTI_TURN = "bfcl_eval/eval_checker/multi_turn_eval"


def written(root: Path, *, tools: str = "") -> Path:
    """A folder with all modules that are imported, and the data file by which a version is known."""
    classes = {name: f"bfcl_eval.eval_checker.multi_turn_eval.func_source_code.{name.lower()}" for name in TOOL_CLASSES}
    files = {
        "bfcl_eval/constants/default_prompts.py": f"DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC = '{root.name}?'\nMAXIMUM_STEP_LIMIT = 20\n",
        "bfcl_eval/data/BFCL_v4_multi_turn_base.json": "",
        f"{MULTI_TURN}/multi_turn_utils.py": f"CLASS_FILE_PATH_MAPPING = {classes}\nSTATELESS_CLASSES = ['MathAPI']\n",
        f"{MULTI_TURN}/multi_turn_checker.py": "",
        f"{MULTI_TURN}/func_source_code/long_context.py": "",
    }
    files |= {f"{MULTI_TURN}/func_source_code/{n.lower()}.py": f"{tools}\nclass {n}: ...\n" for n in TOOL_CLASSES}
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        for folder in file.relative_to(root).parents:
            if folder != Path() and folder.name != "data":
                (root / folder / "__init__.py").touch()
    return root


@pytest.fixture(autouse=True)
def process(monkeypatch):
    """As if nothing had been imported; put back afterwards."""
    before = dict(sys.modules)
    monkeypatch.setattr(packages, "_loaded", None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "bfcl_eval"]:
        del sys.modules[name]
    yield
    for name in [name for name in sys.modules if name not in before]:
        del sys.modules[name]
    sys.modules.update(before)


def test_a_folder_is_imported_before_others_of_the_same_name_and_the_path_is_as_it_was(tmp_path):
    sys.path.insert(0, str(written(tmp_path / "elsewhere")))
    path, root = list(sys.path), written(tmp_path / "here")
    loaded = _import("v4", root)
    assert (loaded.version, loaded.root, loaded.step_limit, loaded.stateless) == ("v4", root, 20, {"MathAPI"})
    assert loaded.added_tools_sentence == "here?"
    assert {Path(sys.modules[loaded.class_modules[name]].__file__).parents[3].parent for name in TOOL_CLASSES} == {root}
    assert sys.path == path
    assert _import("v4", root).root == root  # again, in the same process
    with pytest.raises(
        PackageError, match=r"another bfcl_eval, of \['.*here.*'\], is already imported: load version v4"
    ):
        _import("v4", tmp_path / "elsewhere")


def test_what_a_tool_class_lacks_is_said_at_once_with_the_extra_that_brings_it(tmp_path):
    path = list(sys.path)
    with pytest.raises(PackageError, match=r'bfcl-eval needs no_such_library: pip install "mapf-frozenlake\[bfcl\]"'):
        _import("v4", written(tmp_path, tools="import no_such_library"))
    assert sys.path == path


def test_files_that_are_not_the_published_ones_are_not_imported(tmp_path):
    with pytest.raises(PackageError, match=r"are not those of version 2026\.3\.23"):
        load("v4", written(tmp_path))
    assert "bfcl_eval" not in sys.modules
    assert packages._loaded is None


def test_a_version_is_available_where_a_folder_holds_its_data(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "empty"))
    monkeypatch.setattr(sys, "path", [])
    assert (available("v4"), available("v3-paper")) == (False, False)
    sys.path.append(str(written(tmp_path)))
    assert (available("v4"), available("v3-paper")) == (True, False)


def test_the_digest_is_over_each_file_s_name_and_content_in_the_order_of_their_names(tmp_path):
    root = written(tmp_path)
    (root / MULTI_TURN / "func_source_code.py").touch()  # before the folder's files: '.' comes before '/'
    (root / "bfcl_eval" / "not_read.py").touch()
    names = [
        *sorted(f"bfcl_eval/constants/{name}.py" for name in ("__init__", "default_prompts")),
        "bfcl_eval/data/BFCL_v4_multi_turn_base.json",
        f"{MULTI_TURN}/__init__.py",
        f"{MULTI_TURN}/func_source_code.py",
        *sorted(
            f"{MULTI_TURN}/func_source_code/{n}.py" for n in ("__init__", "long_context", *map(str.lower, TOOL_CLASSES))
        ),
        *sorted(f"{MULTI_TURN}/multi_turn_{name}.py" for name in ("checker", "utils")),
    ]
    lines = [f"{name} {hashlib.sha256((root / name).read_bytes()).hexdigest()}\n" for name in names]
    assert digest(root, "v4") == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_a_fork_s_folder_is_imported_before_others_of_its_name_and_the_path_is_as_it_was(tmp_path):
    here = written(tmp_path / "here")
    loaded = _import("v4", here)
    fork, other = tmp_path / "one" / "fork" / "tools", tmp_path / "two" / "fork" / "tools"
    for folder in (fork, other):
        folder.mkdir(parents=True)
        for name in TOOL_CLASSES:
            (folder / f"{name.lower()}.py").write_text(f"class {name}: made = {folder.parts[-3]!r}\n")
    sys.path.insert(0, str(tmp_path / "two"))
    path = list(sys.path)
    assert {with_tools(loaded, fork).tool_class(name).made for name in TOOL_CLASSES} == {"one"}
    assert sys.path == path
