"""A plain layered layout of our own, for machines without graphlay: longest path, barycentre.

A line that passes a layer gets a slot in it, as a box does, so no line runs through a box.
It draws no frames.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from soma.draw._marks import Point
from soma.draw._places import Area, Places, Route, Wanted, from_origin

_GAP, _LAYER_GAP, _SLOT = 26.0, 56.0, 14.0
_SWEEPS = 8


@dataclass(slots=True)
class _Slot:
    """What takes room in a layer: a box, or a line on its way through."""

    width: float
    height: float
    above: list["_Slot"] = field(default_factory=list)
    below: list["_Slot"] = field(default_factory=list)
    rank: int = 0
    x: float = 0.0  # of its middle


def ranks(wanted: Wanted) -> list[int]:
    """Return for each block the length of the longest path to it; a cycle is cut somewhere."""
    after: list[list[int]] = [[] for _ in wanted.blocks]
    waits = [0] * len(wanted.blocks)
    for link in wanted.links:
        after[link.source].append(link.target)
        waits[link.target] += 1
    found, done = [0] * len(waits), [False] * len(waits)
    ready = [index for index, count in enumerate(waits) if not count]
    for start in [-1, *range(len(waits))]:
        if start >= 0 and not done[start]:
            ready.append(start)
        while ready:
            index = ready.pop()
            if done[index]:
                continue
            done[index] = True
            for target in after[index]:
                waits[target] -= 1
                if not done[target]:
                    found[target] = max(found[target], found[index] + 1)
                    if not waits[target]:
                        ready.append(target)
    return found


def slots(wanted: Wanted) -> int:
    """Return how many slots lines take in layers that they pass; a layout is slow with many."""
    rank = ranks(wanted)
    return sum(abs(rank[link.target] - rank[link.source]) - 1 for link in wanted.links)


def layers(wanted: Wanted) -> list[list[int]]:
    """Return the boxes by their rank."""
    found = ranks(wanted)
    rows: list[list[int]] = [[] for _ in range(max(found, default=0) + 1)]
    for index, block in enumerate(wanted.blocks):
        if not block.frame:
            rows[found[index]].append(index)
    return [row for row in rows if row]


def plain_places(wanted: Wanted) -> Places:
    """Return a layout from top to bottom."""
    placed = [_Slot(*block.size) for block in wanted.blocks]
    rows = [[placed[index] for index in row] for row in layers(wanted)]
    for rank, row in enumerate(rows):
        for slot in row:
            slot.rank = rank
    ways = [_way(placed[link.source], placed[link.target], rows) for link in wanted.links]
    for _ in range(_SWEEPS):
        _swept(rows[1:], above=True)
        _swept(rows[-2::-1], above=False)
    tops, top = [], 0.0
    for row in rows:
        _spread(row)
        tops.append(top)
        top += max(slot.height for slot in row) + _LAYER_GAP
    areas = [
        None
        if block.frame
        else Area(
            x=slot.x - slot.width / 2, y=tops[slot.rank], width=slot.width, height=slot.height
        )
        for block, slot in zip(wanted.blocks, placed, strict=True)
    ]
    bottoms = [top + max(s.height for s in row) for top, row in zip(tops, rows, strict=True)]
    lines = [tuple(_points(way, tops, bottoms)) for way in ways]
    routes = [Route(points=line, label=_before_end(line)) for line in lines]
    return from_origin(areas, routes, [link.label for link in wanted.links])


def _way(source: _Slot, target: _Slot, rows: list[list[_Slot]]) -> list[_Slot]:
    step = 1 if target.rank >= source.rank else -1
    way = [source]
    for rank in range(source.rank + step, target.rank, step):
        slot = _Slot(_SLOT, 0.0, rank=rank)
        rows[rank].append(slot)
        way.append(slot)
    way.append(target)
    for one, other in pairwise(way):
        (one.below if step > 0 else one.above).append(other)
        (other.above if step > 0 else other.below).append(one)
    return way


def _swept(rows: Iterable[list[_Slot]], *, above: bool) -> None:
    for row in rows:
        for slot in row:
            near = slot.above if above else slot.below
            if near:
                slot.x = sum(other.x for other in near) / len(near)
        row.sort(key=lambda slot: slot.x)
        _spread(row)


def _spread(row: Sequence[_Slot]) -> None:
    """Push the slots of a row apart, and the row back to where its slots wanted to be."""
    wanted = sum(slot.x for slot in row)
    for one, other in pairwise(row):
        other.x = max(other.x, one.x + (one.width + other.width) / 2 + _GAP)
    back = (sum(slot.x for slot in row) - wanted) / len(row)
    for slot in row:
        slot.x -= back


def _points(way: list[_Slot], tops: list[float], bottoms: list[float]) -> Iterator[Point]:
    down = way[0].rank <= way[-1].rank
    near, far = (tops, bottoms) if down else (bottoms, tops)
    source, *between, target = way
    start = tops[source.rank] + source.height if down else tops[source.rank]
    yield (source.x, start)
    if down and start != far[source.rank]:
        yield (source.x, far[source.rank])
    for slot in between:
        yield (slot.x, near[slot.rank])
        yield (slot.x, far[slot.rank])
    end = tops[target.rank] if down else tops[target.rank] + target.height
    if not down and end != near[target.rank]:
        yield (target.x, near[target.rank])
    yield (target.x, end)


def _before_end(line: tuple[Point, ...]) -> Point:
    (ax, ay), (bx, by) = line[-2:]
    return ((ax + bx) / 2, (ay + by) / 2)
