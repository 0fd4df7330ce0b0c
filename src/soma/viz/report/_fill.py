"""Fills the templates of the report: the one way by which a name gets into the page.

Every value loses its control characters, its bidi marks and half of a surrogate pair, and is
escaped; only what `soma.draw` has drawn, and escaped, comes in as markup.
"""

import re
from collections.abc import Mapping
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from soma.draw import INKS, printable
from soma.viz._chart import Chart
from soma.viz._figure import Figure
from soma.viz._templates import SIGNS

WIDE = 1196.0  # of the page
WIDTHS = {"wide": WIDE, "middle": 720.0, "narrow": 356.0}
ONE = {"wide": WIDE}
_WIDE = re.compile(r' width="([\d.]+)"')


def fill(template: str, **values: object) -> Markup:
    """Return a template with values in it, as markup."""
    text = _environment().get_template(template).render(inks=INKS, signs=SIGNS, **values)
    return Markup(text)  # noqa: S704 - the templates are ours, and escape what they are given


def picture(svg: str) -> Markup:
    """Return what `soma.draw` has drawn, in a frame that scrolls where the page is narrow."""
    found = _WIDE.search(svg)
    width = float(found[1]) if found else 0.0
    return fill("picture.jinja", svg=Markup(svg), width=f"{width:g}")  # noqa: S704


def figure(key: str, chart: Chart, *, widths: Mapping[str, float] = WIDTHS) -> Markup:
    """Return a chart in a card, drawn for some widths of the page; it shows the one that fits.

    Args:
        key: by which Plotly finds it.
        widths: `wide`, `middle` and `narrow` in pixels; of one alone, a narrow page scrolls.
    """
    drawn = {name: picture(Figure(chart).to_svg(width=wide)) for name, wide in widths.items()}
    return fill("figure.jinja", key=key, drawings=drawn)


def clean(value: object) -> object:
    """Return a text without what moves the cursor or turns a line round; others as they are."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return "\n".join(map(printable, value.split("\n")))
    return value


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("soma.viz.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
