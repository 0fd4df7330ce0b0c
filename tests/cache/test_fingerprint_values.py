"""What a filter is configured with: typed, read as it is, and refused where it cannot be told."""

import collections
import copy
import enum
import functools
import io
import itertools
import logging
import operator
import random
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soma import Filter
from soma.cache._fingerprint import Identity, Unfingerprintable, identity


class F(Filter):
    """A filter with any attributes."""

    def forward(self, x: object, state: object) -> object:
        return x


def told(value: object) -> str:
    """Return the digest of a filter with one attribute."""
    return identity(F(k=value)).digest


ATOMS = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary()),
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.frozensets(ATOMS, max_size=3),
    ),
    max_leaves=8,
)


@given(VALUES)
def test_a_copy_is_the_same_configuration(value: object) -> None:
    """Equal content has one identity, whether objects are shared or not."""
    assert told([value, {"a": value}]) == told([copy.deepcopy(value), {"a": copy.deepcopy(value)}])


@given(st.lists(VALUES, min_size=2, max_size=2))
def test_values_that_differ_are_told_apart(pair: list[object]) -> None:
    """Two identities are one only where an exact comparison finds no difference."""
    one, other = pair
    assert (told(one) == told(other)) == (exact(one) == exact(other))


def exact(value: Any) -> object:
    """Return a form that is equal only for values of equal types and bits."""
    if isinstance(value, dict):
        return ("dict", frozenset((exact(k), exact(v)) for k, v in value.items()))
    if isinstance(value, frozenset):
        return ("frozenset", frozenset(map(exact, value)))
    if isinstance(value, list | tuple):
        return (type(value).__name__, tuple(map(exact, value)))
    if isinstance(value, float):
        return ("float", np.float64(value).tobytes())
    return (type(value).__name__, value)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=5))
def test_dicts_have_no_order(value: dict[str, object]) -> None:
    """The order of a dict in a configuration, and of the attributes, does not matter."""
    turned = dict(reversed(value.items()))

    assert told(value) == told(turned)
    assert told([len, value]) == told([len, turned])


class Colour(enum.Enum):
    """An enum of the user."""

    RED = 1
    BLUE = 2


@dataclass
class Options:
    """Options of the user."""

    size: int = 1
    rows: list[int] = field(default_factory=list)
    other: object = None


class Point(NamedTuple):
    """A point of the user."""

    x: int = 0


class Plain:
    """An object of the user."""

    def __init__(self, public: object = 1, private: object = 2) -> None:
        self.public = public
        self._private = private

    def method(self) -> object:
        return self.public


