"""Writes a picture down as one piece of SVG that needs nothing from outside.

It carries its own colours for a light and for a dark page. Names it shows are hostile until
they have passed `_said`; there is no other way into the text.
"""

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2s
from html import escape
from itertools import groupby
from typing import get_args

from soma.draw._cells import printable
from soma.draw._inks import INKS
from soma.draw._marks import Dot, Ink, Line, Mark, Picture, Rectangle, Text
from soma.draw._strokes import head, path, place, shortened_for_head

_FONT = (
    "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,"
    "'Noto Sans','DejaVu Sans',sans-serif"
)
# What says that a page is dark, whatever the machine prefers: our report, JupyterLab, VS Code.
_DARK = '[data-theme="dark"],[data-jp-theme-light="false"],.vscode-dark'
_LIGHT = '[data-theme="light"],[data-jp-theme-light="true"],.vscode-light'
_NO_CHARACTER = re.compile("[\ufffe\uffff]")


def svg(picture: Picture) -> str:
    """Return `picture` as an SVG element, well-formed XML and the same for the same picture."""
    body = "".join(_marks(picture.marks))
    words = f"{_said(picture.title)}\n{_said(picture.description)}"
    width, height = place(picture.width), place(picture.height)
    content = f"{words}\n{width} {height}\n{body}"
    name = "s" + blake2s(content.encode(), digest_size=6).hexdigest()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{name}" class="soma-picture" role="img"'
        f' aria-labelledby="{name}-t {name}-d" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" style="max-width:100%;height:auto">'
        f'<title id="{name}-t">{_said(picture.title)}</title>'
        f'<desc id="{name}-d">{_said(picture.description)}</desc>'
        f"<style>{_style(name, body)}</style>{body}</svg>"
    )


def _said(text: str) -> str:
    lines = (printable(line) for line in text.split("\n"))
    return escape(_NO_CHARACTER.sub("", "\n".join(lines)))


def _style(name: str, body: str) -> str:
    """Return the rules for the inks that `body` uses, and for nothing outside of this SVG."""
    fills = [ink for ink in get_args(Ink) if f'"f-{ink}' in body]
    strokes = [ink for ink in get_args(Ink) if f"s-{ink}" in body]
    used = [ink for ink in INKS if ink in {*fills, *strokes, "page"}]
    light = ";".join(f"--{ink}:{INKS[ink].light}" for ink in used)
    dark = ";".join(f"--{ink}:{INKS[ink].dark}" for ink in used)
    rules = [
        f"#{name}{{{light};background:var(--page);font-family:{_FONT}}}",
        f"@media(prefers-color-scheme:dark){{#{name}{{{dark}}}}}",
        f":is({_DARK}) #{name}{{{dark}}}",
        f":is({_LIGHT}) #{name}{{{light}}}",
        f"#{name} path{{fill:none;stroke-linecap:round;stroke-linejoin:round}}",
        f"#{name} .b{{font-weight:600}}",
        f"#{name} .hit{{stroke:transparent;stroke-width:12;pointer-events:stroke}}",
    ]
    # The plain colour is for programs that draw SVG and know no custom properties.
    rules += (f"#{name} .f-{i}{{fill:{INKS[i].light};fill:var(--{i})}}" for i in fills)
    rules += (f"#{name} .s-{i}{{stroke:{INKS[i].light};stroke:var(--{i})}}" for i in strokes)
    return "".join(rules)


def _marks(marks: Iterable[Mark]) -> Iterator[str]:
    for key, run in groupby(marks, _key):
        if key is None:
            yield from (_mark(mark) for mark in run)
            continue
        together = list(run)
        titles = [mark.title for mark in together if isinstance(mark, Rectangle) and mark.title]
        said = titles[0] if titles else None
        yield f'<g data-node="{_said(key)}">{_title(said)}'
        yield from (_mark(mark, said=said) for mark in together)
        yield "</g>"


def _key(mark: Mark) -> str | None:
    return mark.key if isinstance(mark, Rectangle | Text) else None


def _mark(mark: Mark, *, said: str | None = None) -> str:
    match mark:
        case Rectangle():
            return _rectangle(mark, None if mark.title == said else mark.title)
        case Line():
            return _line(mark)
        case Text():
            return _text(mark)
        case Dot():
            where = f'cx="{place(mark.x)}" cy="{place(mark.y)}" r="{place(mark.radius)}"'
            return f'<circle class="f-{mark.fill}" {where}>{_title(mark.title)}</circle>'


def _title(text: str | None) -> str:
    return f"<title>{_said(text)}</title>" if text else ""


def _rectangle(mark: Rectangle, title: str | None) -> str:
    classes = [f"f-{mark.fill}"] if mark.fill else []
    extra = "" if mark.fill else ' fill="none"'
    if mark.stroke:
        classes.append(f"s-{mark.stroke}")
        extra += _width(mark.thickness) + (' stroke-dasharray="5 4"' if mark.dashed else "")
    if mark.radius:
        extra += f' rx="{place(mark.radius)}"'
    if mark.opacity != 1:
        extra += f' opacity="{mark.opacity:g}"'
    where = f'x="{place(mark.x)}" y="{place(mark.y)}"'
    size = f'width="{place(mark.width)}" height="{place(mark.height)}"'
    return f'<rect class="{" ".join(classes)}" {where} {size}{extra}>{_title(title)}</rect>'


def _line(mark: Line) -> str:
    if len(mark.points) < 2:
        return ""
    points = shortened_for_head(mark.points) if mark.arrow else mark.points
    way = path(points, smooth=mark.smooth)
    extra = _width(mark.thickness) + (' stroke-dasharray="5 4"' if mark.dashed else "")
    drawn = f'<path class="s-{mark.stroke}" d="{way}"{extra}/>'
    if mark.arrow:
        drawn += f'<polygon class="f-{mark.stroke}" points="{head(mark.points)}"/>'
    if mark.title is None:
        return drawn
    return f'<g>{_title(mark.title)}<path class="hit" d="{way}"/>{drawn}</g>'


def _width(thickness: float) -> str:
    return "" if thickness == 1 else f' stroke-width="{thickness:g}"'


def _text(mark: Text) -> str:
    extra = "" if mark.anchor == "start" else f' text-anchor="{mark.anchor}"'
    x, y = place(mark.x), place(mark.y)
    bold = " b" if mark.bold else ""
    where = f'x="{x}" y="{y}" font-size="{mark.size:g}"'
    return f'<text class="f-{mark.ink}{bold}" {where}{extra}>{_said(mark.text)}</text>'
