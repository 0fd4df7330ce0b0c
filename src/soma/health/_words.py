"""Numbers and places as people read them, for the texts of findings."""

from collections.abc import Sequence

from soma.draw import printable, shortened
from soma.health._measurements import Unit

_LONGEST = 50  # characters of a name
_MOST = 6  # names or channels that a sentence lists before it counts


def number(value: float) -> str:
    """Return a number with two digits that count: `0.0021`, `1.7e-08`, `940`, `1.2e+06`."""
    if 100 <= abs(value) < 1e5:
        return str(round(value))
    return f"{value:.3g}" if 1 <= abs(value) < 100 else f"{value:.2g}"


def percent(share: float) -> str:
    """Return a share as whole percents; what is not all is never 100 %."""
    whole = min(round(100 * share), 99) if share < 1 else 100
    return f"{whole} %" if whole or share == 0 else "under 1 %"


def several(count: int, what: str) -> str:
    """Return `1 step` or `3 steps`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def ranges(channels: Sequence[int]) -> str:
    """Return channels as `3, 8-11 and 20`, cut after a few."""
    runs: list[list[int]] = []
    for one in sorted(channels):
        if runs and one == runs[-1][-1] + 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    shown = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return listed(shown, "range")


def listed(names: Sequence[str], what: str) -> str:
    """Return `a, b and c`, cut after a few."""
    shown = list(names)
    if len(shown) > _MOST:
        shown[_MOST - 1 :] = [several(len(shown) - _MOST + 1, f"more {what}")]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def ticked(name: str) -> str:
    """Return a name in backticks, printable and not too long, whatever it holds."""
    return f"`{shortened(printable(name), _LONGEST)}`"


def quoted(units: Sequence[Unit]) -> str:
    """Return the ids of units, each in backticks, cut after a few."""
    return listed([ticked(one.id) for one in units], "module")


def named(unit: Unit) -> str:
    """Return a unit's class and where it is written: `Encoder` (model.py:42)."""
    return place(unit.class_name, unit.source)


def place(class_name: str, source: str) -> str:
    """Return a class and where it is written: `Encoder` (model.py:42)."""
    where = f" ({shortened(printable(source), _LONGEST)})" if source else ""
    return f"{ticked(class_name)}{where}"
