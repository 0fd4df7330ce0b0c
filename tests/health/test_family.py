"""Who is inside whom, and who was called after whom."""

import pytest

from soma.health import Unit
from soma.health._family import Family
from tests.health.hand import unit

CONTAINERS_FIRST = ("net", "net/a", "net/a.0", "net/a.1", "net/b", "net/b.0")
CONTAINERS_LAST = ("net/a.0", "net/a.1", "net/a", "net/b.0", "net/b", "net")


def family(ids: tuple[str, ...], **trainable: int) -> Family:
    """Return units called in this order."""
    units: list[Unit] = [unit(id, at, **trainable) for at, id in enumerate(ids)]
    return Family({one.id: one for one in units})


@pytest.mark.parametrize("ids", [CONTAINERS_FIRST, CONTAINERS_LAST])
def test_before_is_the_innermost_unit_that_ran_last(ids: tuple[str, ...]) -> None:
    """Whether containers count from their start or from their end."""
    found = family(ids)

    assert [one and one.id for one in map(found.before, ("net/b", "net/b.0", "net/a.0"))] == [
        "net/a.1",
        "net/a.1",
        None,
    ]


def test_above_is_nearest_first() -> None:
    """A place without a unit is passed over."""
    found = family((*CONTAINERS_FIRST, "net/c.d.e"))

    assert [one.id for one in found.above("net/a.0")] == ["net/a", "net"]
    assert [one.id for one in found.above("net/c.d.e")] == ["net"]


def test_a_name_that_only_begins_alike_is_not_inside() -> None:
    """`a1` is no part of `a`."""
    found = family(("net", "net/a", "net/a1"))

    assert [one.id for one in found.inside("net", "a")] == ["net/a"]


def test_parameters_are_judged_at_the_innermost_units() -> None:
    """Containers of trainable units hold none of their own."""
    assert family(CONTAINERS_FIRST).holders == {"net/a.0", "net/a.1", "net/b.0"}


def test_a_container_joins_when_all_its_holders_are_in() -> None:
    """Each unit is mapped to the outermost container that is in as a whole."""
    assert family(CONTAINERS_FIRST).outward(["net/a.0", "net/a.1"]) == {
        "net/a": None,
        "net/a.0": "net/a",
        "net/a.1": "net/a",
    }
