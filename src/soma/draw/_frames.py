"""The frames around boxes: which of them are drawn, how wide their titles are, their marks."""

from collections.abc import Iterator, Mapping

from soma.draw._badges import badge_marks, row_width, shown_badges
from soma.draw._cells import printable
from soma.draw._diagram import Diagram, Group
from soma.draw._marks import Mark, Rectangle, Text
from soma.draw._places import Area
from soma.draw._text_width import fitted, text_width

_SIZE, _MOST, _PAD = 11.0, 230.0, 12.0


def used_groups(diagram: Diagram) -> list[Group]:
    """Return the frames that hold a box, the outer ones first."""
    known = {group.key: group for group in diagram.groups}
    used: set[str] = set()
    for box in diagram.boxes:
        key = box.group
        while key is not None and key not in used:
            used.add(key)
            key = known[key].parent
    return sorted(
        (group for group in diagram.groups if group.key in used),
        key=lambda group: _depth(group, known),
    )


def header_width(group: Group) -> float:
    """Return how wide a frame must be for its title and badges."""
    badges = shown_badges(group.badges)
    room = row_width(badges) + 8 if badges else 0.0
    return text_width(_title(group), _SIZE, bold=True) + room + 2 * _PAD


def frame_marks(group: Group, area: Area) -> Iterator[Mark]:
    """Return the marks of a frame, which stand behind lines and boxes."""
    yield Rectangle(
        x=area.x,
        y=area.y,
        width=area.width,
        height=area.height,
        fill="group",
        stroke="warning" if group.badges else "grid",
        radius=12,
        title=group.tooltip or None,
        key=group.key,
    )


def header_marks(group: Group, area: Area) -> Iterator[Mark]:
    """Return the marks of a frame's title; lines from above pass behind its words."""
    title = _title(group)
    wide = text_width(title, _SIZE, bold=True)
    whole = "\n".join(text for text in (group.title, group.tooltip) if text)
    yield Rectangle(
        x=area.x + _PAD - 3,
        y=area.y + 5,
        width=header_width(group) - 2 * _PAD + 6,
        height=17,
        fill="group",
        radius=4,
        title=whole,
        key=group.key,
    )
    x, y = area.x + _PAD, area.y + 17
    yield Text(x=x, y=y, text=title, size=_SIZE, ink="muted", bold=True, key=group.key)
    yield from badge_marks(shown_badges(group.badges), x + wide + 8, area.y + 5, group.key)


def _title(group: Group) -> str:
    return fitted(printable(group.title), _SIZE, _MOST, bold=True)


def _depth(group: Group, known: Mapping[str, Group]) -> int:
    depth = 0
    while group.parent is not None:
        group, depth = known[group.parent], depth + 1
    return depth
