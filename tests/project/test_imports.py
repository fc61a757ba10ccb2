"""Who imports whom, and what an import may load: each package in a fresh interpreter, and its source text."""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

HEAVY = {
    "ray",
    "torch",
    "pygame",
    "matplotlib",
    "transformers",
    "trl",
    "openai",
    "google.genai",
    "litellm",
    "PIL",
    "jax",
}
MAY_LOAD = {
    "mapf_frozenlake": HEAVY | {"jinja2", "typer", "rich", "engineers", "envtuning"},
    "engineers": HEAVY | {"jinja2", "typer", "rich", "numba", "gymnasium", "mapf_frozenlake", "envtuning"},
    "envtuning": HEAVY | {"jinja2"},
}
MAY_NOT_IMPORT = {
    "mapf_frozenlake": {"engineers", "envtuning", "benchmarks", "examples", "tests"},
    "engineers": {"mapf_frozenlake", "envtuning", "ray", "benchmarks", "examples", "tests"},
    "envtuning": {"benchmarks", "examples", "tests"},
}


def imports_of(path):
    """The modules that a file imports, lazily or not."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""


@pytest.mark.parametrize("package", MAY_LOAD)
def test_import_loads_nothing_heavy(package):
    code = f"import sys, {package}; print(*sorted(sys.modules))"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & MAY_LOAD[package], f"import {package} loads {sorted(loaded & MAY_LOAD[package])}"


@pytest.mark.parametrize("package", MAY_NOT_IMPORT)
def test_no_package_imports_its_users(package):
    """Lazy imports count too: the whole source is read, not only what runs at import."""
    wrong = []
    for path in (ROOT / package).rglob("*.py"):
        wrong += [f"{path.name}: {name}" for name in imports_of(path) if name.split(".")[0] in MAY_NOT_IMPORT[package]]
    assert not wrong


def modules_of(package):
    """Every module's file, by its name."""
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / package).rglob("*.py")}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


