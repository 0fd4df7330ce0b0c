"""The house rules that a machine can hold. The layers themselves: `lint-imports`."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

import soma

ROOT = Path(__file__).parents[1]
HOUSE = Path(soma.__file__).parent
FILES = sorted(HOUSE.rglob("*.py"))
FOLDERS = sorted({file.parent.relative_to(HOUSE) for file in FILES})
PACKAGES = [".".join(("soma", *folder.parts)) for folder in FOLDERS]

HEAVY = {"click", "numpy", "pandas", "plotly", "rich", "sklearn", "torch"}
PICKLERS = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
EVALUATORS = {"eval", "exec", "torch.load", "torch.save"}
EXPLAINED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def where(file: Path) -> str:
    """Name a file as its readers do."""
    return file.relative_to(HOUSE).as_posix()


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_what_is_there(name: str) -> None:
    """`__all__` of a package is sorted and names all that the package shows."""
    package = import_module(name)

    assert list(package.__all__) == sorted(shown(package))


def shown(package: ModuleType) -> set[str]:
    """Return the public names of ours that a package holds, early or late."""
    early = {name for name, value in vars(package).items() if is_public(name) and is_ours(value)}
    late = {name for name in package.__all__ if hasattr(package, name)}
    return early | late


def is_public(name: str) -> bool:
    """Is this a name for users?"""
    return not name.startswith("_")


def is_ours(value: object) -> bool:
    """Was this made here, and is it more than a file?"""
    if isinstance(value, ModuleType):
        return False
    return getattr(value, "__module__", "").split(".")[0] == "soma"


def test_files_inside_a_room_are_private() -> None:
    """A file in a room starts with `_`: users import from the room."""
    open_doors = {"cli", "testing"}
    inside = [file for file in FILES if file.relative_to(HOUSE).parts[0] not in open_doors]
    at_the_top = {"errors.py"}
    doors = {where(file) for file in inside if is_public(file.name)}

    assert sorted(doors - at_the_top) == []


def test_importing_soma_is_light() -> None:
    """`import soma` loads no heavy library, prints nothing and warns of nothing."""
    code = f"import sys, soma; print(*sorted({HEAVY} & set(sys.modules)))"
    fresh = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )

    assert (fresh.stdout.strip(), fresh.stderr) == ("", "")


def test_what_is_public_is_explained() -> None:
    """Every file, public class and public function in src opens with a docstring."""
    silent = [f"{where(f)}: {name}" for f in FILES for name in undocumented(f) if is_public(name)]

    assert silent == []


def test_every_test_makes_a_claim() -> None:
    """Every test and every test file opens with a docstring."""
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    names = [(file, name) for file in files for name in undocumented(file)]
    silent = [f"{file.name}: {name}" for file, name in names if name.startswith(("test_", "the "))]

    assert silent == []


def undocumented(file: Path) -> Iterator[str]:
    """What in a file lacks a docstring. Ruff counts all in a `_file.py` as private."""
    tree = ast.parse(file.read_text("utf-8"))
    for node in [tree, *tree.body]:
        is_overload = any(
            ast.unparse(one) == "overload" for one in getattr(node, "decorator_list", ())
        )
        if isinstance(node, EXPLAINED) and not is_overload and not ast.get_docstring(node):
            yield getattr(node, "name", "the file")


def test_files_are_short() -> None:
    """No file in src has 400 lines: a second idea moves into a second file."""
    long = [where(file) for file in FILES if len(file.read_text("utf-8").splitlines()) >= 400]

    assert long == []


def test_nothing_read_from_disk_is_run() -> None:
    """No file in src imports a pickler or calls the builtin `eval`."""
    found = [f"{where(file)}: {word}" for file in FILES for word in unsafe_words(file)]

    assert found == []


def unsafe_words(file: Path) -> Iterator[str]:
    """What in a file could run code that came as data."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.Import():
                names = {alias.name.split(".")[0] for alias in node.names}
                yield from names & PICKLERS
            case ast.ImportFrom(module=str(module)):
                yield from {module.split(".")[0]} & PICKLERS
            case ast.Call():
                yield from {ast.unparse(node.func)} & EVALUATORS


@pytest.mark.slow  # builds in an environment of its own
def test_the_wheel_tells_type_checkers(tmp_path: Path) -> None:
    """A built wheel ships `py.typed`."""
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("*.whl")

    assert "soma/py.typed" in ZipFile(wheel).namelist()
