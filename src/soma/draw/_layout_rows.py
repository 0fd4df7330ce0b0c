"""A long chain in rows that are all read from left to right, as the lines of a text are."""

from itertools import accumulate

from soma.draw._marks import Point
from soma.draw._places import Area, Places, Route, Size, Wanted, from_origin, middle

_GAP = 36.0
_ROW_GAP = 40.0


def chain_order(wanted: Wanted) -> list[int] | None:
    """Return the blocks in their order when they are one chain without frames, else `None`."""
    after = {link.source: link.target for link in wanted.links}
    ends = set(after.values())
    starts = [index for index in range(len(wanted.blocks)) if index not in ends]
    framed = any(block.parent is not None or block.frame for block in wanted.blocks)
    if framed or len(starts) != 1 or len(wanted.links) != len(wanted.blocks) - 1:
        return None
    order = starts
    while order[-1] in after and len(order) <= len(after):
        order.append(after[order[-1]])
    return order if len(order) == len(wanted.blocks) else None


def row_places(wanted: Wanted, order: list[int], most: float) -> Places:
    """Return the layout of a chain in as few rows as fit, in columns under each other."""
    labels = [link.label for link in wanted.links if link.label]
    gap = max([_GAP, *(width + 28 for width, _ in labels)])
    sizes = [wanted.blocks[index].size for index in order]
    columns = _columns(sizes, gap, most)
    widths = [max(size[0] for size in sizes[at::columns]) for at in range(columns)]
    lefts = [0.0, *accumulate(width + gap for width in widths)]
    rows = [sizes[at : at + columns] for at in range(0, len(sizes), columns)]
    heights = [max(size[1] for size in row) for row in rows]
    tops = [0.0, *accumulate(height + _ROW_GAP for height in heights)]

    areas: list[Area | None] = [None] * len(order)
    for at, index in enumerate(order):
        row, column = divmod(at, columns)
        height = sizes[at][1]
        y = tops[row] + (heights[row] - height) / 2
        areas[index] = Area(x=lefts[column], y=y, width=widths[column], height=height)

    place = {index: at for at, index in enumerate(order)}
    routes = []
    for link in wanted.links:
        source, target = areas[link.source], areas[link.target]
        assert source
        assert target
        turn = tops[place[link.target] // columns] - _ROW_GAP / 2
        points = _way(source, target, turn, lefts[-1] - gap + 16)
        routes.append(Route(points=points, label=middle(points) if link.label else None))
    return from_origin(areas, routes, [link.label for link in wanted.links])


def _columns(sizes: list[Size], gap: float, most: float) -> int:
    for columns in range(len(sizes), 1, -1):
        widths = (max(size[0] for size in sizes[at::columns]) for at in range(columns))
        if sum(widths) + gap * (columns - 1) <= most:
            rows = -(-len(sizes) // columns)
            return -(-len(sizes) // rows)  # rows of like length
    return 1


def _way(source: Area, target: Area, turn: float, edge: float) -> tuple[Point, ...]:
    start = (source.x + source.width, source.y + source.height / 2)
    end = (target.x, target.y + target.height / 2)
    if target.x > source.x:
        return (start, end)
    out, back = (max(edge, start[0] + 8), start[1]), (end[0] - 16, end[1])
    return (start, out, (out[0], turn), (back[0], turn), back, end)
