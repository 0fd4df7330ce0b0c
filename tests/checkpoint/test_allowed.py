"""Nothing is imported, made or called because a file names it."""

import json
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from soma import Filter, Graph
from soma.checkpoint import Allowed
from soma.errors import CheckpointError
from tests.checkpoint.filters import Scale, edited, loaded

NUMBERS = count()
HERE = Scale.__module__
FOREIGN = """
from soma import Filter
print("imported")
made = []
class Mine(Filter):
    def __init__(self): made.append(1)
    def forward(self, x, state): return x
class Other: pass
def function(*a, **k): made.append(2)
from os import system
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the name of a package that is not imported yet, nor ever was."""
    name = f"foreign{next(NUMBERS)}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    (tmp_path / name / "deep.py").write_text(FOREIGN)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    for one in [one for one in sys.modules if one.partition(".")[0] == name]:
        del sys.modules[one]


@pytest.fixture
def away(tmp_path: Path, package: str) -> Callable[[str], Path]:
    """Return what makes a bundle with a class of that package."""
    Graph.somatize(Scale()).save(tmp_path / "g.soma")
    return lambda name: named(tmp_path / "g.soma", f"{package}.deep", name)


def named(path: Path, module: str, name: str) -> Path:
    """Return a bundle whose one node is of another class."""
    return edited(path, lambda m: m["nodes"][0].update(class_module=module, class_name=name))


def plain(path: Path) -> Path:
    """Return the bundle without the arguments that its first class took."""
    rows = [["tuple"], ["dict"], ["dict"], ["tuple", [[0], [1], [2]]]]
    nothing = {"inline": json.dumps({"soma": 1, "value": [3], "rows": rows})}
    return edited(path, lambda m: m["nodes"][0].update(arguments=nothing))


def test_a_class_that_is_not_imported_is_not_imported(away: Any, package: str, capfd: Any) -> None:
    """The error prints what to add to the call."""
    with pytest.raises(CheckpointError) as caught:
        Graph.load(away("Mine"))

    assert f'classes=[Mine] or trust_modules=["{package}."]' in str(caught.value)
    assert f"{package}.deep" not in sys.modules
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("prefix", ["{}.", "{}", "{}.deep"])
@pytest.mark.parametrize("several", [True, False])
def test_a_trusted_prefix_permits_the_import(
    away: Any, package: str, prefix: str, several: bool
) -> None:
    """Below a prefix modules are imported, and classes found."""
    trusted = prefix.format(package)
    g = Graph.load(plain(away("Mine")), trust_modules=[trusted] if several else trusted)

    assert type(g.filters()[0][1]).__name__ == "Mine"


@pytest.mark.parametrize("prefix", ["f", "{}.dee", "oreign", "{}.deep.more", "{}x"])
def test_a_prefix_ends_at_a_dot(away: Any, package: str, prefix: str) -> None:
    """`fore` does not trust `foreign`."""
    with pytest.raises(CheckpointError, match="nothing is imported"):
        Graph.load(away("Mine"), trust_modules=prefix.format(package))


@pytest.mark.parametrize(
    "name", ["Other", "function", "system", "made", "Mine.forward", "Mine.__init__", "no", "", "."]
)
def test_only_filters_of_a_trusted_module_are_made(away: Any, package: str, name: str) -> None:
    """What is no filter of the module's own is refused before it is called."""
    with pytest.raises(CheckpointError):
        Graph.load(plain(away(name)), trust_modules=package)
    deep = sys.modules.get(f"{package}.deep")

    assert deep is not None
    assert deep.made == []


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"), ("builtins", "eval"), ("subprocess", "Popen"), ("builtins", "object"),
        ("soma.core", "Filter"), ("soma.core._filter", "FilterKind"), ("soma.files", "Appender"),
        ("torch.optim.adam", "Adam"), ("", ""), ("soma.", "x"), ("soma..core", "Filter"),
        (HERE, "loaded"), (HERE, "Settings"), ("no\x1b[31m", "Such\n"),
    ],
)  # fmt: skip
def test_hostile_names_are_refused(tmp_path: Path, module: str, name: str) -> None:
    """What is no known filter is refused, with nothing in the message that moves a cursor."""
    Graph.somatize(Scale()).save(tmp_path / "g.soma")
    with pytest.raises(CheckpointError) as caught:
        Graph.load(named(tmp_path / "g.soma", module, name))

    assert "\x1b" not in str(caught.value)


def test_a_class_may_have_moved(tmp_path: Path) -> None:
    """A class that is passed counts under its name, wherever it is now."""
    Graph.somatize(Scale(factor=3)).save(tmp_path / "g.soma")
    g = Graph.load(named(tmp_path / "g.soma", "gone.away", "Scale"), classes=[Scale])

    assert g.forward([1]) == [3]


def test_two_classes_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """The one of the same module is taken; if none is, the error asks which is meant."""
    twin = type("Scale", (Filter,), {"__module__": "else.where"})
    Graph.somatize(Scale(factor=3)).save(tmp_path / "g.soma")
    g = Graph.load(tmp_path / "g.soma", classes=[twin, Scale])
    with pytest.raises(CheckpointError, match="`classes` holds 2 of the name `Scale`"):
        Graph.load(named(tmp_path / "g.soma", "gone", "Scale"), classes=[twin, Scale])

    assert type(g.filter("scale")) is Scale


def test_the_newest_of_two_live_classes_is_taken(tmp_path: Path) -> None:
    """As in a notebook whose cell ran twice."""
    made = [type("Twice", (Scale,), {"__module__": "cell", "number": n}) for n in (1, 2)]
    g = loaded(Graph.somatize(made[0]()), tmp_path)

    assert type(g.filters()[0][1]) is made[1]


@pytest.mark.parametrize("wrong", ["Scale", 3])
def test_classes_are_classes(wrong: object) -> None:
    """A name in the place of a class is told."""
    with pytest.raises(TypeError, match="classes are wanted"):
        Allowed([wrong], ())


@pytest.mark.parametrize("wrong", ["", ".", [3]])
def test_a_prefix_that_trusts_everything_is_refused(wrong: Any) -> None:
    """An empty prefix would let a file import anything."""
    with pytest.raises(ValueError, match="trust_modules"):
        Allowed((), wrong)


def test_one_class_in_place_of_a_list() -> None:
    """The error says how to write it."""
    with pytest.raises(TypeError, match=r"a list is wanted, as `classes=\[Encoder\]`"):
        Allowed(int, [])  # type: ignore[arg-type]
