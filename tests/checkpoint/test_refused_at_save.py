"""What cannot be saved is said with its node, and the file stays as it was."""

from pathlib import Path
from typing import Any

import pytest

from soma import DifferentiableFilter, Graph
from soma.checkpoint import Manifest, Writer
from soma.errors import CheckpointError, NoOptimizer
from tests.checkpoint.filters import Center, Holds, Scale

CODE = {
    "lambda": (lambda: lambda x: x, r"`factor` is `.*<lambda>`, and a bundle holds no code"),
    "local class": (lambda: type("X", (), {"__qualname__": "f.<locals>.X"}), "holds no code"),
    "builtin": (lambda: print, "holds no code"),
    "object": (object, r"\[1\]\['factor'\]: `object` has no codec"),
}


@pytest.mark.parametrize("name", CODE)
def test_an_argument_that_is_code_is_named(tmp_path: Path, name: str) -> None:
    """The error names node and argument, says what to do, and no file is made."""
    make, reason = CODE[name]
    g = Graph()
    g.node("inner part", Scale(factor=make()))
    with pytest.raises(CheckpointError, match=reason) as caught:
        g.save(tmp_path / "g.soma")

    assert "`inner part` (Scale)" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_code_inside_of_data_is_found(tmp_path: Path) -> None:
    """A lambda in a dict in a list is refused like one that stands alone."""
    with pytest.raises(CheckpointError, match=r"argument 1 is `.*<lambda>`"):
        Graph.somatize(Holds([{"f": lambda: 1}])).save(tmp_path / "g.soma")


def test_a_module_as_an_argument_is_refused(tmp_path: Path) -> None:
    """Weights inside an argument would be lost; the error says where modules are built."""
    nn = pytest.importorskip("torch").nn
    with pytest.raises(CheckpointError, match="Build it in `build_module`"):
        Graph.somatize(Holds(nn.Linear(2, 2))).save(tmp_path / "g.soma")


@pytest.mark.parametrize("state", [object(), lambda: 1, {"deep": [object()]}])
def test_the_last_node_fails_and_the_old_file_stays(tmp_path: Path, state: Any) -> None:
    """All nodes are written down before the file is touched."""
    path = tmp_path / "g.soma"
    g = Graph.somatize(Center() >> Scale() >> Center()).fit([1.0, 2.0])
    g.save(path)
    before = path.read_bytes()
    g.set_node_state("center_2", state)
    with pytest.raises(CheckpointError, match="the state of `center_2`"):
        g.save(path)

    assert [file.read_bytes() for file in tmp_path.iterdir()] == [before]


def test_a_value_that_holds_itself_is_refused(tmp_path: Path) -> None:
    """A circle ends in an error."""
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(CheckpointError, match="holds itself"):
        Graph.somatize(Holds(circle)).save(tmp_path / "g.soma")


def test_an_optimizer_has_to_be_there(tmp_path: Path) -> None:
    """Asking to save one that is not there is an error."""

    class Module(DifferentiableFilter):
        pass

    for g in (Graph.somatize(Scale()), Graph.somatize(Module())):
        with pytest.raises(NoOptimizer, match="optimizer=True"):
            g.save(tmp_path / "g.soma", optimizer=True)


def test_a_missing_folder_is_an_error_of_the_system(tmp_path: Path) -> None:
    """`save` makes no folders."""
    with pytest.raises(FileNotFoundError):
        Graph.somatize(Scale()).save(tmp_path / "no" / "g.soma")


def test_a_bare_name_and_a_link_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name without a folder is in the present one; a link stays a link."""
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to("file")
    Graph.somatize(Scale()).save("link")

    assert Path("link").is_symlink()
    assert Graph.load("file").forward([1]) == [2]


def test_more_than_can_be_read_back_is_refused(tmp_path: Path) -> None:
    """The limits of reading are those of writing."""
    writer = Writer()
    for number in range(10_000):
        writer.member(f"n/{number}", [b""])
    with pytest.raises(CheckpointError, match="takes 10,000 members"):
        writer.write(tmp_path / "many", empty("name"))
    with pytest.raises(CheckpointError, match=r"its manifest has 20,000,\d+ bytes"):
        Writer().write(tmp_path / "long", empty("x" * 20_000_000))
    with pytest.raises(CheckpointError, match="cannot be written"):
        Writer().write(tmp_path / "odd", empty("\ud800"))

    assert list(tmp_path.iterdir()) == []


def empty(name: str) -> Manifest:
    """Return the manifest of a graph without nodes."""
    return Manifest(format=1, soma="0", name=name, seed=None, nodes=[], links=[])
