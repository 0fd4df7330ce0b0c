"""Makes a huge diagram small enough to be drawn and read, and says that it did.

First chains become one box each, then frames do, then whole layers.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from soma.draw._diagram import Arrow, Badge, Box, Diagram
from soma.draw._layout_plain import ranks, slots
from soma.draw._marks import Ink
from soma.draw._places import Block, Link, Wanted

MOST_BOXES = 800
_MOST_ARROWS = 2400
_MOST_SLOTS = 3600  # of lines that pass layers
_FEW_SLOTS = 600  # where one box stands for layers, a web of arrows says nothing more
_MOST_LAYERS = 100
_SHORTEST_CHAIN = 3
_WORST: tuple[Ink, ...] = ("bad", "warning")


def collapsed(diagram: Diagram) -> Diagram:
    """Return `diagram` if it can be drawn box by box, else one with fewer boxes."""
    if _fits(diagram):
        return diagram
    smaller = _merged(diagram, _chains(diagram))
    if not _fits(smaller) and diagram.groups:
        smaller = _merged(diagram, _frames(diagram))
        smaller = smaller if _fits(smaller) else _merged(smaller, _chains(smaller))
    most = _MOST_LAYERS
    few = _MOST_SLOTS
    while not _fits(smaller, few) and most > 1:
        smaller = _merged(diagram, _layers(diagram, most))
        most, few = most // 2, _FEW_SLOTS
    said = f"collapsed from {len(diagram.boxes):,} boxes to {len(smaller.boxes):,}"
    subtitle = f"{diagram.subtitle} · {said}" if diagram.subtitle else said
    return replace(smaller, subtitle=subtitle)


def _fits(diagram: Diagram, most_slots: int = _MOST_SLOTS) -> bool:
    if len(diagram.boxes) > MOST_BOXES or len(diagram.arrows) > _MOST_ARROWS:
        return False
    return slots(_wanted(diagram)) <= most_slots


def _wanted(diagram: Diagram) -> Wanted:
    """Return the diagram as a layout sees it, without sizes."""
    index = {box.key: at for at, box in enumerate(diagram.boxes)}
    links = (Link(source=index[a.source], target=index[a.target]) for a in diagram.arrows)
    return Wanted(blocks=(Block(),) * len(index), links=tuple(links))


class _Parts(NamedTuple):
    """Which boxes become one: those that go into the same part."""

    of: dict[str, str]  # a box's key -> the name of its part; a box without one stays
    words: Callable[[str], tuple[str, ...]]  # what to write on a part


def _chains(diagram: Diagram) -> _Parts:
    before: dict[str, list[str]] = {box.key: [] for box in diagram.boxes}
    after: dict[str, list[str]] = {box.key: [] for box in diagram.boxes}
    for arrow in diagram.arrows:
        before[arrow.target].append(arrow.source)
        after[arrow.source].append(arrow.target)
    boxes = {box.key: box for box in diagram.boxes}
    inner = {key for key in boxes if len(before[key]) == len(after[key]) == 1}
    parts: dict[str, str] = {}
    for key in boxes:
        if key not in inner or (before[key][0] in inner and before[key][0] != key):
            continue  # not where a chain begins
        run = [key]
        while (following := after[run[-1]][0]) in inner and following != key:
            run.append(following)
        for at, group in _same([boxes[each].group for each in run]):
            if len(group) >= _SHORTEST_CHAIN:
                parts |= dict.fromkeys(run[at : at + len(group)], run[at])
    return _Parts(parts, lambda part: ())


def _same(values: Sequence[str | None]) -> Iterable[tuple[int, Sequence[str | None]]]:
    begin = 0
    for at in range(1, len(values) + 1):
        if at == len(values) or values[at] != values[begin]:
            yield begin, values[begin:at]
            begin = at


def _frames(diagram: Diagram) -> _Parts:
    parents = {group.key: group.parent for group in diagram.groups}
    titles = {group.key: group.title for group in diagram.groups}

    def outermost(key: str) -> str:
        while parents[key] is not None:
            key = str(parents[key])
        return key

    parts = {box.key: outermost(box.group) for box in diagram.boxes if box.group is not None}
    return _Parts(parts, lambda part: (titles[part],))


def _layers(diagram: Diagram, most: int) -> _Parts:
    rank = ranks(_wanted(diagram))
    together = -(-(max(rank) + 1) // most)
    parts = {box.key: str(n // together) for box, n in zip(diagram.boxes, rank, strict=True)}

    def words(part: str) -> tuple[str, ...]:
        first = int(part) * together + 1
        last = first + together - 1
        return (f"layer {first}" if first == last else f"layers {first} to {last}",)

    return _Parts(parts, words)


def _merged(diagram: Diagram, how: _Parts) -> Diagram:
    parts, words = how
    members: dict[str, list[Box]] = {}
    for box in diagram.boxes:
        if box.key in parts:
            members.setdefault(parts[box.key], []).append(box)
    first = {part: boxes[0].key for part, boxes in members.items()}
    shown = {
        box.key: first[parts[box.key]] if box.key in parts else box.key for box in diagram.boxes
    }
    boxes = []
    for box in diagram.boxes:
        if box.key not in parts:
            boxes.append(box)
        elif shown[box.key] == box.key:
            part = parts[box.key]
            boxes.append(_together(members[part], words(part)))
    arrows: dict[tuple[str, str], Arrow] = {}
    for arrow in diagram.arrows:
        ends = (shown[arrow.source], shown[arrow.target])
        if ends[0] != ends[1] and (ends not in arrows or (arrow.dashed > arrows[ends].dashed)):
            arrows[ends] = replace(arrow, source=ends[0], target=ends[1])
    return replace(diagram, boxes=tuple(boxes), arrows=tuple(arrows.values()))


def _together(boxes: list[Box], words: tuple[str, ...]) -> Box:
    if len(boxes) == 1:
        return boxes[0]
    counts = Counter(badge for box in boxes for badge in box.badges)
    badges = [Badge(text=f"{n:,}\xd7 {badge.text}", ink=badge.ink) for badge, n in counts.items()]
    names = [box.title for box in boxes]
    more = [f"and {len(names) - 12:,} more"] if len(names) > 12 else []
    strokes = {box.stroke for box in boxes}
    groups = {box.group for box in boxes}
    return Box(
        key=boxes[0].key,
        title=f"{len(boxes):,} nodes",
        lines=(*words, f"{names[0]} … {names[-1]}"),
        badges=tuple(badges[:4]),
        stroke=next((ink for ink in _WORST if ink in strokes), "line"),
        tooltip="\n".join([*names[:12], *more]),
        group=groups.pop() if len(groups) == 1 else None,
    )
