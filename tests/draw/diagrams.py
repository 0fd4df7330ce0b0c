"""Diagrams to draw, and the geometry that tells whether they were drawn well."""

import random
from itertools import combinations, pairwise

from soma.draw import Arrow, Badge, Box, Diagram, Group
from soma.draw._cards import card
from soma.draw._places import Area, Block, Link, Places, Wanted

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "]]>&amp;<!-- \" ' `",
    "\x01control\x00nul\x7f\x9b31m",
    'line\u2028break\nclick n0 href "javascript:alert(1)"',
    "lone \ud800 surrogate \ufffe \uffff",
    "\u202eright to left\u202c \u0645\u0631\u062d\u0628\u0627",
    "a_name_of_sixty_characters_that_goes_on_until_it_is_really_so",
    "\u65e5\u672c\u8a9e\u306e\u540d\u524d" * 5,
    "e\u0301te\u0301 \U0001f600",
    "",
)


def diagram(boxes: list[Box], ends: list[tuple[int, int]], **more: object) -> Diagram:
    """Return a diagram whose arrows run between boxes by their numbers."""
    arrows = tuple(Arrow(source=boxes[a].key, target=boxes[b].key) for a, b in ends)
    return Diagram(title="tried", boxes=tuple(boxes), arrows=arrows, **more)  # type: ignore[arg-type]


def plain_boxes(count: int) -> list[Box]:
    """Return boxes of several sizes."""
    badges = (Badge(text="▲ VANISHING", ink="warning"), Badge(text="● from cache", ink="cached"))
    return [
        Box(
            key=str(index),
            title=f"node_{index}" * (1 + index % 3),
            lines=("StandardScaler · trainable",) * (index % 3),
            badges=badges[: index % 3],
            small=index % 7 == 3,
        )
        for index in range(count)
    ]


def chain(count: int) -> Diagram:
    """Return boxes one after the other."""
    return diagram(plain_boxes(count), list(pairwise(range(count))))


def fan(count: int) -> Diagram:
    """Return one box that feeds many, which feed one."""
    inner = range(1, count + 1)
    ends = [*((0, at) for at in inner), *((at, count + 1) for at in inner)]
    return diagram(plain_boxes(count + 2), ends)


def tangle(count: int, *, seed: int = 5) -> Diagram:
    """Return a random graph with short and long edges."""
    source = random.Random(seed)
    ends = set()
    for index in range(1, count):
        ends.add((max(0, index - source.randint(1, 4)), index))
        if source.random() < 0.3:
            ends.add((source.randrange(index), index))
    return diagram(plain_boxes(count), sorted(ends))


def layered(count: int, width: int) -> Diagram:
    """Return layers of boxes; each box reads three of the layer before."""
    source = random.Random(7)
    ends = []
    for index in range(width, count):
        begin = index - index % width - width
        ends += [(a, index) for a in source.sample(range(begin, begin + width), 3)]
    return diagram(plain_boxes(count), ends)


def framed() -> Diagram:
    """Return two frames in a third, one more with a wide title, and a box outside of them."""
    inside = ["left", "left", "right", "right", None, "wide", "wide", None]
    boxes = [
        Box(key=str(at), title=f"part.{at}", lines=("Linear",), group=group)
        for at, group in enumerate(inside)
    ]
    badge = Badge(text="▲ DEAD_CHANNELS(5)", ink="warning")
    groups = (
        Group(key="both", title="both"),
        Group(key="left", title="both.left", parent="both"),
        Group(key="right", title="both.right", parent="both"),
        Group(key="wide", title="a title wider than what it holds", badges=(badge,)),
    )
    ends = [(0, 1), (2, 3), (1, 4), (3, 4), (4, 5), (5, 6), (6, 7), (4, 7)]
    return diagram(boxes, ends, groups=groups)


DRAWN = {
    "one": chain(1),
    "two": chain(2),
    "eight": tangle(8),
    "fourteen": tangle(14),
    "forty": tangle(40),
    "two hundred": tangle(200),
    "chain of sixty": chain(60),
    "fan of thirty": fan(30),
    "frames": framed(),
    "hostile": diagram(
        [Box(key=str(at), title=name, lines=(name,)) for at, name in enumerate(HOSTILE)],
        [*pairwise(range(len(HOSTILE))), (0, 5), (2, 9)],
    ),
}


def wanted_of(shown: Diagram) -> Wanted:
    """Return what is asked of a layout for a diagram, arrows without labels."""
    frames = {group.key: len(shown.boxes) + at for at, group in enumerate(shown.groups)}
    index = {box.key: at for at, box in enumerate(shown.boxes)}
    blocks = [Block(size=card(b).size, parent=frames.get(b.group or "")) for b in shown.boxes]
    blocks += (Block(frame=True, parent=frames.get(g.parent or "")) for g in shown.groups)
    links = (Link(source=index[a.source], target=index[a.target]) for a in shown.arrows)
    return Wanted(blocks=tuple(blocks), links=tuple(links))


def overlapping(found: Places, wanted: Wanted) -> list[tuple[int, int]]:
    """Return the boxes that stand on each other."""
    boxes = [
        (at, area) for at, area in enumerate(found.areas) if area and not wanted.blocks[at].frame
    ]
    return [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if _meet(one, other)]


def run_through(found: Places, wanted: Wanted) -> list[tuple[int, int]]:
    """Return the links that run through a box which is none of their ends."""
    return [
        (number, at)
        for number, (route, link) in enumerate(zip(found.routes, wanted.links, strict=True))
        for at, area in enumerate(found.areas)
        if area and not wanted.blocks[at].frame and at not in (link.source, link.target)
        if any(_cuts(area, *ends) for ends in pairwise(route.points))
    ]


def _meet(one: Area, other: Area) -> bool:
    apart_x = one.x + one.width <= other.x or other.x + other.width <= one.x
    apart_y = one.y + one.height <= other.y or other.y + other.height <= one.y
    return not (apart_x or apart_y)


def _cuts(area: Area, a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Return whether a line enters the inside of an area, as Liang and Barsky find it."""
    low, high, slack = 0.0, 1.0, 0.5
    for axis, begin, size in ((0, area.x, area.width), (1, area.y, area.height)):
        step = b[axis] - a[axis]
        near, far = begin + slack - a[axis], begin + size - slack - a[axis]
        if step == 0:
            if near > 0 or far < 0:
                return False
            continue
        first, last = sorted((near / step, far / step))
        low, high = max(low, first), min(high, last)
    return low < high


def crossings(lines: list[tuple[tuple[float, float], ...]]) -> int:
    """Return how often lines cross."""
    pieces = [piece for line in lines for piece in pairwise(line)]
    return sum(1 for one, other in combinations(pieces, 2) if _cross(one, other))


def _cross(one: tuple[tuple[float, float], ...], other: tuple[tuple[float, float], ...]) -> bool:
    (a, b), (c, d) = one, other
    return _side(a, b, c) * _side(a, b, d) < 0 and _side(c, d, a) * _side(c, d, b) < 0


def _side(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
