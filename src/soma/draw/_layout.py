"""Finds a place for every box and a way for every line that runs round the boxes.

The only file that knows graphlay. A long chain goes to `_layout_rows.py`; where graphlay is
missing or gives up, `_layout_plain.py` does it.
"""

from collections import Counter
from dataclasses import replace
from importlib import import_module
from typing import Any, Literal

from soma.draw._layout_plain import layers, plain_places, slots
from soma.draw._layout_rows import chain_order, row_places
from soma.draw._marks import Point
from soma.draw._places import Area, Places, Route, Wanted, from_origin, middle

Direction = Literal["leftright", "topbottom"]
_PAGE = 1100.0  # how wide a picture may be in a report without being scaled down
_SCREEN = 1400.0
_SOME, _MANY = 120, 300
_SOME_SLOTS, _MANY_SLOTS = 600, 2500
_GAPS: dict[Direction, dict[str, float]] = {
    "leftright": {"layer_gap": 38.0, "node_gap": 6.0},
    "topbottom": {"layer_gap": 30.0, "node_gap": 12.0},
}
_FRAME_PAD, _FRAME_TOP = 12.0, 34.0
_CROWDED = 8
_MOST_CROSSINGS = 250
_CLEAR = 6.0  # beside a box, for graphlay lets a line touch one by a hair
_SPACING = {
    "dummy_gap": 22.0,
    "port_gap": 12.0,
    "stub": 12.0,
    "edge_label_margin": 10.0,
    "compound_padding": 26.0,
}


def places(wanted: Wanted) -> Places:
    """Return the layout of `wanted` that reads best on a page, the same on every run."""
    if _crossings(wanted) > _MOST_CROSSINGS:
        return _without_frames(wanted)
    order = chain_order(wanted)
    if order is not None and sum(wanted.blocks[index].size[0] + 40 for index in order) > _PAGE:
        return row_places(wanted, order, _PAGE - 80)  # without margins and turns
    directions: tuple[Direction, ...] = ("leftright", "topbottom")
    if len(wanted.blocks) > _SOME or slots(wanted) > _SOME_SLOTS:
        directions = (_likely_direction(wanted),)
    try:
        drawn = [_layered(wanted, direction) for direction in directions]
    except BaseException as error:
        # What graphlay refuses is a ValueError; its panics are no `Exception` and have no home.
        refused = isinstance(error, ImportError | ValueError)
        if refused or type(error).__name__ == "PanicException":
            return plain_places(wanted)
        raise
    return min(drawn, key=lambda one: _cost(one.width, one.height))


def _crossings(wanted: Wanted) -> int:
    """Count the lines that lead out of a frame or into one: each bends the whole layout."""
    parents = [block.parent for block in wanted.blocks]
    return sum(parents[link.source] != parents[link.target] for link in wanted.links)


def _without_frames(wanted: Wanted) -> Places:
    """Return a layout of the boxes alone; frames that interleave so much say nothing."""
    shown = [index for index, block in enumerate(wanted.blocks) if not block.frame]
    new = {index: at for at, index in enumerate(shown)}
    blocks = tuple(replace(wanted.blocks[index], parent=None) for index in shown)
    links = tuple(
        replace(link, source=new[link.source], target=new[link.target]) for link in wanted.links
    )
    found = places(Wanted(blocks=blocks, links=links))
    areas: list[Area | None] = [None] * len(wanted.blocks)
    for index, area in zip(shown, found.areas, strict=True):
        areas[index] = area
    return replace(found, areas=tuple(areas))


def _cost(width: float, height: float) -> float:
    """Scaling down costs most, since it takes the words away; scrolling costs a little."""
    return 3 * max(0.0, width / _PAGE - 1) + height / _SCREEN


def _likely_direction(wanted: Wanted) -> Direction:
    rows = layers(wanted)
    deep, wide = len(rows), max(map(len, rows))
    down, across = _cost(wide * 150, deep * 90), _cost(deep * 190, wide * 75)
    return "topbottom" if down <= across else "leftright"


def _layered(wanted: Wanted, direction: Direction) -> Places:
    graphlay = import_module("graphlay")
    graph = graphlay.Graph()
    clear = (_CLEAR, 0.0) if direction == "topbottom" else (0.0, _CLEAR)
    for index, block in enumerate(wanted.blocks):
        parent = {} if block.parent is None else {"parent": block.parent}
        width, height = block.size[0] + 2 * clear[0], block.size[1] + 2 * clear[1]
        graph.node(index, width=width or 1, height=height or 1, **parent)
    for link in wanted.links:
        size = link.label and {"width": link.label[0], "height": link.label[1]}
        graph.edge(link.source, link.target, **({"label_size": size} if size else {}))
    options: dict[str, object] = {
        "direction": direction,
        "effort": "fast"
        if len(wanted.blocks) > _MANY or slots(wanted) > _MANY_SLOTS
        else "balanced",
        "spacing": {**_SPACING, **_GAPS[direction]},
    }
    if _crowding(wanted) > _CROWDED:  # so many lines at one box read better as one trunk
        options["routing"] = {"merge_edges": "both", "port_sides": "facing_only"}
    drawn = graphlay.layout(graph, options=options)
    areas = [_area(node) for node in drawn.nodes]
    areas = [
        area if block.frame else _within(area, *clear)
        for area, block in zip(areas, wanted.blocks, strict=True)
    ]
    return from_origin(
        _tight(wanted, areas),
        [
            _route(edge, areas[link.source], areas[link.target])
            for edge, link in zip(drawn.edges, wanted.links, strict=True)
        ],
        [link.label for link in wanted.links],
    )


def _crowding(wanted: Wanted) -> int:
    """Return how many lines at most meet at one side of a box."""
    leaving = Counter(link.source for link in wanted.links)
    entering = Counter(link.target for link in wanted.links)
    return max([0, *leaving.values(), *entering.values()])


def _tight(wanted: Wanted, areas: list[Area]) -> list[Area | None]:
    """Draw the frames in to what they hold; an inner frame comes after the one around it."""
    for index in reversed(range(len(areas))):
        if wanted.blocks[index].frame:
            held = [a for a, b in zip(areas, wanted.blocks, strict=True) if b.parent == index]
            loose = areas[index]
            left = max(loose.x, min(a.x for a in held) - _FRAME_PAD)
            top = max(loose.y, min(a.y for a in held) - _FRAME_TOP)
            right = min(loose.x + loose.width, max(a.x + a.width for a in held) + _FRAME_PAD)
            low = min(loose.y + loose.height, max(a.y + a.height for a in held) + _FRAME_PAD)
            areas[index] = Area(x=left, y=top, width=right - left, height=low - top)
    return list(areas)


def _area(node: dict[str, Any]) -> Area:
    (x, y), size = _point(node["center"]), node["size"]
    width, height = size["width"], size["height"]
    return Area(x=x - width / 2, y=y - height / 2, width=width, height=height)


def _within(area: Area, x: float, y: float) -> Area:
    return Area(x=area.x + x, y=area.y + y, width=area.width - 2 * x, height=area.height - 2 * y)


def _route(edge: dict[str, Any], source: Area, target: Area) -> Route:
    anchor = edge["label_anchor"]
    first, *between, last = (_point(point) for point in edge["points"])
    points = (_nearest(first, source), *between, _nearest(last, target))
    return Route(points=points, label=_point(anchor) if anchor else middle(points))


def _nearest(point: Point, area: Area) -> Point:
    x, y = point
    return (min(max(x, area.x), area.x + area.width), min(max(y, area.y), area.y + area.height))


def _point(point: dict[str, float]) -> Point:
    return (point["x"], point["y"])
