"""Fills the templates of HTML in `templates/`; what is filled in is escaped."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from soma.draw import INKS

SIGNS = {
    "running": "▶",
    "completed": "✓",
    "failed": "✕",
    "interrupted": "■",
    "crashed": "!",
    "unreadable": "?",
}


def filled(template: str, **values: object) -> str:
    """Return a snippet with its style; it holds no script and asks for nothing."""
    return _template(template).render(inks=INKS, signs=SIGNS, **values)


def drawn(svg: str) -> Markup:
    """Mark what `soma.draw` has drawn, and escaped, as markup."""
    return Markup(svg)  # noqa: S704


@cache
def _template(name: str) -> Template:
    return Environment(
        loader=PackageLoader("soma.viz", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template(name)