class Slotted:
    """An object without a dict."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value


class Numbers(list[int]):
    """A list of the user."""


def ring(size: int) -> Plain:
    """Return an object that leads back to itself."""
    first = last = Plain(size)
    for _ in range(size):
        last._private = Plain(size, [first])
        last = last._private  # type: ignore[assignment]
    return first


def adder(by: int) -> Callable[[int], int]:
    """Return a function that closes over a number."""
    return lambda v: v + by


PAIRS: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "types": (lambda: 1, lambda: True),
    "signs of zero": (lambda: 0.0, lambda: -0.0),
    "lists and tuples": (lambda: [1], lambda: (1,)),
    "lambdas": (lambda: lambda v: v * 2, lambda: lambda v: v * 3),
    "closures": (lambda: adder(1), lambda: adder(2)),
    "classes": (lambda: Plain, lambda: Slotted),
    "enum members": (lambda: Colour.RED, lambda: Colour.BLUE),
    "dataclasses": (lambda: Options(1, [2]), lambda: Options(1, [3])),
    "inside a dataclass": (lambda: Options(other=adder(1)), lambda: Options(other=adder(2))),
    "named tuples": (lambda: Point(1), lambda: Point(2)),
    "named and plain tuples": (lambda: Point(1), lambda: (1,)),
    "public attributes": (lambda: Plain(1), lambda: Plain(2)),
    "private attributes": (lambda: Plain(1, 2), lambda: Plain(1, 3)),
    "slots": (lambda: Slotted(1), lambda: Slotted(2)),
    "kinds of list": (lambda: Numbers([1]), lambda: [1]),
    "items of an own list": (lambda: Numbers([1]), lambda: Numbers([2])),
    "rings": (lambda: ring(2), lambda: ring(3)),
    "methods": (lambda: Plain(1).method, lambda: Plain(2).method),
    "partial calls": (lambda: functools.partial(pow, 2), lambda: functools.partial(pow, 3)),
    "getters": (lambda: operator.itemgetter(1), lambda: operator.itemgetter(2)),
    "patterns": (lambda: re.compile("a"), lambda: re.compile("b")),
    "flags": (lambda: re.compile("a"), lambda: re.compile("a", re.IGNORECASE)),
    "builtins": (lambda: len, lambda: max),
    "methods of builtins": (lambda: str.upper, lambda: str.lower),
    "bound builtins": (lambda: "a".join, lambda: "b".join),
    "library functions": (lambda: np.mean, lambda: np.sum),
    "universal functions": (lambda: np.add, lambda: np.subtract),
    "modules": (lambda: np, lambda: re),
    "arrays": (lambda: np.arange(3), lambda: np.arange(3.0)),
    "shapes": (lambda: np.zeros((2, 3)), lambda: np.zeros((3, 2))),
    "types of a library": (lambda: np.float32, lambda: np.float64),
    "deques": (lambda: collections.deque([1]), lambda: collections.deque([2])),
    "factories": (lambda: collections.defaultdict(list), lambda: collections.defaultdict(set)),
    "own things in a deque": (
        lambda: collections.deque([Options(1)]),
        lambda: collections.deque([Options(2)]),
    ),
    "paths": (lambda: Path("a"), lambda: Path("b")),
    "filters": (lambda: F(k=1), lambda: F(k=2)),
    "vectorised": (lambda: np.vectorize(adder(1)), lambda: np.vectorize(adder(2))),
    "unions": (lambda: int | str, lambda: int | None),
}


@pytest.mark.parametrize("what", PAIRS)
def test_objects_count_by_what_they_hold(what: str) -> None:
    """An object made alike is the same, and one that holds something else is another."""
    one, other = PAIRS[what]

    assert told(one()) == told(one())
    assert told(one()) != told(other())


ASIDE: dict[str, Callable[[], object]] = {
    "lock": threading.Lock,
    "reentrant lock": threading.RLock,
    "event": threading.Event,
    "logger": lambda: logging.getLogger(str(random.random())),
    "standard stream": lambda: sys.stdout,
}


@pytest.mark.parametrize("what", ASIDE)
def test_locks_loggers_and_standard_streams_count_by_type(what: str) -> None:
    """What only helps along makes no other filter."""
    assert told(ASIDE[what]()) == told(ASIDE[what]()) != told(None)


def generate() -> Any:
    yield 1


REFUSED: dict[str, Callable[[], object]] = {
    "generator": generate,
    "iterator": lambda: iter([1]),
    "counter": itertools.count,
    "text stream": io.StringIO,
    "thread": threading.Thread,
    "thread's own": threading.local,
    "random generator": lambda: random.Random(1),
    "generator of arrays": lambda: np.random.default_rng(1),
    "view of memory": lambda: memoryview(b"a"),
    "object array": lambda: np.array([object()], dtype=object),
    "function without a home": lambda: np.frompyfunc(adder(1), 1, 1),
    "nested too deep": lambda: functools.reduce(lambda inner, _: [inner, len], range(5000), [len]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_told_is_refused_by_name(what: str) -> None:
    """The error names the attribute and says what to do."""
    with pytest.raises(Unfingerprintable) as refusal:
        identity(F(fine=1, bad={"deep": [REFUSED[what]()]}))

    assert what == "nested too deep" or refusal.value.path.startswith("bad['deep'][0]")
    assert "give the " in refusal.value.reason


def test_an_open_file_is_refused(tmp_path: Path) -> None:
    """Nobody knows what an open file will give."""
    with (
        (tmp_path / "a").open("w") as file,
        pytest.raises(Unfingerprintable, match=r"`k`: .* open"),
    ):
        told(file)


class Hidden(Filter):
    """Keeps what it got where nobody sees it."""

    def __init__(self, make: object, *rest: object) -> None:
        super().__init__()
        self._make = make
        self._rest = rest

    def forward(self, x: object, state: object) -> object:
        return self._make, self._rest


def test_what_the_constructor_got_counts() -> None:
    """Two filters that keep other arguments in private are two."""
    digests = [identity(each).digest for each in (Hidden(1), Hidden(2), Hidden(1, 3), Hidden(1))]

    assert len(set(digests)) == 3
    assert digests[0] == digests[3]
    assert list(identity(Hidden(adder(1), 2)).config) == ["argument 2", "make"]


def test_arguments_are_told_once() -> None:
    """An argument that is an attribute too has one entry, and a private state has none."""
    filter = F(a=1, b=[2])
    filter._seen = 3  # type: ignore[attr-defined]

    assert list(identity(filter).config) == ["a", "b"]
    assert identity(filter) == identity(F(b=[2], a=1))


class Derived(F):
    """Works something out when asked for it."""

    @functools.cached_property
    def table(self) -> list[int]:
        return [1]


def test_what_follows_from_the_rest_does_not_count() -> None:
    """A `cached_property` that was asked for leaves the filter as it was."""
    filter = Derived(k=1)
    before = identity(filter)
    assert filter.table == [1]

    assert identity(filter) == before


class Hostile:
    """An object whose `repr` fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


TEXTS = [(1, "1"), (Hostile(), "<Hostile>"), (Plain(), "<Plain>"), (adder(1), "adder.<locals>"),
         ([adder(1)], "[<function adder.<locals>.<lambda>>]"), ("x" * 999, "'xxx"),
         (list(range(10**6)), "[0, 1, 2"), (np.zeros(10**6), "array([0.")]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_values_are_shown_in_few_letters(value: object, text: str) -> None:
    """People see a short text without places in memory, whatever the value does."""
    _, shown = identity(F(k=value)).config["k"]

    assert text in shown
    assert len(shown) <= 80


def test_an_identity_says_what_it_is() -> None:
    """All parts of an identity are there for people to read."""
    found = identity(F(k=np.zeros(1)))

    assert isinstance(found, Identity)
    assert (len(found.digest), found.class_name) == (64, f"{__name__}.F")
    assert list(found.code) == [f"{__name__}.F", f"{__name__}.F.forward"]
    assert found.libraries.keys() == {"python", "soma-graph"}


def test_a_web_of_objects_is_walked_once() -> None:
    """Objects that share parts cost as much as there are parts."""
    node: object = Plain()
    for _ in range(60):
        node = Plain(node, node)

    assert told(node) == told(copy.deepcopy(node))
