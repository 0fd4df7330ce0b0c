"""What a file of `sections/` gives: one part of the page."""

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of a report, under a heading of its own."""

    key: str  # its address in the page
    title: str
    body: Markup
    count: str = ""  # beside the title: `12 nodes`
    left_out: tuple[str, ...] = ()  # sentences for the foot: what was thinned, and to what
