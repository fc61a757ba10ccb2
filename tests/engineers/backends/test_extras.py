"""Backends load nothing until they are asked, each works without the others' packages, and a missing one says its command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engineers.shared.extras import _is_installed

HEAVY = ("openai", "litellm", "google.genai", "torch", "transformers", "llguidance", "httpx", "httpx2")
BACKENDS = ("openai", "gemini", "litellm", "compatible_server", "local", "live")

WITHOUT = """
import sys

class Without:
    def __init__(self, names):
        self.names = names
    def find_spec(self, name, path=None, target=None):
        if any(name == hidden or name.startswith(hidden + ".") for hidden in self.names):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Without(%r))
import engineers
"""


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_every_backend_loads_no_sdk() -> None:
    imports = "; ".join(f"import engineers.backends.{name}" for name in BACKENDS)
    loaded = python(f"import sys; {imports}; print([name for name in {HEAVY} if name in sys.modules])")
    assert loaded.strip() == "[]"


def test_making_an_engineer_loads_no_sdk() -> None:
    names = ["openai/x", "gemini/x", "litellm/x/y", "server/http://localhost:1/v1#x", "local/x/y"]
    for name, module in zip(names, ("openai", "google.genai", "litellm", "openai", "torch"), strict=True):
        if not _is_installed(module):
            pytest.skip(f"{name} needs {module}")
    made = python(
        f"import sys, engineers; [engineers.make(name) for name in {names}];"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert made.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "hidden", "extra"),
    [
        ("openai/x", ["openai"], "openai"),
        ("server/http://localhost:1/v1#x", ["openai"], "openai"),
        ("gemini/x", ["google"], "gemini"),
        ("gemini/x", ["google.genai"], "gemini"),
        ("litellm/x/y", ["litellm"], "litellm"),
        ("local/x/y", ["torch"], "local"),
        ("local/x/y", ["transformers"], "local"),
        ("local/x/y", ["llguidance"], "local"),
    ],
)
def test_a_missing_extra_says_its_install_command(name: str, hidden: list[str], extra: str) -> None:
    code = (
        WITHOUT % hidden
        + f"""
try:
    engineers.make({name!r})
except ImportError as error:
    print(error)
"""
    )
    said = python(code)
    assert (
        f'is not installed: pip install "mapf-frozenlake[{extra}]", or in a checkout pip install -e ".[{extra}]"'
        in said
    )
    assert hidden[0] in said


@pytest.mark.parametrize(
    ("module", "hidden", "make"),
    [
        (
            "openai",
            ["litellm", "google", "torch", "transformers"],
            "engineers.make('openai/x', base_url=NOWHERE, **OPTIONS)",
        ),
        (
            "google.genai",
            ["litellm", "openai", "torch", "transformers"],
            "engineers.make('gemini/x', base_url=NOWHERE, **OPTIONS)",
        ),
        ("torch", ["litellm", "openai", "google"], "engineers.make('local/' + '/no/such/model')"),
    ],
)
def test_each_extra_works_without_the_others(module: str, hidden: list[str], make: str) -> None:
    if not _is_installed(module):
        pytest.skip(f"{module} is not installed")
    code = (
        WITHOUT % hidden
        + f"""
from pydantic import BaseModel, Field
from engineers import StageReport

class Config(BaseModel):
    level: float = Field(0.5, ge=0, le=1, description="How hard it is.")

NOWHERE = "http://127.0.0.1:9"
OPTIONS = {{"api_key": "no-key-at-all", "attempts": 1}}
engineer = {make}
print(engineer.propose(StageReport(stage=0, config={{"level": 0.5}}), Config()).refusals)
"""
    )
    said = python(code)
    assert "could not be reached" in said or "cannot be loaded" in said


def test_an_option_that_nobody_has_is_named() -> None:
    pytest.importorskip("openai")
    import engineers

    with pytest.raises(TypeError, match=r"OpenAIChat has no option temprature; it has .*temperature"):
        engineers.make("openai/x", temprature=0.3)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("server/localhost:8000#m", "server/localhost:8000#m: write it as server/http://host:port/v1#model"),
        ("server/http://localhost:8000/v1", "write it as server/http://host:port/v1#model"),
    ],
)
def test_a_server_needs_address_and_model(name: str, said: str) -> None:
    pytest.importorskip("openai")
    import engineers

    with pytest.raises(ValueError, match=said):
        engineers.make(name)


@pytest.mark.parametrize("option", [{"timeout": 0}, {"attempts": 0}, {"max_bytes": -1}])
def test_limits_must_be_limits(option: dict[str, int]) -> None:
    pytest.importorskip("openai")
    import engineers

    with pytest.raises(ValueError, match="give a value above 0"):
        engineers.make("openai/x", **option)


@pytest.mark.parametrize(
    ("name", "module", "room"),
    [
        ("openai/x", "openai", 16_000),
        ("gemini/x", "google.genai", 16_000),
        ("server/http://host/v1#x", "openai", 4_096),
    ],
)
def test_models_that_reason_have_room_for_it(name: str, module: str, room: int) -> None:
    if not _is_installed(module):
        pytest.skip(f"{name} needs {module}")
    import engineers

    assert engineers.make(name).max_tokens == room  # type: ignore[attr-defined]
    assert engineers.make(name, max_tokens=99).max_tokens == 99  # type: ignore[attr-defined]
