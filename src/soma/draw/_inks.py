"""Which colour an ink is, on a light page and on a dark one.

Inks that write words keep a contrast of 4.5 to what they stand on, lines one of 3.
"""

from typing import NamedTuple

from soma.draw._marks import Ink


class Shade(NamedTuple):
    """One ink on either page."""

    light: str
    dark: str


INKS: dict[Ink, Shade] = {
    "text": Shade("#1b2330", "#e8ecf2"),
    "muted": Shade("#566172", "#a3aebd"),
    "line": Shade("#7e8a9a", "#74808f"),
    "grid": Shade("#e4e8ee", "#29323d"),
    "page": Shade("#ffffff", "#10151c"),
    "box": Shade("#ffffff", "#1a222c"),
    "group": Shade("#f4f6f9", "#151c25"),
    "accent": Shade("#2a5fd0", "#7fa9ff"),
    "good": Shade("#11703a", "#5fcf8b"),
    "cached": Shade("#0b6a80", "#56c5dd"),
    "warning": Shade("#8c5200", "#f0b24a"),
    "bad": Shade("#c0281d", "#ff8f85"),
    "series1": Shade("#2a5fd0", "#7fa9ff"),
    "series2": Shade("#c75b12", "#f2a065"),
    "series3": Shade("#1b8250", "#5fcf8b"),
    "series4": Shade("#b0328c", "#ee8fd2"),
    "series5": Shade("#0b7f96", "#56c5dd"),
    "series6": Shade("#7a4fc4", "#b79bf5"),
    "series7": Shade("#8a7100", "#dcc552"),
    "series8": Shade("#6b7583", "#a3aebd"),
}
