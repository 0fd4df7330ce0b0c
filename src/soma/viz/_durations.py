"""Seconds, as people write them."""

from typing import NamedTuple


class Unit(NamedTuple):
    """A unit of time, and how many seconds it has."""

    name: str
    seconds: float


_UNITS = (
    Unit("µs", 1e-6),
    Unit("ms", 1e-3),
    Unit("s", 1.0),
    Unit("min", 60.0),
    Unit("h", 3600.0),
    Unit("days", 86400.0),
)
_FROM = (0.0, 1e-3, 1.0, 120.0, 7200.0, 172800.0)  # where a unit begins to read well


def unit_of(seconds: float) -> Unit:
    """Return the unit in which a time reads well."""
    return next(
        unit
        for unit, least in zip(reversed(_UNITS), reversed(_FROM), strict=True)
        if abs(seconds) >= least or least == 0.0
    )


def duration(seconds: float) -> str:
    """Return a time with three digits and its unit.

    >>> duration(0.01234), duration(75), duration(5000)
    ('12.3 ms', '75 s', '83.3 min')
    """
    if seconds == 0:
        return "0 s"
    unit = unit_of(seconds)
    amount = seconds / unit.seconds
    digits = 0 if abs(amount) >= 99.95 else 1 if abs(amount) >= 9.995 else 2
    text = f"{amount:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text} {unit.name}"