def imported_at_any_time(node):
    """Every import below this node, also in functions and for annotations alone: a reader follows those, too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level == 0:
            yield child.module
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        yield from imported_at_any_time(child)


def named_in_strings(node):
    """What may be a module: ``package.module``, or ``package.module:object``."""
    texts = [
        child.value for child in ast.walk(node) if isinstance(child, ast.Constant) and isinstance(child.value, str)
    ]
    return {found[1] for text in texts if (found := re.fullmatch(r"(\w+(?:\.\w+)+)(:\w+)?", text))}


def circle_of(modules):
    """Modules that reach each other by imports or by names in strings, first and last the same; none where there is no circle.

    Of ``from package.module import name`` only the longest part that is a module counts, not the packages around it.
    """
    by_string = {name: named_in_strings(ast.parse(path.read_text())) for name, path in modules.items()}
    imported = graph_of(modules)
    return circle_in({name: imported[name] | (by_string[name] & modules.keys()) - {name} for name in modules})


def graph_of(modules):
    """What each module imports, of these modules."""
    graph = {}
    for name, path in modules.items():
        named = {found for found in imported_at_any_time(ast.parse(path.read_text())) if found in modules}
        around = {other for found in named for other in named if found.startswith(f"{other}.")}
        graph[name] = named - around - {name}
    return graph


def circle_in(graph):
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def packages_of(package):
    """The graph of the packages directly below this one; its own files, which all may use, are left out.

    A table of names in strings, such as ``KINDS`` of the trainees, may name what is in a package that builds on its own.
    """
    modules = modules_of(package)
    inner = {name for name, path in modules.items() if path.name == "__init__.py" and name.count(".") == 1}
    graph = {name: set() for name in inner}
    for name, named in graph_of(modules).items():
        here = ".".join(name.split(".")[:2])
        if here in inner:
            graph[here] |= {found for found in (".".join(other.split(".")[:2]) for other in named) if found in inner}
            graph[here] -= {here}
    return graph


@pytest.mark.parametrize("package", ["engineers", "envtuning", "mapf_frozenlake"])
def test_no_package_reaches_itself_by_imports(package):
    assert circle_in(packages_of(package)) == []


@pytest.mark.parametrize("package", MAY_LOAD)
def test_no_module_reaches_itself_by_imports(package):
    """An import inside a function counts too: a circle that is opened late is one all the same."""
    assert circle_of(modules_of(package)) == []


def test_a_circle_of_imports_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "ring").mkdir()
    (tmp_path / "ring" / "__init__.py").write_text("")
    (tmp_path / "ring" / "first.py").write_text("from ring import second")
    (tmp_path / "ring" / "second.py").write_text("def late():\n    from ring.third import x")
    (tmp_path / "ring" / "third.py").write_text("import ring.fourth")
    (tmp_path / "ring" / "fourth.py").write_text("from ring.second import late")
    assert set(circle_of(modules_of("ring"))) == {"ring.second", "ring.third", "ring.fourth"}
    (tmp_path / "ring" / "fourth.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ring.second import late"
    )
    assert circle_of(modules_of("ring")), "for annotations alone is a circle all the same"
    (tmp_path / "ring" / "fourth.py").write_text("LATE = 'ring.second:late'")
    assert circle_of(modules_of("ring")), "a name in a string is an import later"


def test_a_circle_of_packages_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    for place, code in {
        "whole/__init__.py": "",
        "whole/one/__init__.py": "",
        "whole/one/first.py": "from whole.two import second",
        "whole/one/last.py": "",
        "whole/two/__init__.py": "",
        "whole/two/second.py": "from whole.one import last",
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(code)
    assert circle_of(modules_of("whole")) == []
    assert set(circle_in(packages_of("whole"))) == {"whole.one", "whole.two"}


IMPORTERS = (
    "import_module",
    "__import__",
    "run_module",
    "run_path",
    "exec_module",
    "spec_from_file_location",
    "exec",
    "eval",
)
# What may import by a name that is not written there: the one place for names of users and files, packages' own tables of lazy
# names, and the files of bfcl-eval after their digest was checked.
MAY_IMPORT_BY_NAME = {
    "engineers/shared/own.py": "object_at",
    "envtuning/__init__.py": "__getattr__",
    "envtuning/cli/__init__.py": "app_with",
    "envtuning/worlds/bfcl/package.py": "tool_class _import",
}


def imports_by_name(tree):
    """The function around each import, or each run of code, whose name is no literal."""
    around = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            around |= {id(inner): node.name for inner in ast.walk(node)}  # inner functions come later
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            by_name = not (node.args and isinstance(node.args[0], ast.Constant))
            if called in IMPORTERS and by_name and not (called == "eval" and isinstance(node.func, ast.Attribute)):
                yield around.get(id(node), "")
        names = getattr(node, "names", []) if isinstance(node, ast.ImportFrom) else []
        yield from ("as another name" for name in names if name.name in IMPORTERS and name.asname)


@pytest.mark.parametrize("package", MAY_LOAD)
def test_every_import_by_name_goes_through_one_place(package):
    for path in (ROOT / package).rglob("*.py"):
        allowed = MAY_IMPORT_BY_NAME.get(path.relative_to(ROOT).as_posix(), "").split()
        strangers = [place for place in imports_by_name(ast.parse(path.read_text())) if place not in allowed]
        assert not strangers, f"{path}: {strangers}: use engineers.shared.own.object_at"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import_module('json')", []),
        ("model.eval()", []),
        ("def f(name):\n    import_module(name)", ["f"]),
        ("def f(name):\n    def g(): importlib.import_module(f'{name}.x')", ["g"]),
        ("__import__(name)", [""]),
        ("eval(text)", [""]),
        ("from importlib import import_module as innocent", ["as another name"]),
    ],
)
def test_an_import_by_name_is_seen(code, found):
    assert list(imports_by_name(ast.parse(code))) == found


# Where lakes are known: their world, the trainees that learn on nothing else, and what a language model is taught of lakes.
KNOW_LAKES = (
    "cli/pretraining.py",
    "worlds/lakes/",
    "trainees/scripted.py",
    "trainees/lakes/",
    "trainees/ppo.py",
    "trainees/rllib/",
    *(f"trainees/language/{name}.py" for name in ("evaluate", "outcomes", "pretrain", "tasks", "tokenizer")),
)


def test_the_loop_knows_no_lake():
    """Nothing in envtuning imports the lake but its world and its trainees; presets and docs may speak of it."""
    import_lakes = set()
    for path in (ROOT / "envtuning").rglob("*.py"):
        if any(
            name.split(".")[0] == "mapf_frozenlake" or name.startswith("envtuning.worlds.lakes")
            for name in imports_of(path)
        ):
            import_lakes.add(path.relative_to(ROOT / "envtuning").as_posix())
    assert [place for place in sorted(import_lakes) if not place.startswith(KNOW_LAKES)] == []
    needless = [allowed for allowed in KNOW_LAKES if not any(place.startswith(allowed) for place in import_lakes)]
    assert needless == []


EFFECTS = """
import json, os, signal, sys
def state():
    handlers = {number: repr(signal.getsignal(number)) for number in signal.valid_signals()}
    return json.dumps([handlers, sys.path, dict(os.environ), repr(sys.excepthook), os.getcwd()], sort_keys=True, default=str)
sys.argv[0] = "/usr/bin/envtuning"  # as in the installed command, which imports before it calls main
before = state()
import engineers, engineers.public, engineers.__main__, envtuning, envtuning.__main__
assert [getattr(envtuning, name) for name in ("World", "Trainee", "run")]
print(state() == before)
"""


def test_an_import_changes_nothing_of_the_process():
    """No signal handler, no path, no environment variable: ``main`` sets what a command needs."""
    done = subprocess.run([sys.executable, "-c", EFFECTS], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_importing_engineers_is_quick():
    """Under 0.3 s over the bare interpreter with pydantic, of processor time, best of three."""
    code = "import pydantic.types, time; s = time.process_time(); import engineers; print(time.process_time() - s)"
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    ]
    assert min(times) < 0.3
