"""A filter that writes to its input reaches neither the caller nor another filter."""

from collections import Counter, OrderedDict, defaultdict, namedtuple
from copy import deepcopy

import numpy as np
import pytest
import torch

from soma import Filter, Graph
from soma.errors import InputChanged
from tests.engine.filters import Keeps, Other, Same

Point = namedtuple("Point", ["x", "y"])


class Rows(list):
    """A list of another class."""


class Marked(torch.Tensor):
    """A tensor of another class."""


class Writes(Filter):
    """Does to its input whatever `write` does, and gives it."""

    def forward(self, x, state):
        self.write(x)
        return x


class FitWrites(Writes):
    """Writes in `fit` only."""

    def fit(self, x, y=None):
        self.write(x)

    def forward(self, x, state):
        return x


CASES = [
    ([3, 1, 2], lambda x: x.sort()),
    ([3, 1, 2], lambda x: x.append(4)),
    ([[1], [2]], lambda x: x[0].append(9)),
    ([{"a": [1]}], lambda x: x[0]["a"].clear()),
    ({"a": 1}, lambda x: x.update(b=2)),
    ({"a": {"b": [1]}}, lambda x: x["a"]["b"].append(2)),
    (([1], [2]), lambda x: x[1].clear()),
    ({1, 2}, lambda x: x.add(3)),
    (OrderedDict(a=[1]), lambda x: x["a"].append(2)),
    (defaultdict(list, a=[1]), lambda x: x["b"].append(2)),
    (Counter("aab"), lambda x: x.update("ccc")),
    (Point([1], [2]), lambda x: x.x.append(3)),
    (Rows([[1], [2]]), lambda x: x[1].append(3)),
]
IDS = [f"{type(value).__name__} {index}" for index, (value, _) in enumerate(CASES)]


@pytest.mark.parametrize(("value", "write"), CASES, ids=IDS)
def test_the_caller_keeps_its_value(value: object, write) -> None:
    """Containers are handed out as copies, at any depth."""
    before = deepcopy(value)
    output = Graph.somatize(Writes(write=write)).forward(value)

    assert value == before
    assert output != before


@pytest.mark.parametrize(("value", "write"), CASES, ids=IDS)
def test_a_sibling_gets_the_value_as_it_was(value: object, write) -> None:
    """Whichever comes first, one that reads sees nothing of one that writes."""
    before = deepcopy(value)
    g = Graph.somatize(Same() >> (Other() | Writes(write=write) | Same()))
    output = g.forward(value)

    assert output["other"] == output["same_2"] == value == before
    assert type(output["same_2"]) is type(value)


@pytest.mark.parametrize(("value", "write"), CASES, ids=IDS)
def test_fit_does_not_write_for_forward(value: object, write) -> None:
    """What `fit` does to its input is not seen by the same filter's `forward`."""
    before = deepcopy(value)
    g = Graph.somatize(Same() >> FitWrites(write=write) >> Keeps()).fit(value)

    assert g.get_node_state("keeps")[0] == value == before


@pytest.mark.parametrize(("value", "write"), CASES, ids=IDS)
def test_targets_are_protected_too(value: object, write) -> None:
    """Every filter learns from the same `y`."""

    class Spoils(Same):
        def fit(self, x, y=None):
            write(y)

    before = deepcopy(value)
    g = Graph.somatize(Spoils() >> Keeps()).fit("x", value)

    assert g.get_node_state("keeps")[1] == value == before


def test_an_array_is_read_only() -> None:
    """Writing to it is NumPy's own error, with a hint; nothing is copied for those that read."""
    x = np.arange(3)
    g = Graph.somatize(Writes(write=lambda x: x.sort()))

    with pytest.raises(ValueError, match="read-only") as caught:
        g.forward(x)
    assert caught.value.__notes__[-1].endswith("Change a copy.")
    assert np.shares_memory(Graph.somatize(Same()).forward(x), x)
    assert x.flags.writeable


def test_the_mask_of_an_array_is_protected_too() -> None:
    """A masked array holds a second one."""
    x = np.ma.array([1, 2], mask=[False, False])

    def write(x):
        x.mask[0] = True
        x[1] = np.ma.masked

    Graph.somatize(Writes(write=write)).forward(x)
    assert x.mask.tolist() == [False, False]


@pytest.mark.parametrize("wrap", [list, dict, tuple], ids=["list", "dict", "tuple"])
def test_an_array_inside_something_is_read_only(wrap: type) -> None:
    """Wherever it lies."""
    array = np.zeros(2)
    value = {"list": [array], "dict": {0: array}, "tuple": (array,)}[wrap.__name__]

    def write(x):
        x[0][0] = 1

    with pytest.raises(ValueError, match="read-only"):
        Graph.somatize(Writes(write=write)).forward(value)
    assert array.tolist() == [0, 0]


