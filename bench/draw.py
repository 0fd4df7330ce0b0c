"""How long it takes to draw graphs, small ones and ones that have to collapse.

Run `python bench/draw.py`. From the record of a graph to the text of its SVG, the median of
rounds in which all sizes take turns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from gc import collect, disable
from itertools import pairwise
from random import Random
from statistics import median
from time import perf_counter

from soma.core import NodeId
from soma.tracking._graph_record import GraphRecord, NodeRecord
from soma.viz._graph_picture import graph_svg

ROUNDS = 7


@dataclass(frozen=True)
class Row:
    """One line of the table: what is drawn, how large it is, how long it may take."""

    name: str
    make: Callable[[int], GraphRecord]
    nodes: int
    seconds: float


def graph(count: int, edges: list[tuple[int, int]]) -> GraphRecord:
    """Return a graph of like nodes."""
    ids = [NodeId(f"node_{index}") for index in range(count)]
    nodes = tuple(
        NodeRecord(
            id=each,
            class_name="StandardScaler",
            kind="trainable",
            has_module=False,
            parameters=None,
            trainable=None,
            config={},
            doc="",
        )
        for each in ids
    )
    return GraphRecord(
        name="bench", nodes=nodes, edges=tuple((ids[one], ids[other]) for one, other in edges)
    )


def chain(count: int) -> GraphRecord:
    """Each node reads the one before."""
    return graph(count, list(pairwise(range(count))))


def layers(count: int, *, width: int = 50, sources: int = 3) -> GraphRecord:
    """Layers of `width` nodes; each reads `sources` nodes of the layer before."""
    random = Random(7)
    edges = []
    for index in range(width, count):
        begin = index - index % width - width
        edges += [(one, index) for one in random.sample(range(begin, begin + width), sources)]
    return graph(count, edges)


def narrow(count: int) -> GraphRecord:
    """Layers of eight nodes, each reading two."""
    return layers(count, width=8, sources=2)


def skipping(count: int) -> GraphRecord:
    """A chain in which every third node also reads one far before it."""
    random = Random(7)
    far = [(random.randrange(index), index) for index in range(3, count, 3)]
    return graph(count, [*pairwise(range(count)), *far])


ROWS = (
    Row("chain", chain, 60, 0.1),
    Row("narrow layers", narrow, 14, 0.05),
    Row("narrow layers", narrow, 200, 0.5),
    Row("narrow layers", narrow, 800, 2.0),
    Row("far skips", skipping, 200, 2.0),
    Row("chain, collapsed", chain, 10_000, 1.0),
    Row("layers, collapsed", layers, 10_000, 1.0),
    Row("narrow layers, collapsed", narrow, 10_000, 1.0),
    Row("far skips, collapsed", skipping, 10_000, 1.0),
)


def main() -> None:
    """Print the table."""
    disable()
    made = [row.make(row.nodes) for row in ROWS]
    times: list[list[float]] = [[] for _ in ROWS]
    sizes = [0] * len(ROWS)
    for _ in range(ROUNDS):
        for at, record in enumerate(made):
            collect()
            begin = perf_counter()
            text = graph_svg(record)
            times[at].append(perf_counter() - begin)
            sizes[at] = len(text)
    print(f"{'':26} {'nodes':>7}   {'median':>9}   target   SVG")
    for row, taken, size in zip(ROWS, times, sizes, strict=True):
        print(
            f"{row.name:26} {row.nodes:7,}   {median(taken):7.3f} s  {row.seconds:5.2f} s"
            f"  {size // 1000:4,} kB"
        )


if __name__ == "__main__":
    main()
