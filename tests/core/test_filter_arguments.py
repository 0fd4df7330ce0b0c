"""What a filter was constructed with is kept by the class, copied with it and shown."""

import copy
import pickle  # noqa: TID251  # process pools move filters in this way
from dataclasses import dataclass

import pytest

from soma import Filter, Graph
from soma.core import Arguments
from tests.core.filters import A, Scale, Silent


@dataclass
class Plain(Filter):
    """A filter whose `__init__` and `repr` are written by dataclasses."""

    size: int = 3

    def forward(self, x, state):
        return self.size * x


@dataclass(frozen=True)
class Frozen(Filter):
    """A filter that refuses every assignment."""

    size: int = 3

    def forward(self, x, state):
        return self.size * x


class Odd:
    """An argument whose `repr` fails."""

    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("filter", "arguments"),
    [
        (A(), Arguments((), {})),
        (A(size=3), Arguments((), {"size": 3})),
        (Scale(2, 1, unit="m"), Arguments((2, 1), {"unit": "m"})),
        (Silent(1, "a", deep=True), Arguments((1, "a"), {"deep": True})),
        (Frozen(size=4), Arguments((), {"size": 4})),
    ],
    ids=["none", "keyword", "both", "without super", "frozen"],
)
def test_arguments_are_kept_as_written(filter: Filter, arguments: Arguments) -> None:
    """Whether or not the filter's own `__init__` helps."""
    assert filter._arguments == arguments


def again(filter: Filter) -> Filter:
    """Return a filter that went through a pickle."""
    return pickle.loads(pickle.dumps(filter))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, again])
@pytest.mark.parametrize("filter", [A(size=3), Scale(2, unit="m"), Silent(1, "a"), Frozen(4)])
def test_a_copy_is_the_filter_again(duplicate, filter: Filter) -> None:
    """Attributes and arguments come along, and `__init__` does not run again."""
    other = duplicate(filter)

    assert other is not filter
    assert type(other) is type(filter)
    assert vars(other) == vars(filter)
    assert repr(other) == repr(filter)


def test_a_shallow_copy_shares_and_a_deep_one_does_not() -> None:
    """As for any object of Python."""
    filter = A(words=["a"])
    shallow, deep = copy.copy(filter), copy.deepcopy(filter)
    filter.words.append("b")

    assert (shallow.words, deep.words) == (["a", "b"], ["a"])


def test_a_copy_is_another_node() -> None:
    """A filter and its copy may stand in one graph."""
    filter = Scale(2)
    g = Graph.somatize(filter >> copy.copy(filter))

    assert g.forward([1]) == [4]


@pytest.mark.parametrize(
    ("filter", "text"),
    [
        (A(), "A()"),
        (A(size=3, name="x"), "A(size=3, name='x')"),
        (Scale(2), "Scale(factor=2)"),
        (Scale(2, 1, unit="m"), "Scale(factor=2, offset=1, unit='m')"),
        (Scale(offset=1, factor=2), "Scale(factor=2, offset=1)"),
        (Silent(1), "Silent(1)"),
        (Silent(1, "a", "b", deep=True), "Silent(1, 'a', 'b', deep=True)"),
        (Plain(2), "Plain(size=2)"),
        (A(text="a\nb\x1b"), r"A(text='a\nb\x1b')"),
    ],
    ids=str,
)
def test_repr_shows_what_was_written(filter: Filter, text: str) -> None:
    """Arguments by name where they have one; defaults are not repeated."""
    assert repr(filter).rpartition(".")[2] == text


def test_a_subclass_shows_inherited_parameters() -> None:
    """The names come from the `__init__` that ran."""

    class More(Scale):
        pass

    assert repr(More(2, 1)) == "More(factor=2, offset=1)"


def test_a_repr_that_fails_does_not_hide_the_filter() -> None:
    """The class is shown all the same."""
    assert repr(A(odd=Odd())) == "A(…)"
    assert repr(Scale(Odd())) == "Scale(…)"


def test_a_filter_that_holds_itself_is_shown_once() -> None:
    """A circle of arguments ends."""
    words: list[object] = ["x"]
    filter = A(words=words)
    words.append(filter)

    assert repr(filter) == "A(words=['x', …])"


def test_a_filter_can_be_shown_before_it_is_made() -> None:
    """Inside `__init__`, in a debugger or an error, there are arguments already."""

    class Shown(A):
        def __init__(self, size):
            self.early = repr(self)

    assert Shown(3).early == "Shown(size=3)"


def test_a_frozen_dataclass_is_a_filter() -> None:
    """It cannot be changed, and needs not be."""
    assert Graph.somatize(Frozen(5)).forward(2) == 10
    assert Graph.somatize(Plain(5)).forward(2) == 10
