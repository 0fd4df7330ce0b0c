"""From numbers to places: the range of an axis, and its ticks at round numbers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from soma.viz._chart import Axis, Panel
from soma.viz._durations import unit_of

_TICK_WIDTH = 64  # pixels of the x axis for each tick
_Y_TICKS = 5
_MINUS = "\N{MINUS SIGN}"
_HUGE = 1e300  # beyond it a range may not be a float any more
_TINY = 1e-300  # the same for a log scale
_LARGE = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True)
class Tick:
    """A round number on an axis."""

    value: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """An axis with its range and ticks."""

    axis: Axis
    low: float
    high: float
    ticks: tuple[Tick, ...]
    title: str
    unit: float = 1.0  # what its ticks count: of an axis of seconds, the seconds of a minute

    def place(self, value: float) -> float:
        """Return where a value stands: 0 is the low end, 1 the high one."""
        low, high = self.low, self.high
        if self.axis.kind == "log":
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return min(1.0, max(0.0, (clamped(value) - low) / (high - low)))


def x_scale(panel: Panel, width: float) -> Scale:
    """Return the scale of a panel's x axis that is `width` pixels long."""
    values = [value for line in panel.series for value in line.x]
    values += (end for group in panel.blocks for b in group.blocks for end in (b.start, b.end))
    return scaled(panel.x, values, max(2, int(width / _TICK_WIDTH)))


def y_scale(panel: Panel) -> Scale:
    """Return the scale of a panel's y axis, which ends at ticks."""
    values = [value for line in panel.series for value in line.y]
    return scaled(panel.y, values, _Y_TICKS, rounded=True)


def scaled(axis: Axis, values: Iterable[float], most: int, *, rounded: bool = False) -> Scale:
    """Return the scale that shows `values` with at most about `most` ticks.

    Args:
        rounded: let the axis end at ticks.
    """
    if axis.kind == "category":
        count = max(1, len(axis.categories))
        ticks = tuple(Tick(index, name) for index, name in enumerate(axis.categories))
        return Scale(axis=axis, low=-0.5, high=count - 0.5, ticks=ticks, title=axis.title)
    finite = [clamped(value) for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if axis.kind == "log":
        return _log(axis, low, high, most)
    if axis.kind == "seconds":
        return _seconds(axis, low, high, most)
    low, high = _apart(low, high, whole=axis.kind == "integer")
    step = _nice((high - low) / most, whole=axis.kind == "integer")
    while not rounded and not _multiples(low, high, step):  # between two round numbers
        step = _nice(step / 2.5, whole=axis.kind == "integer")
    if rounded:
        low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    ticks = tuple(Tick(value, number(value, step)) for value in _multiples(low, high, step))
    return Scale(axis=axis, low=low, high=high, ticks=ticks, title=axis.title)


def clamped(value: float) -> float:
    """Return a value that can be drawn."""
    return min(_HUGE, max(-_HUGE, value))


def number(value: float, step: float) -> str:
    """Return a tick's label, with the digits that tell it from its neighbours.

    >>> number(0.25, 0.05), number(20000.0, 5000.0), number(3e7, 1e7)
    ('0.25', '20k', '30M')
    """
    if abs(value) < step * 1e-6:
        return "0"
    places = _places(step)
    text = f"{value:.{places}f}"
    if places > 4 or abs(value) >= 1e12:
        figures = math.floor(math.log10(abs(value))) + places if places else 3
        mantissa, exponent = f"{value:.{min(15, max(0, figures))}e}".split("e")
        text = f"{_bare(mantissa)}e{int(exponent)}"
    elif step >= 1000 or abs(value) >= 10_000:
        size, sign = next((size, sign) for size, sign in _LARGE if abs(value) >= size)
        if step >= size / 100:
            text = f"{_bare(f'{value / size:.2f}')}{sign}"
    return text.replace("-", _MINUS)


def _places(step: float) -> int:
    return max(0, -math.floor(math.log10(step) + 1e-9))


def _bare(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _apart(low: float, high: float, *, whole: bool) -> tuple[float, float]:
    """Return a range that has a width a float can tell."""
    least = max(abs(low), abs(high)) * 1e-9
    if high - low > max(least, 1e-300):
        return low, high
    around = 0.5 if whole or low == 0 else abs(low) * 0.05 or 0.5
    around = max(around, 1e-290)
    return low - around, high + around


def _nice(rough: float, *, whole: bool = False) -> float:
    """Return the next of 1, 2, 5, 10, 20, 50 and so on."""
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((power * part for part in (1, 2, 5) if rough <= power * part * 1.0001), power * 10)
    return max(1.0, step) if whole else step


def _multiples(low: float, high: float, step: float) -> list[float]:
    first = math.ceil(low / step - 1e-6)
    last = math.floor(high / step + 1e-6)
    return [index * step for index in range(first, last + 1)]


def _seconds(axis: Axis, low: float, high: float, most: int) -> Scale:
    low = min(low, 0.0)
    high = high if high > low else low + 1.0
    unit = unit_of(high)
    step = _nice((high - low) / unit.seconds / most)
    ticks = tuple(
        Tick(amount * unit.seconds, number(amount, step))
        for amount in _multiples(low / unit.seconds, high / unit.seconds, step)
    )
    title = f"{axis.title} ({unit.name})"
    return Scale(axis=axis, low=low, high=high, ticks=ticks, title=title, unit=unit.seconds)


def _log(axis: Axis, low: float, high: float, most: int) -> Scale:
    first = math.floor(math.log10(max(low, _TINY)) + 1e-9)
    last = max(first + 1, math.ceil(math.log10(high) - 1e-9))
    every = max(1, math.ceil((last - first) / most))
    ticks = tuple(Tick(10.0**power, _power(power)) for power in range(first, last + 1, every))
    return Scale(axis=axis, low=10.0**first, high=10.0**last, ticks=ticks, title=axis.title)


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -4 < power < 4 else f"1e{power}".replace("-", _MINUS)
