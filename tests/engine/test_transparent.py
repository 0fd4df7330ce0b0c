"""A warm cache gives exactly what an empty one would, on random graphs, values and edits."""

import math
import struct
from collections.abc import Callable

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from soma import Filter, Graph
from soma.cache import MemoryStore, digest
from soma.errors import InvalidInput

NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
GRID = np.arange(6.0).reshape(2, 3)

LOOKALIKES: list[object] = [
    *(True, 1, 1.0, "1", b"1", None, False, 0, 0.0, -0.0, math.nan, NAN, "", b""),
    *(2**53, 2**53 + 1, float(2**53), 2**80, 1j, complex(1)),
    *(
        (1,),
        [1],
        {1: 1},
        {"1": 1},
        {1.0: 1},
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
        [[1], 1],
        [1, [1]],
    ),
    *({1, 2}, frozenset({1, 2}), set(), (), [], {}),
    *(np.float64(1), np.float32(1), np.int64(1), np.bool_(True), np.array(1), np.array([1])),
    *(GRID, GRID.T, GRID[::-1], GRID[:, ::2], np.asfortranarray(GRID), GRID.astype(">f8")),
    *(
        GRID.astype("f4"),
        GRID.astype("i8"),
        GRID.reshape(3, 2),
        GRID.reshape(6),
        GRID[:0],
        GRID[:, :0],
    ),
    *(
        torch.tensor(1),
        torch.tensor(1.0),
        torch.tensor([1]),
        torch.from_numpy(GRID),
        torch.zeros(0),
    ),
    *(torch.zeros(2, 3, dtype=torch.bfloat16), torch.zeros(2, 3, dtype=torch.float64)),
]


def told(value: object) -> str:
    """Return a text that two values share only if nothing tells them apart."""
    if isinstance(value, dict):
        return f"dict({[(told(key), told(part)) for key, part in value.items()]})"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({[told(part) for part in value]})"
    if isinstance(value, float):
        return f"float({struct.pack('<d', value).hex()})"
    return f"{type(value).__name__}({getattr(value, 'dtype', '')}, {digest(value)})"


def edited(factor: int) -> type[Filter]:
    """Return a class of one name whose code differs by a constant in a closure."""

    class Told(Filter):
        def forward(self, x, state):
            return [told(x), factor, self.given]

    return Told


class Passing(Filter):
    def forward(self, x, state):
        return x


class Fitted(Filter):
    def fit(self, x, y=None):
        return {"seen": told(x), "targets": told(y)}

    def forward(self, x, state):
        return [state["seen"], state["targets"], told(x)]


values = st.sampled_from(LOOKALIKES)


def outcome(g: Graph, x: object, y: object) -> str:
    """Return what a fit and a forward give, or the error that refuses the data."""
    try:
        return told(g.fit(x, y).forward(x))
    except InvalidInput as refusal:
        return str(refusal)


@st.composite
def graphs(draw: st.DrawFn) -> Callable[[object], Graph]:
    """Return a maker of one random graph, on the cache that it is given."""
    kinds = draw(st.lists(st.sampled_from(["told", "passing", "fitted"]), min_size=1, max_size=5))
    factors = [draw(st.integers(1, 3)) for _ in kinds]
    configured = [draw(values) for _ in kinds]
    links = [
        draw(st.sets(st.integers(0, i - 1), max_size=2)) if i else set() for i in range(len(kinds))
    ]

    def make(cache: object) -> Graph:
        g = Graph(cache=cache)
        for i, kind in enumerate(kinds):
            maker = {"told": edited(factors[i]), "passing": Passing, "fitted": Fitted}[kind]
            g.node(f"n{i}", maker(given=configured[i]))
        for i, sources in enumerate(links):
            for source in sorted(sources):
                g.connect(f"n{source}", f"n{i}")
        return g

    return make


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(graphs(), values, values), min_size=2, max_size=4))
def test_a_warm_cache_answers_as_an_empty_one(
    runs: list[tuple[Callable[[object], Graph], object, object]],
) -> None:
    """Many graphs and values share one store, twice over; each answer is as without it."""
    store = MemoryStore()
    for _ in range(2):
        for make, x, y in runs:
            assert outcome(make(store), x, y) == outcome(make(None), x, y)


@settings(max_examples=40, deadline=None)
@given(values, values, values)
def test_an_attribute_changed_afterwards_counts(x: object, before: object, after: object) -> None:
    """Configurations are read at each run."""
    filter = edited(1)(given=before)
    g = Graph.somatize(filter, cache="memory")
    g.forward(x)
    filter.given = after

    assert told(g.forward(x)) == told(Graph.somatize(edited(1)(given=after), cache=None).forward(x))
