"""What the cache costs: each row over a hand-written minimum, beside two other caches.

The floor of a hit hashes the input and reads the output; that of a write hashes the input and
writes the output to a new file, which is then renamed. Hits and writes are those of `Cache`, the
other rows those of a graph. joblib.Memory and diskcache keep the same values under the same
inputs. Each row has folders of its own. One torch thread.

Texts after the name of the file choose the rows in whose names they all are:
`python bench/cache.py "cold write" "1 KB"`.
"""

import gc
import os
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any, NamedTuple

import diskcache
import joblib  # noqa: TID251  # measured beside, not used
import numpy as np
import torch
from blake3 import blake3
from measure import Ratio, ratio, ratios, verdict
from torch import nn

from soma import DifferentiableFilter, Filter, Graph
from soma.cache import Cache, FileStore, MemoryStore, combine, digest

torch.set_num_threads(1)

KB, MB = 1_024, 1_048_576
MANY = 256 * KB  # bytes from which threads pay


class Linear(DifferentiableFilter):
    """A linear layer."""

    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], self.width)


class Add(Filter):
    """A filter that is cheaper than its look-up."""

    def forward(self, x, state=None):
        return x + self.by


class Slow(Filter):
    """A filter that takes its time."""

    def forward(self, x, state=None):
        end = perf_counter() + self.seconds
        result = x + 1
        while perf_counter() < end:
            pass
        return result


class Payload(NamedTuple):
    """A value to keep, with the fewest calls that take it apart and put it together."""

    value: Any
    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


