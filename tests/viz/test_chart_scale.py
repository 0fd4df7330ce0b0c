"""Axes: round ticks, whole steps, times in a unit that reads well, and no number too odd."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soma.viz._chart import Axis
from soma.viz._durations import duration
from soma.viz._scale import scaled
from soma.viz._thinned import thinned

numbers = st.floats(allow_nan=True, allow_infinity=True)


def labels(kind: str, *values: float, most: int = 5) -> list[str]:
    """Return the labels of the ticks of an axis over values."""
    axis = Axis(kind=kind)  # type: ignore[arg-type]
    return [tick.label for tick in scaled(axis, values, most, rounded=kind == "linear").ticks]


@pytest.mark.parametrize(
    ("kind", "ends", "ticks"),
    [
        ("linear", (0.13, 2.3), ["0", "0.5", "1.0", "1.5", "2.0", "2.5"]),
        ("linear", (-2000.0, 25000.0), ["-10k", "0", "10k", "20k", "30k"]),
        ("linear", (99_990.4, 100_009.0), ["99990", "99995", "100000", "100005", "100010"]),
        ("linear", (0.0, 3e-7), ["0", "1e-7", "2e-7", "3e-7"]),
        ("integer", (0, 3), ["0", "1", "2", "3"]),
        ("integer", (7, 7), ["7"]),
        ("log", (1e-9, 1e-3), ["1e-9", "1e-7", "1e-5", "0.001"]),
        ("seconds", (0.0, 0.004), ["0", "1", "2", "3", "4"]),
    ],
)
def test_ticks_are_round(kind: str, ends: tuple[float, float], ticks: list[str]) -> None:
    """Ticks are multiples of 1, 2 or 5 with just the digits that tell them apart."""
    assert [label.replace("\N{MINUS SIGN}", "-") for label in labels(kind, *ends)] == ticks


@given(low=st.integers(0, 10**7), many=st.integers(0, 10**7), most=st.integers(2, 12))
def test_steps_are_whole(low: int, many: int, most: int) -> None:
    """An axis of steps has ticks at integers only, about as many as asked for."""
    ticks = scaled(Axis(kind="integer"), (low, low + many), most).ticks

    assert all(float(tick.value).is_integer() for tick in ticks)
    assert 1 <= len(ticks) <= most + 1


@given(values=st.lists(numbers, max_size=6))
def test_any_numbers_have_a_scale(values: list[float]) -> None:
    """Whatever was logged, places lie between 0 and 1 and ticks are few."""
    scale = scaled(Axis(), values, 5, rounded=True)

    assert 1 <= len(scale.ticks) <= 8
    assert all(0 <= scale.place(value) <= 1 for value in values if math.isfinite(value))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (2.5e-6, "2.5 µs"),
        (0.0999, "99.9 ms"),
        (75.0, "75 s"),
        (3600.0, "60 min"),
        (200_000.0, "2.31 days"),
    ],
)
def test_durations_in_nice_units(seconds: float, text: str) -> None:
    """A time has three digits and the unit in which they read well."""
    assert duration(seconds) == text


@given(values=st.lists(numbers, max_size=400), most=st.integers(8, 60))
def test_thinning_keeps_the_peaks(values: list[float], most: int) -> None:
    """Fewer points are left, and among them the ends, the least and the greatest."""
    kept = [values[index] for index in thinned(values, most)]
    finite = [value for value in values if math.isfinite(value)]

    assert len(kept) <= most
    assert repr(kept[:1] + kept[-1:]) == repr(values[:1] + values[-1:])
    assert not finite or {min(finite), max(finite)} <= set(kept)
    assert len(finite) == len(values) or not all(map(math.isfinite, kept))


def test_the_largest_floats() -> None:
    """A range that is no float any more is drawn at the ends of what is one."""
    scale = scaled(Axis(), (-sys.float_info.max, sys.float_info.max), 5, rounded=True)

    assert (scale.place(-sys.float_info.max), scale.place(sys.float_info.max)) == (0.0, 1.0)


def test_a_log_scale_of_the_smallest_number() -> None:
    """What is nearly nothing stands at the low end."""
    scale = scaled(Axis(kind="log"), [5e-324, 1.0], 5)

    assert scale.place(5e-324) == 0
    assert scale.place(1.0) == 1