def test_an_array_passed_on_is_still_read_only() -> None:
    """The next filter is told too, though it is the only one to read this."""
    x = np.zeros(2)

    with pytest.raises(ValueError, match="read-only") as caught:
        Graph.somatize(Same() >> Writes(write=lambda x: x.fill(1))).forward(x)
    assert len(caught.value.__notes__) == 2


@pytest.mark.parametrize(
    ("make", "write"),
    [
        (lambda t: t, lambda x: x.add_(1)),
        (lambda t: t, lambda x: x[0].zero_()),
        (lambda t: [t], lambda x: x[0].add_(1)),
        (lambda t: {"a": t}, lambda x: x["a"].add_(1)),
        (lambda t: (5, t), lambda x: x[1].add_(1)),
        (lambda t: [("a", t)], lambda x: x[0][1].add_(1)),
        (lambda t: {"a": [0, t]}, lambda x: x["a"][1].add_(1)),
    ],
    ids=["tensor", "view", "list", "dict", "number first", "text first", "deep"],
)
def test_a_tensor_that_was_written_to_is_an_error(make, write) -> None:
    """A tensor cannot be locked, so the node is caught afterwards and named."""
    with pytest.raises(InputChanged, match="in place") as caught:
        Graph.somatize(Same() >> (Same() | Writes(write=write))).forward(make(torch.ones(2)))
    assert "`writes` (Writes)" in caught.value.__notes__[0]


def test_a_tensor_of_targets_that_was_written_to_is_an_error() -> None:
    """The same for `y`."""

    class Spoils(Same):
        def fit(self, x, y=None):
            y.zero_()

    with pytest.raises(InputChanged):
        Graph.somatize(Spoils()).fit([1, 2], torch.ones(2))


@pytest.mark.parametrize(
    ("give", "write"),
    [
        (lambda x: x, lambda x: x.add_(1)),
        (lambda x: x[1:], lambda x: x.add_(1)),
        (lambda x: x.detach(), lambda x: x.add_(1)),
        (lambda x: {"a": [x.T]}, lambda x: x["a"][0].add_(1)),
        (lambda x: (x[0], 3), lambda x: x[0].zero_()),
    ],
    ids=["itself", "rows", "detached", "inside", "pair"],
)
def test_a_tensor_passed_on_is_the_next_ones_own(give, write) -> None:
    """Whoever reads alone may write, also where the node before gave a part of its input."""

    class Gives(Filter):
        def forward(self, x, state):
            return give(x)

    x = torch.ones(2, 2)
    Graph.somatize(Gives() >> Writes(write=write)).forward(x)

    assert torch.equal(x, torch.ones(2, 2))


def test_a_tensor_turned_into_an_array_is_read_only() -> None:
    """`tensor.numpy()` shares memory with the caller's tensor, so it is locked."""

    class Arrays(Filter):
        def forward(self, x, state):
            return x.numpy()[:1]

    x = torch.ones(2)

    with pytest.raises(ValueError, match="read-only"):
        Graph.somatize(Arrays() >> Writes(write=lambda x: x.fill(0))).forward(x)
    assert x.tolist() == [1, 1]


def test_a_tensor_made_in_inference_mode_is_copied() -> None:
    """It has no version that could tell of a change."""
    with torch.inference_mode():
        x = torch.ones(2)
        Graph.somatize(Writes(write=lambda x: x.add_(1))).forward(x)

        assert x.tolist() == [1, 1]


def test_a_filter_may_write_to_what_it_alone_reads() -> None:
    """A value that only one node will ever see is that node's own."""

    class Makes(Filter):
        def forward(self, x, state):
            return torch.zeros(2) if x else np.zeros(2)

    for x in (True, False):
        g = Graph.somatize(Makes() >> Writes(write=lambda x: x.__iadd__(1)))
        assert g.forward(x).tolist() == [1, 1]


@pytest.mark.parametrize(
    "value",
    [
        [1, [2.5, "a", None]],
        {"a": (1, 2), 3: {4}},
        Point(1, [2]),
        OrderedDict(b=1, a=2),
        np.ma.array([1, 2], mask=[True, False]),
        np.zeros((0, 3)),
        np.array(5),
        torch.ones(2, 2),
        torch.eye(2).to_sparse(),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2).as_subclass(Marked),
        torch.empty(2, device="meta"),
        frozenset({1}),
        range(3),
    ],
    ids=str,
)
def test_those_that_only_read_get_an_equal_value(value: object) -> None:
    """Of the same type, whatever the protection does."""

    class Shows(Filter):
        def forward(self, x, state):
            return [type(x), repr(x)]

    output = Graph.somatize(Same() | Shows()).forward(value)

    assert output["shows"] == [type(value), repr(value)]


def test_what_fit_keeps_of_a_tensor_is_its_own() -> None:
    """A state does not change when the data does afterwards."""
    x = torch.ones(2)
    g = Graph.somatize(Keeps()).fit(x)
    x.zero_()

    assert g.get_node_state("keeps")[0].tolist() == [1, 1]
