"""Code that a user names: found where it is, trusted where it is named, and taken for an engineer only where it says so."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from engineers.engineer import Engineer
from engineers.knobs import KnobError, find_knobs
from engineers.plain.base import Design, PlainEngineer
from engineers.plain.fixed import FixedEngineer
from engineers.report import StageReport
from engineers.roles import find_slices
from engineers.shared import own
from engineers.shared.own import (
    NotTrusted,
    declares,
    host_of,
    is_trusted,
    is_trusted_host,
    is_trusted_option,
    object_at,
    trust,
)
from engineers.shared.sentences import in_sentences


@pytest.mark.parametrize(
    ("named", "asked", "expected"),
    [
        ((), "mine", False),
        (("mine",), "mine", True),
        (("mine",), "mine.parts.deep", True),
        (("mine.parts",), "mine.parts.deep", True),
        (("mine.parts",), "mine", False),
        (("mine",), "mineral", False),
        (("deep",), "mine.deep", False),
        (("host:mine",), "mine", False),
        (("option:mine",), "mine", False),
    ],
)
def test_a_name_is_trusted_where_the_user_named_it_or_a_package_that_it_is_in(named, asked, expected):
    trust(named)
    assert is_trusted(asked) is expected


@pytest.mark.parametrize(
    ("named", "host", "expected"),
    [
        (("host:models.example.org",), "models.example.org", True),
        (("host:Models.example.org",), "MODELS.example.org", True),
        (("host:models.example.org",), "models.example.org.evil.example", False),
        (("host:models.example.org",), "a.models.example.org", False),
        (("host:.example.org",), "models.example.org", True),
        (("host:.example.org",), "example.org", False),
        (("host:.example.org",), "evilexample.org", False),
        (("host:.example.org",), "example.org.evil.example", False),
        (("models.example.org",), "models.example.org", False),
        (("gentle",), "gentle.evil.example", False),
        (("gentle",), "gentle", False),
        (("option:gentle",), "gentle", False),
        (("host:::1",), "::1", True),
    ],
)
def test_a_host_is_trusted_whole_or_by_a_leading_dot_and_never_by_the_name_of_a_module(named, host, expected):
    trust(named)
    assert is_trusted_host(host) is expected


@pytest.mark.parametrize(
    ("named", "place", "expected"),
    [
        ((), "trainee.options.launch", False),
        (("option:trainee.options.launch",), "trainee.options.launch", True),
        (("option:trainee.options",), "trainee.options.launch", True),
        (("option:trainee.options.launch.0",), "trainee.options.launch", False),
        (("option:trainee.options.la",), "trainee.options.launch", False),
        (("trainee.options.launch", "trainee"), "trainee.options.launch", False),
    ],
)
def test_an_option_is_trusted_by_its_place_or_a_section_that_it_is_in(named, place, expected):
    trust(named)
    assert is_trusted_option(place) is expected


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://api.openai.com/v1", "api.openai.com"),
        ("HTTP://API.openai.com:8000", "api.openai.com"),
        ("http://[::1]:8000/v1", "::1"),
        ("https://api.openai.com@evil.example/v1", "evil.example"),
        ("https://api.openai.com:443@evil.example/v1", "evil.example"),
        ("https://host.example/v1?api-version=2", "host.example"),
        ("https://api.openai.com\\@evil.example", None),
        ("https://evil.example#@api.openai.com", None),
        ("https://a@api.openai.com@evil.example", None),
        ("https://evil.example\\.api.openai.com", None),
        ("https://evil.example\t.api.openai.com", None),
        ("https://аpi.openai.com", None),  # a Cyrillic а
        ("https://api.openai.com。evil.example", None),
        ("https:/evil.example/v1", None),
        ("https:evil.example", None),
        ("//evil.example/v1", None),
        ("ftp://evil.example", None),
        ("http://[::1]evil.example", None),
        ("https://api.openai.com/v1\n", None),
        ("$OPENAI_HOST", None),
        ("", None),
    ],
)
def test_an_address_has_a_host_only_where_all_libraries_would_find_the_same(address, host):
    assert host_of(address) == host


def test_no_module_of_the_current_directory_stands_in_for_one_that_needs_no_trust(tmp_path, monkeypatch):
    (tmp_path / "own_folder.py").write_text("x = 1")
    monkeypatch.chdir(tmp_path)
    begun = [entry for entry in sys.path if entry]
    monkeypatch.setattr(sys, "path", list(begun))
    object_at("engineers.report:StageReport")
    assert sys.path == begun
    with pytest.raises(NotTrusted):
        object_at("engineers.report:StageReport", known=())
    trust(("own_folder",))
    assert object_at("own_folder:x") == 1
    sys.modules.pop("own_folder")


def test_what_is_not_trusted_is_not_run_and_the_packages_of_this_project_need_no_trust(tmp_path, monkeypatch):
    (tmp_path / "somebodys.py").write_text("raise SystemExit('ran')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(NotTrusted, match="--trust somebodys") as said:
        object_at("somebodys:make")
    assert said.value.name == "somebodys"
    assert object_at("engineers.report:StageReport") is StageReport
    with pytest.raises(NotTrusted):
        object_at("engineersx:make")


@pytest.mark.parametrize(
    ("place", "said", "module"),
    [
        ("no_such_module:make", r"^'no_such_module' cannot be imported \(No module named 'no_such_module'; it is neither installed nor in /.*\)$", "no_such_module"),
        ("own_exits:make", r"^'own_exits' cannot be imported \(its code raised SystemExit: 0\)$", "own_exits"),
        ("own_raises:make", r"\(its code raised ZeroDivisionError: division by zero\)$", "own_raises"),
        ("own_needs:make", r"^'own_needs' cannot be imported \(No module named 'nowhere_at_all'\)$", "nowhere_at_all"),
        (":make", r"^':make' cannot be imported \(write package.module:object\)$", ""),
        ("own_fine:nothing", r"^own_fine has no 'nothing' \(own_fine is /.*own_fine.py\)$", "own_fine"),
        ("own_folder:make", r"^own_folder has no 'make' \(own_folder is the folder /.*own_folder\)$", "own_folder"),
        ("sys:nothing", r"^sys has no 'nothing' \(sys is a module of Python itself\)$", "sys"),
        ("own_fine", r"^'own_fine' cannot be imported \(write package.module:object\)$", "own_fine"),
    ],
)  # fmt: skip
def test_what_cannot_be_found_is_said_with_the_module_that_is_missing(tmp_path, monkeypatch, place, said, module):
    files = {"exits": "raise SystemExit(0)", "raises": "1 / 0", "needs": "import nowhere_at_all", "fine": "make = 1"}
    for name, text in files.items():
        (tmp_path / f"own_{name}.py").write_text(text)
    (tmp_path / "own_folder").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    trust((place.partition(":")[0],))
    with pytest.raises(ImportError, match=said) as error:
        object_at(place)
    assert error.value.name == module
    sys.modules.pop("own_fine", None)


@pytest.mark.parametrize("already", [[], [""], ["here"]])
def test_the_current_directory_is_looked_at_last_and_added_once(tmp_path, monkeypatch, already):
    monkeypatch.chdir(tmp_path)
    elsewhere = [entry for entry in sys.path if entry and entry != str(tmp_path)]
    begun = [str(tmp_path) if entry == "here" else entry for entry in already] + elsewhere
    monkeypatch.setattr(sys, "path", list(begun))
    trust(("json",))
    object_at("json:loads")
    assert sys.path == (begun if already else [*begun, str(tmp_path)])


class Base:
    pass


class Derived(Base):
    pass


class Shape:
    name: str
    sides = 4  # no method: what is of the kind need not have it

    def area(self) -> float: ...


class Square:
    def area(self) -> float:
        return 1.0


def makes_derived() -> Derived:
    return Derived()


def makes_square() -> Square:
    return Square()


def makes_list() -> list[int]:
    return []


def says_nothing():
    return Derived()


def for_the_checker() -> "nowhere.Shape[int]":  # noqa: F821
    return Square()


@pytest.mark.parametrize(
    ("found", "kind", "expected"),
    [
        (Derived, Base, True),
        (Base, Derived, False),
        (makes_derived, Base, True),
        (makes_derived, Derived, True),
        (says_nothing, Base, False),
        (makes_list, list, True),
        (makes_list, Base, False),
        (Square, Shape, False),
        (Shape, Shape, True),
        (Base, Shape, False),
        (for_the_checker, Shape, True),
        (for_the_checker, Base, False),
        (print, Base, False),
        (3, Base, False),
        (FixedEngineer, Engineer, True),
        (PlainEngineer, Engineer, True),
        (StageReport, Engineer, False),
    ],
)
def test_only_what_says_that_it_is_of_the_kind_or_makes_one_is_taken_for_it(found, kind, expected):
    assert declares(found, kind) is expected


def test_a_pydantic_error_is_a_sentence_for_each_fault_with_its_place_and_its_value_where_it_is_plain():
    from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

    class Dish(BaseModel):
        model_config = ConfigDict(extra="forbid")
        steps: int = 1
        salt: float = 0.0
        name: str = "soup"

        @field_validator("name")
        def _short(cls, name):
            if len(name) > 5:
                raise ValueError("the name has more than 5 letters")
            return name

    with pytest.raises(ValidationError) as error:
        Dish.model_validate({"steps": "many", "salt": [1], "name": "goulash", "secret": "x"})
    assert in_sentences(error.value) == (
        "steps='many': Input should be a valid integer, unable to parse string as an integer; "
        "salt: Input should be a valid number; name: the name has more than 5 letters; "
        "secret: Extra inputs are not permitted"
    )
    assert in_sentences(error.value, "menu").startswith("menu.steps='many': ")
    with pytest.raises(ValidationError) as whole:
        Dish.model_validate(3)
    assert in_sentences(whole.value) == "Input should be a valid dictionary or instance of Dish"
    assert in_sentences(whole.value, "menu").startswith("menu=3: Input")


def test_a_list_with_a_fault_in_an_entry_is_not_called_too_short():
    """Pydantic counts the entries without a fault."""
    from pydantic import BaseModel, Field, ValidationError

    class Menu(BaseModel):
        steps: tuple[int, ...] = Field(min_length=1)

    for given, said in (
        (["; rm -rf"], "steps.0='; rm -rf': Input should be a valid integer, unable to parse string as an integer"),
        ([], "steps: Tuple should have at least 1 item after validation, not 0"),
    ):
        with pytest.raises(ValidationError) as error:
            Menu.model_validate({"steps": given})
        assert in_sentences(error.value) == said


def test_our_own_modules_are_not_trusted_when_a_caller_names_them():
    """Trust of a module lets files set every option of what it holds."""
    assert own.chosen_in({"kind": "envtuning.trainees.sb3:SB3Trainee", "name": ["mine.worlds:World"]}) == {
        "mine.worlds"
    }
    own.chosen("trainee", {"kind": "envtuning.trainees.sb3:SB3Trainee"})
    assert not own.is_trusted("envtuning.trainees.sb3")


def test_a_fingerprint_is_that_of_the_files_that_a_name_names(tmp_path, monkeypatch):
    for file in ("code_one", "code_two"):
        (tmp_path / f"{file}.py").write_text("1\n")
        module = ModuleType(file)
        module.__file__ = str(tmp_path / f"{file}.py")
        monkeypatch.setitem(sys.modules, file, module)
    monkeypatch.setitem(sys.modules, "code_zipped", ModuleType("code_zipped"))
    code = own.code_of("code_one:make")
    assert len(code) == 8
    assert code == own.code_of("permuted/code_one:make") == own.code_of("code_two:Other/0.5")
    (tmp_path / "code_one.py").write_text("2\n")
    assert own.code_of("code_one:make") != code == own.code_of("code_two:Other")
    for name in ("rules", "openai/gpt-5-mini", "server/http://127.0.0.1:9/v1#m", "code_zipped:make", "code_never:make"):
        assert own.code_of(name) == ""
    assert "code_never" not in sys.modules  # nothing is imported for it


@pytest.mark.parametrize("parts", [{}, {"soup": 0.0, "stew": 0.0}, {"soup": float("nan")}])
def test_parts_of_which_none_is_above_0_are_no_division(kitchen, parts):
    """They would leave every slice without data, with a reason that is not true."""
    design, slices = Design(), find_slices(find_knobs(kitchen))
    with pytest.raises(
        KnobError, match=r"no part is above 0 \(parts=\{.*\}\): give each slice its part, .*training_results"
    ):
        design.share_out(slices, parts, dict.fromkeys(parts, "so"))
    assert design.values == {}
    design.share_out(slices, {"stew": 1.0}, {"stew": "all to it"})
    assert list(design.values.values()) == [0.0, 1.0]
