"""One box of a diagram: how much room its words take, and the marks that show them."""

from collections.abc import Iterator
from dataclasses import dataclass

from soma.draw._badges import BADGE_HEIGHT, badge_marks, badge_rows, row_width
from soma.draw._cells import one_line
from soma.draw._diagram import Badge, Box
from soma.draw._marks import Ink, Mark, Rectangle, Text
from soma.draw._places import Area, Size
from soma.draw._text_width import fitted, text_width

_MOST = 230.0  # a wider word is shortened in its middle
_TITLE, _LINE = 13.0, 11.0
_PAD, _BAR = 12.0, 5.0
_SMALL_HEIGHT = 24.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The words of one box as they are shown, and their room."""

    box: Box
    title: str
    lines: tuple[str, ...]
    badges: tuple[tuple[Badge, ...], ...]  # in rows
    size: Size
    tooltip: str | None

    @property
    def small(self) -> bool:
        """Whether it is drawn as an operation."""
        return self.box.small and not self.badges


def card(box: Box) -> Card:
    """Return what is shown of `box`."""
    whole = [one_line(text) for text in (box.title, *box.lines)]
    title = fitted(whole[0] or "(no name)", _TITLE, _MOST, bold=True)
    lines = tuple(fitted(line, _LINE, _MOST) for line in whole[1:])
    badges = tuple(badge_rows(box.badges, _MOST))
    tooltip = box.tooltip
    if (title, *lines) != tuple(whole) and whole[0] not in tooltip:
        tooltip = "\n".join([*whole, *([tooltip] if tooltip else [])])
    if box.small and not badges:
        size = (text_width(title, _LINE) + 24, _SMALL_HEIGHT)
    else:
        widths = [text_width(title, _TITLE, bold=True)]
        widths += (text_width(line, _LINE) for line in lines)
        widths += (row_width(row) for row in badges)
        height = 30 + 15 * len(lines) + (BADGE_HEIGHT + 4) * len(badges) + 2 * bool(badges)
        size = (max(64.0, max(widths) + 2 * _PAD + _inset(box)), height)
    return Card(
        box=box, title=title, lines=lines, badges=badges, size=size, tooltip=tooltip or None
    )


def card_marks(shown: Card, area: Area) -> Iterator[Mark]:
    """Return the marks of a card at its place."""
    box, key = shown.box, shown.box.key
    marked = box.stroke != "line"
    yield Rectangle(
        x=area.x,
        y=area.y,
        width=area.width,
        height=area.height,
        fill="box",
        stroke=border(box.stroke),
        thickness=1.5 if border(box.stroke) != "line" else 1,
        radius=_SMALL_HEIGHT / 2 if shown.small else 8,
        dashed=box.dashed,
        title=shown.tooltip,
        key=key,
    )
    if shown.small:
        x, y = area.x + area.width / 2, area.y + area.height / 2 + 4
        yield Text(x=x, y=y, text=shown.title, size=_LINE, anchor="middle", key=key)
        return
    if marked:
        yield Rectangle(
            x=area.x + 6,
            y=area.y + 9,
            width=3,
            height=area.height - 18,
            fill=box.stroke,
            radius=1.5,
            key=key,
        )
    left, y = area.x + _PAD + _inset(box), area.y + 20
    yield Text(x=left, y=y, text=shown.title, size=_TITLE, bold=True, key=key)
    for line in shown.lines:
        y += 15
        yield Text(x=left, y=y, text=line, size=_LINE, ink="muted", key=key)
    y += 9
    for row in shown.badges:
        yield from badge_marks(row, left, y, key)
        y += BADGE_HEIGHT + 4


def border(stroke: Ink) -> Ink:
    """Return the ink around a box; what is well shows its colour on the bar alone."""
    return "line" if stroke == "accent" else stroke


def _inset(box: Box) -> float:
    return _BAR if box.stroke != "line" else 0.0