def array(size: int) -> Payload:
    value = np.random.default_rng(0).random(size // 8)
    return Payload(value, lambda one: one.data.cast("B"), lambda data: np.frombuffer(data))


def floats(many: int) -> Payload:
    code = struct.Struct(f"<{many}d")
    value = np.random.default_rng(0).random(many).tolist()
    return Payload(value, lambda one: code.pack(*one), lambda data: list(code.unpack(data)))


def name_of(data: Any) -> str:
    threads = blake3.AUTO if len(data) >= MANY else 1
    return blake3(data, max_threads=threads).hexdigest()


def read(path: str) -> bytearray:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        data = bytearray(os.fstat(descriptor).st_size)
        os.readv(descriptor, [data])
    finally:
        os.close(descriptor)
    return data


def write(folder: str, name: str, data: Any) -> None:
    descriptor = os.open(f"{folder}/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
    os.replace(f"{folder}/new", f"{folder}/{name}")  # noqa: PTH105  # the floor is the bare call


@contextmanager
def folders() -> Iterator[Callable[[], str]]:
    """Give new folders, which are gone afterwards."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(TemporaryDirectory(prefix="soma-bench-"))


class Others:
    """The same value in the other caches."""

    def __init__(self, stored: Any, folder: Callable[[], str], pack: Callable[[Any], Any]) -> None:
        self.joblib = joblib.Memory(folder(), verbose=0).cache(same)
        self.diskcache = diskcache.Cache(folder())
        self.pack = pack
        self.stored = stored
        self.joblib(stored)
        self.write()

    def hits(self) -> list[Callable[[], object]]:
        return [
            lambda: self.joblib(self.stored),
            lambda: self.diskcache.get(name_of(self.pack(self.stored))),
        ]

    def write(self) -> None:
        self.diskcache.set(name_of(self.pack(self.stored)), self.stored)


def settled() -> None:
    """Wait until files are so old that another write would show in their times."""
    sleep(2.1)


def same(x):
    return x


def hit_in_memory(payload: Payload) -> list[Ratio]:
    value, pack, unpack = payload
    cache = Cache(MemoryStore())
    cache.keep(combine(digest(value)), value, "output", {})
    kept = {name_of(pack(value)): bytes(pack(value))}
    return _ratios(
        [lambda: _found(cache, value)],
        lambda: unpack(bytearray(kept[name_of(pack(value))])),
    )


def hit_from_disk(payload: Payload) -> list[Ratio]:
    value, pack, unpack = payload
    with folders() as folder:
        cache, by_hand = Cache(FileStore(folder())), folder()
        cache.keep(combine(digest(value)), value, "output", {})
        write(by_hand, name_of(pack(value)), pack(value))
        others = Others(value, folder, pack)
        settled()
        return _ratios(
            [lambda: _found(cache, value), *others.hits()],
            lambda: unpack(read(f"{by_hand}/{name_of(pack(value))}")),
        )


def _found(cache: Cache, value: Any) -> object:
    record = cache.find(combine(digest(value)))
    assert record is not None
    return cache.load(record)


def cold_write(payload: Payload) -> list[Ratio]:
    value, pack, _ = payload
    numbers = count(1)
    with folders() as folder:
        cache, by_hand = Cache(FileStore(folder())), folder()
        others = Others(value, folder, pack)

        def ours() -> None:
            value[0] = next(numbers)
            key = combine(digest(value))
            assert cache.find(key) is None
            cache.keep(key, value, "output", {})

        def floor() -> None:
            value[0] = next(numbers)
            write(by_hand, name_of(pack(value)), pack(value))

        def with_joblib() -> None:
            value[0] = next(numbers)
            others.joblib(value)

        def with_diskcache() -> None:
            value[0] = next(numbers)
            others.write()

        def emptied() -> None:
            for place in (f"{cache.store.place}/records", f"{cache.store.place}/blobs", by_hand):
                for path in Path(place).glob("*"):
                    rmtree(path) if path.is_dir() else path.unlink()
            others.joblib.clear(warn=False)
            others.diskcache.clear()

        runs = [ours, with_joblib, with_diskcache]
        # A small write would wait for the removal of thousands of files before it.
        large = len(pack(value)) > 10 * MB
        return _ratios(runs, floor, before=emptied if large else None)


def _ratios(runs, floor, before=None) -> list[Ratio]:
    gc.collect()
    return ratios(runs, floor, rounds=15, before=before)


def inference(rows: int, width: int, cache: object) -> Ratio:
    """Return a graph whose answers are all stored over its modules by hand."""
    x = torch.randn(rows, width)
    expression = Linear(width=width)
    for _ in range(3):
        expression = expression >> Linear(width=width)
    g = Graph.somatize(expression, cache=cache)
    g.materialize(x)
    g.freeze()
    sequence = nn.Sequential(*[filter._module for _, filter in g.filters()])
    g.forward(x)
    settled()

    def raw():
        with torch.no_grad():
            return sequence(x)

    return ratio(lambda: g.forward(x), raw)


def cold_forward() -> Ratio:
    x = np.zeros(MB // 8)
    numbers = count(1)
    expression = Slow(seconds=0.010)
    for _ in range(7):
        expression = expression >> Slow(seconds=0.010)
    with folders() as folder:
        cached = Graph.somatize(expression, cache=folder())
        plain = Graph.somatize(expression, cache=None)

        def with_new_input(g: Graph) -> Any:
            x[0] = next(numbers)
            return g.forward(x)

        return ratio(lambda: with_new_input(cached), lambda: with_new_input(plain))


def warm_pass(size: int, cache: object, nodes: int = 16) -> Ratio:
    """Return a pass over cached nodes over as many look-ups by hand and one copy."""
    x = np.random.default_rng(0).random(size // 8)
    expression = Add(by=1)
    for number in range(nodes - 1):
        expression = expression >> Add(by=number + 2)
    g = Graph.somatize(expression, cache=cache)
    answer = g.forward(x)
    settled()
    filters = [b"%64d" % number for number in range(nodes)]
    found: dict[str, str] = {}

    def floor():
        name = name_of(x.data.cast("B"))
        for filter in filters:
            key = blake3(filter + name.encode()).hexdigest()
            name = found.setdefault(key, key)
        return answer.copy()

    return ratio(lambda: g.forward(x), floor)


class Row(NamedTuple):
    """One line: what is measured, and the ratio that is wanted."""

    group: str
    label: str
    measure: Callable[[], list[Ratio]]
    target: float


def in_a_folder(measure: Callable[[str], Ratio]) -> list[Ratio]:
    with folders() as folder:
        return [measure(folder())]


def rows() -> Iterator[Row]:
    """Give all rows in order."""
    sizes = (("1 KB", KB), ("1 MB", MB), ("100 MB", 100 * MB))
    group = "all answers of 4 nodes stored, over computing them by hand"
    for label, many, width, target in (
        ("1 KB", 32, 8, 0.5),
        ("256 KB", 256, 256, 0.10),
        ("4 MB", 4096, 256, 0.08),
    ):
        measure = partial(inference, many, width)
        yield Row(group, f"{label}, memory", lambda measure=measure: [measure("memory")], target)
        yield Row(group, f"{label}, disk", partial(in_a_folder, measure), target)
    for group, measure, targets in (
        ("hit in memory, times the floor", hit_in_memory, (3, 1.3, 1.1)),
        ("hit from disk, checked already, times the floor", hit_from_disk, (4, 1.5, 0.8)),
        ("cold write, times the floor", cold_write, (4, 1.5, 1.1)),
    ):
        for (label, size), target in zip(sizes, targets, strict=True):
            yield Row(group, label, lambda measure=measure, size=size: measure(array(size)), target)
    group = "cold forward with the cache on over `cache=None`"
    yield Row(group, "8 x 10 ms, 1 MB", lambda: [cold_forward()], 1.10)
    group = "hit of a list of 10,000 floats, times the floor"
    yield Row(group, "disk", lambda: hit_from_disk(floats(10_000)), 1.2)
    yield Row(group, "memory", lambda: hit_in_memory(floats(10_000)), 1.2)
    group = "warm pass over 16 cached nodes, times the floor"
    for (label, size), target in zip(sizes, (8, 2), strict=False):
        measure = partial(warm_pass, size)
        yield Row(group, f"{label}, memory", lambda measure=measure: [measure("memory")], target)
        yield Row(group, f"{label}, disk", partial(in_a_folder, measure), target)


def show(row: Row) -> None:
    ours, *others = row.measure()
    beside = "  ".join(
        f"{name} {other.median:,.1f}"
        for name, other in zip(("joblib", "diskcache"), others, strict=False)
    )
    print(f"  {row.label:16} {verdict(ours, row.target)}  {beside}".rstrip(), flush=True)
    if row.group.startswith("warm pass"):
        cost = ours.seconds / 16 * 1e6
        print(f"    a node {cost:12.1f} us  target 12.0  {'met' if cost <= 12 else 'MISSED'}")


def main(wanted: list[str]) -> None:
    shown = None
    for row in rows():
        if all(text in f"{row.group}: {row.label}" for text in wanted):
            if row.group != shown:
                print(shown := row.group)
            show(row)


if __name__ == "__main__":
    main(sys.argv[1:])
