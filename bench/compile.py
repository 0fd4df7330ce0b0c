"""How long it takes to build and to compile large graphs, and how that grows.

Run `python bench/compile.py`. Medians over rounds in which both sizes take turns, with the
collector off as in `timeit`; the exponent is that of the time between 5,000 and 10,000 nodes,
1.0 being linear.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from gc import collect, disable
from math import log2
from operator import rshift
from random import Random
from statistics import median
from time import perf_counter

from soma.compiler import Compiler
from soma.core import Composable, Filter, Topology

NODES = 10_000
ROUNDS = 15


class Prepare(Filter):
    """A filter that passes no gradients."""


class Scale(Filter):
    """A filter that does."""

    _differentiable = True


@dataclass(frozen=True)
class Row:
    """One line of the table: what is timed, on what, and how long it may take."""

    name: str
    prepare: Callable[[int], object]
    timed: Callable[..., object]
    seconds: float
    exponent: float = 1.15


def filters(count: int) -> list[Filter]:
    """One opaque filter in ten, the others differentiable."""
    return [Prepare() if index % 10 == 5 else Scale() for index in range(count)]


def chain(count: int) -> Topology:
    """Each node reads the one before."""
    topology = Topology()
    topology.add_expression(reduce(rshift, filters(count)))
    topology.wiring()
    return topology


def layers(count: int, *, width: int = 50, sources: int = 3) -> Topology:
    """Layers of `width` nodes; each reads `sources` nodes of the layer before."""
    random = Random(7)
    topology = Topology()
    nodes = [topology.add(filter) for filter in filters(count)]
    for index, node in enumerate(nodes[width:], start=width):
        begin = index - index % width - width
        for source in random.sample(nodes[begin : begin + width], sources):
            topology.connect(source, node)
    return topology


def compiled_anew(topology: Topology) -> object:
    """Compile without what the last round has kept."""
    topology.version += 1
    return Compiler().compile(topology)


def built(parts: list[Composable]) -> object:
    """Build a chain with `>>` and declare it."""
    topology = Topology()
    topology.add_expression(reduce(rshift, parts))
    return topology


def seconds(row: Row, *counts: int) -> list[float]:
    """Return the median time of one row at each size; the sizes take turns."""
    arguments = [row.prepare(count) for count in counts]
    times: list[list[float]] = [[] for _ in counts]
    for _ in range(ROUNDS):
        for argument, taken in zip(arguments, times, strict=True):
            collect()
            begin = perf_counter()
            row.timed(argument)
            taken.append(perf_counter() - begin)
    return [median(taken) for taken in times]


ROWS = (
    Row("build a chain with >>", filters, built, 0.3),
    Row("compile a chain", chain, compiled_anew, 0.2),
    Row("compile layers, 3 predecessors each", layers, compiled_anew, 0.4),
)


def main() -> None:
    """Print the table."""
    disable()
    print(f"{'':36}  {NODES:,} nodes   target   exponent   target")
    for row in ROWS:
        half, whole = seconds(row, NODES // 2, NODES)
        print(
            f"{row.name:36}  {whole:10.3f} s  {row.seconds:5.1f} s  {log2(whole / half):9.2f}"
            f"  {row.exponent:7.2f}"
        )


if __name__ == "__main__":
    main()
