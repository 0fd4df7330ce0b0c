"""How a diagnostic looks in a terminal."""

from textwrap import dedent
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soma.core import Diagnostic

words = st.text(st.characters(exclude_categories=()), max_size=60)


def shown(expected: str) -> str:
    return dedent(expected).strip("\n")


def test_a_diagnostic_with_everything() -> None:
    """Head, place, drawing, mark, remarks and help stand below each other."""
    diagnostic = Diagnostic(
        level="warning",
        code="gradient",
        node="tree",
        message="Something stops here",
        position=2,
        drawn=("Scaler", "Tree", "Linear"),
        marked=(1, 2),
        remarks=("First.", "Second."),
        help="Do this.",
    )
    assert str(diagnostic) == shown(
        """
        warning[gradient]: Something stops here
          --> pipeline node 2
          |
          | [Scaler] → [Tree] → [Linear]
          |            ^^^^^^
          |            First.
          |            Second.
          |
          = help: Do this.
        """
    )


def test_a_mark_may_span_several_nodes() -> None:
    """The mark is as wide as the labels and arrows that it covers; `…` has no brackets."""
    diagnostic = Diagnostic(
        level="note",
        code="x",
        node=None,
        message="m",
        drawn=("A", "B", "…", "C"),
        marked=(0, 4),
    )
    assert str(diagnostic).splitlines()[2:] == [
        "  | [A] → [B] → … → [C]",
        "  | ^^^^^^^^^^^^^^^^^^^",
    ]


def test_a_bare_diagnostic_is_one_line() -> None:
    """What is not there takes no line."""
    assert str(Diagnostic(level="error", code="x", node=None, message="m")) == "error[x]: m"


def test_without_a_position_the_node_is_named() -> None:
    """A graph that has no order yet is shown by id."""
    diagnostic = Diagnostic(level="error", code="x", node="a", message="m", help="h")

    assert str(diagnostic) == "error[x]: m\n  --> node `a`\n  |\n  = help: h"


def test_remarks_without_a_drawing_stand_at_the_left() -> None:
    """A mark needs something to stand under; remarks do not."""
    diagnostic = Diagnostic(level="note", code="x", node=None, message="m", remarks=("r",))

    assert str(diagnostic) == "note[x]: m\n  |\n  | r"


def test_help_is_wrapped_under_its_first_word() -> None:
    """Long help hangs, and no line is wider than 88 columns."""
    lines = str(
        Diagnostic(level="note", code="x", node=None, message="m", help="word " * 40)
    ).splitlines()

    assert max(map(len, lines)) <= 88
    assert len(lines) > 3
    assert all(line.startswith(" " * 10 + "word") for line in lines[3:])


def test_a_long_label_is_shortened_in_the_drawing() -> None:
    """A label of more than 40 columns loses its middle."""
    diagnostic = Diagnostic(
        level="note", code="x", node=None, message="m", drawn=("a" * 41, "b"), marked=(1, 2)
    )
    drawing, mark = str(diagnostic).splitlines()[2:]

    assert drawing == f"  | [{'a' * 20}…{'a' * 19}] → [b]"
    assert mark.index("^") == drawing.index("[b]")


@pytest.mark.parametrize("name", ["名前", "e\u0301", "\x1b[31mred\x1b[0m", "a\u202eb", "a\ud800\n"])
def test_the_mark_stands_under_any_name(name: str) -> None:
    """Names of any script, or with hidden signs, do not move the mark."""
    diagnostic = Diagnostic(
        level="note", code="x", node=name, message=name, drawn=(name, "Z"), marked=(1, 2)
    )
    columns = {"名前": 4, "e\u0301": 1, "\x1b[31mred\x1b[0m": 3, "a\u202eb": 2, "a\ud800\n": 1}

    assert str(diagnostic).splitlines()[-1] == f"  | {' ' * (columns[name] + 5)}^^^"


@given(words, words, st.lists(words, max_size=4), words)
def test_no_name_can_break_the_text(message: str, node: str, drawn: list[str], help: str) -> None:
    """Whatever the names are, lines begin as ours do and end without spaces."""
    diagnostic = Diagnostic(
        level="note",
        code="x",
        node=node,
        message=message,
        drawn=tuple(drawn),
        marked=(0, len(drawn)),
        remarks=(message,),
        help=help,
    )
    lines = str(diagnostic).split("\n")

    assert all(line == line.rstrip() and "\x1b" not in line for line in lines)
    assert all(line.startswith(("  |", "  = help:", "  -->", " " * 10)) for line in lines[1:])


def test_a_notebook_shows_the_text() -> None:
    """Not the fields."""
    diagnostic = Diagnostic(level="note", code="x", node=None, message="m")
    shown: list[str] = []
    diagnostic._repr_pretty_(SimpleNamespace(text=shown.append), cycle=False)

    assert shown == [str(diagnostic)]
