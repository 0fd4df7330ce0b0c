"""What nodes are called, when nobody says and when somebody does."""

from enum import StrEnum

import pytest

from soma import Filter, Graph
from soma.errors import InvalidNodeId
from tests.core.filters import A, B, LoadText


def test_an_id_is_the_class_in_snake_case() -> None:
    """Filters of one class count up."""
    g = Graph.somatize(LoadText() >> LoadText() >> LoadText())

    assert g.filter_ids() == ["load_text", "load_text_2", "load_text_3"]


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("LoadText", "load_text"),
        ("SQLQuery", "sql_query"),
        ("Conv2d", "conv2d"),
        ("MLP", "mlp"),
        ("_Private", "private"),
        ("already_snake", "already_snake"),
        ("_", "node"),
        ("Été", "été"),
        ("a/b [c]", "a_b_c"),
        ("a\nb\u2028c", "a_b_c"),
        ("\x1b", "node"),
    ],
)
def test_every_class_name_gives_an_allowed_id(name: str, id: str) -> None:
    """Also the names that only `type(...)` can give."""
    made = type(name, (A,), {})

    assert Graph().node(made()) == id


def test_a_free_id_steps_over_those_given_by_hand() -> None:
    """An id that a user took is not taken again."""
    g = Graph()
    given = [g.node("a_2", B()), g.node("a", B())]

    assert given == ["a_2", "a"]
    assert [g.node(A()), g.node(A())] == ["a_3", "a_4"]


def test_a_taken_id_is_refused() -> None:
    """The same id twice is an error that names it, and the first node stays."""
    g = Graph()
    first = A()
    g.node("x", first)

    with pytest.raises(InvalidNodeId, match="a node `x` already"):
        g.node("x", B())
    assert g.filter("x") is first


@pytest.mark.parametrize(
    "id",
    [
        "a/b",
        "a[0",
        "a]",
        "a\nb",
        "a\x00",
        "a\tb",
        "a\x7f",
        "a\x85",
        "a\ud800",
        "a\u2028b",
        "a\u2029b",
        "a\u202eb",
        "a\x1b[31m",
        "\ufeffa",
    ],
)
def test_what_breaks_a_line_or_a_path_is_refused(id: str) -> None:
    """The error shows the id escaped, and is a ValueError."""
    with pytest.raises(InvalidNodeId, match="ids may hold anything but") as caught:
        Graph().node(id, A())
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).isprintable()


def test_an_empty_id_is_refused() -> None:
    """A name has at least one sign."""
    with pytest.raises(InvalidNodeId, match="non-empty string; got ''"):
        Graph().node("", A())


@pytest.mark.parametrize(
    "id",
    [
        "a&b",
        "é✓",
        "a b",
        " ",
        "🦊",
        "👨\u200d👩\u200d👧",
        "न\u094d\u200d",
        "<b>",
        "a.b",
        "..",
        "%s",
        "{x}",
        "`",
        "\\",
        "'\"",
        "a\u00a0b",
        "None",
        "x" * 10_000,
    ],
)
def test_anything_else_is_allowed(id: str) -> None:
    """An odd id works wherever ids do."""
    g = Graph()
    g.node(id, A())
    g.node("head", B())
    g.connect(id, "head")

    assert g.forward(3) == 3
    assert g.edges() == [(id, "head")]


def test_ids_that_look_alike_are_different() -> None:
    """Ids are compared as they are: `é` in one sign is not `é` in two."""
    g = Graph()
    g.node("\u00e9", A())
    g.node("e\u0301", B())

    assert len(set(g.filter_ids())) == 2


def test_an_id_may_be_an_enum_of_strings() -> None:
    """Whatever is a string may name a node."""

    class Part(StrEnum):
        Text = "text"

    g = Graph()
    g.node(Part.Text, A())

    assert isinstance(g.filter("text"), Filter)
