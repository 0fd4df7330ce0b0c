"""Draws a diagram: every label whole or shortened with care, no box upon another.

The size of a box comes from its words (`_cards.py`), its place from `_layout.py`.
"""

from collections.abc import Iterator

from soma.draw._cards import Card, border, card, card_marks
from soma.draw._cells import printable
from soma.draw._collapse import collapsed
from soma.draw._diagram import Arrow, Diagram, Group, Sample
from soma.draw._frames import frame_marks, header_marks, header_width, used_groups
from soma.draw._layout import places
from soma.draw._marks import Line, Mark, Picture, Rectangle, Text
from soma.draw._places import Area, Block, Link, Route, Size, Wanted
from soma.draw._text_width import fitted, text_width

_MARGIN = 20.0
_NARROWEST = 320.0
_HEADING, _WORDS, _LABEL = 15.0, 12.0, 10.5
_MOST_LABEL = 120.0


def diagram_picture(diagram: Diagram) -> Picture:
    """Return the picture of a diagram; over 800 boxes, of one that tells the same in fewer."""
    drawn = collapsed(diagram)
    cards = [card(box) for box in drawn.boxes]
    groups = used_groups(drawn)
    labels = [fitted(printable(a.label), _LABEL, _MOST_LABEL) for a in drawn.arrows]
    found = places(_wanted(drawn, cards, groups, labels))

    width = max(found.width, _NARROWEST)
    marks: list[Mark] = list(_heading(drawn, width))
    x = _MARGIN
    y = _MARGIN + 22 * bool(drawn.title) + 18 * bool(drawn.subtitle) + 12 * bool(marks)
    areas = [area and _moved(area, x, y) for area in found.areas]
    frames = [(g, a) for g, a in zip(groups, areas[len(cards) :], strict=True) if a]
    for group, inside in frames:
        marks += frame_marks(group, inside)
    marks += (
        _line(arrow, route, x, y) for arrow, route in zip(drawn.arrows, found.routes, strict=True)
    )
    for group, inside in frames:
        marks += header_marks(group, inside)
    for shown, area in zip(cards, areas[: len(cards)], strict=True):
        assert area
        marks += card_marks(shown, area)
    for arrow, route, label in zip(drawn.arrows, found.routes, labels, strict=True):
        marks += _label(arrow, route, label, x, y)
    bottom = y + found.height
    legend = list(_legend(drawn.legend, bottom + 34, _MARGIN + width))
    marks += legend
    low = max((mark.y for mark in legend if isinstance(mark, Text)), default=bottom) + _MARGIN
    return Picture(
        width=width + 2 * _MARGIN,
        height=low,
        marks=tuple(marks),
        title=diagram.title,
        description=_description(diagram, drawn),
    )


def _wanted(diagram: Diagram, cards: list[Card], groups: list[Group], labels: list[str]) -> Wanted:
    index = {shown.box.key: at for at, shown in enumerate(cards)}
    frame = {group.key: at for at, group in enumerate(groups, start=len(cards))}
    least = _least_widths(cards, groups)
    blocks = [
        Block(
            size=(max(shown.size[0], least.get(shown.box.key, 0.0)), shown.size[1]),
            parent=None if shown.box.group is None else frame[shown.box.group],
        )
        for shown in cards
    ]
    blocks += (
        Block(frame=True, parent=None if g.parent is None else frame[g.parent]) for g in groups
    )
    links = (
        Link(source=index[a.source], target=index[a.target], label=_label_size(label))
        for a, label in zip(diagram.arrows, labels, strict=True)
    )
    return Wanted(blocks=tuple(blocks), links=tuple(links))


def _least_widths(cards: list[Card], groups: list[Group]) -> dict[str, float]:
    """Return how wide the first box of each frame must be for the frame to fit its title."""
    known = {group.key: group for group in groups}
    least: dict[str, float] = {}
    seen: set[str] = set()
    for shown in cards:
        key = shown.box.group
        while key is not None and key not in seen:
            seen.add(key)
            wide = header_width(known[key]) - 24
            least[shown.box.key] = max(wide, least.get(shown.box.key, 0.0))
            key = known[key].parent
    return least


def _heading(diagram: Diagram, width: float) -> Iterator[Mark]:
    y = _MARGIN - 6.0
    if diagram.title:
        y += 20
        title = fitted(printable(diagram.title), _HEADING, width, bold=True)
        yield Text(x=_MARGIN, y=y, text=title, size=_HEADING, bold=True)
    if diagram.subtitle:
        y += 19
        said = fitted(printable(diagram.subtitle), _WORDS, width)
        yield Text(x=_MARGIN, y=y, text=said, size=_WORDS, ink="muted")


def _moved(area: Area, x: float, y: float) -> Area:
    return Area(x=area.x + x, y=area.y + y, width=area.width, height=area.height)


def _line(arrow: Arrow, route: Route, x: float, y: float) -> Line:
    return Line(
        points=tuple((px + x, py + y) for px, py in route.points),
        stroke=arrow.ink,
        thickness=1.25 if arrow.ink == "line" else 1.75,
        dashed=arrow.dashed,
        arrow=True,
        smooth=True,
        title=arrow.tooltip or None,
    )


def _label_size(label: str) -> Size | None:
    return (text_width(label, _LABEL) + 8, 16.0) if label else None


def _label(arrow: Arrow, route: Route, label: str, x: float, y: float) -> Iterator[Mark]:
    size = _label_size(label)
    if not size or not route.label:
        return
    (wide, high), cx, cy = size, route.label[0] + x, route.label[1] + y
    yield Rectangle(
        x=cx - wide / 2, y=cy - high / 2, width=wide, height=high, fill="page", radius=5
    )
    ink = "muted" if arrow.ink == "line" else arrow.ink
    yield Text(x=cx, y=cy + 3.8, text=label, size=_LABEL, ink=ink, anchor="middle")


def _legend(samples: tuple[Sample, ...], y: float, right: float) -> Iterator[Mark]:
    x = _MARGIN
    for sample in samples:
        wide = 30 + text_width(sample.text, 11)
        if x > _MARGIN and x + wide > right:
            x, y = _MARGIN, y + 20
        if sample.arrow:
            points = ((x, y - 4), (x + 24, y - 4))
            yield Line(
                points=points, stroke=sample.ink, thickness=1.5, dashed=sample.dashed, arrow=True
            )
        else:
            high = 10 if sample.small else 13
            yield Rectangle(
                x=x + 4,
                y=y - 4 - high / 2,
                width=18,
                height=high,
                fill="box",
                stroke=border(sample.ink),
                radius=5 if sample.small else 3,
                dashed=sample.dashed,
            )
            if sample.ink != "line":
                yield Rectangle(x=x + 7, y=y - 8, width=3, height=8, fill=sample.ink, radius=1.5)
        yield Text(x=x + 30, y=y, text=sample.text, size=11, ink="muted")
        x += wide + 18


def _description(whole: Diagram, drawn: Diagram) -> str:
    names = ", ".join(printable(box.title) for box in whole.boxes[:40])
    more = f" and {len(whole.boxes) - 40:,} more" if len(whole.boxes) > 40 else ""
    counts = f"{len(whole.boxes):,} boxes and {len(whole.arrows):,} arrows"
    subtitle = f"{drawn.subtitle}. " if drawn.subtitle else ""
    return f"{subtitle}{counts}: {names}{more}." if names else f"{subtitle}{counts}."
