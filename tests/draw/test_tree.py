"""Trees of labels, drawn with lines."""

from soma.draw import Tree


def test_branches_are_drawn_with_lines() -> None:
    """Every child hangs on a line; the last one ends it."""
    inner = Tree("b", (Tree("c"), Tree("d")))

    assert str(Tree("a", (inner, Tree("e", (Tree("f"),))))).splitlines() == [
        "a",
        "├─ b",
        "│  ├─ c",
        "│  └─ d",
        "└─ e",
        "   └─ f",
    ]


def test_a_label_alone_is_one_line() -> None:
    """A tree without children is its label."""
    assert str(Tree("a")) == "a"


def test_labels_cannot_break_the_drawing() -> None:
    """Control characters and trailing spaces of a label are dropped."""
    assert str(Tree("a\x1b[31m\nb ", (Tree("c\u202e"),))) == "ab\n└─ c"


def test_a_deep_tree_needs_no_deep_stack() -> None:
    """A tree of 3,000 levels can be drawn."""
    tree = Tree("leaf")
    for _ in range(3_000):
        tree = Tree("x", (tree,))

    assert str(tree).count("\n") == 3_000
