"""What is recalled of a filter is what a fresh look would find."""

import pytest

from soma import Filter
from soma.cache import Glance, Moment, Recall, identity


class Scale(Filter):
    """A filter of plain values."""

    def forward(self, x, state=None):
        return x * self.by


class Listing(Filter):
    """A filter with a value that changes in place."""

    def forward(self, x, state=None):
        return [*x, *self.more]


class Slotted(Filter):
    """A filter with an attribute that `vars` does not show."""

    __slots__ = ("by",)

    def forward(self, x, state=None):
        return x * self.by


@pytest.mark.parametrize("value", [3, 2.0, True, "2", None, [2]])
def test_another_attribute_is_seen(value: object) -> None:
    """An attribute set after a look counts at the next one, whatever its type."""
    filter = Scale(by=2)
    recall = Recall(filter)
    before = recall.identity(Moment()).digest
    filter.by = value

    assert recall.identity(Moment()).digest == identity(filter).digest != before


def test_what_changes_in_place_is_looked_at_each_time() -> None:
    """An item appended to a list in a configuration is seen."""
    filter = Listing(more=[1])
    recall = Recall(filter)
    before = recall.identity(Moment()).digest
    filter.more.append(2)

    assert recall.identity(Moment()).digest == identity(filter).digest != before


def test_slots_are_looked_at_each_time() -> None:
    """A value in a slot counts, though it is not in `vars`."""
    filter = Slotted(by=2)
    recall = Recall(filter)
    before = recall.identity(Moment()).digest
    filter.by = 3

    assert recall.identity(Moment()).digest == identity(filter).digest != before


def test_a_version_that_changes_in_place_is_looked_at_each_time() -> None:
    """`_cache_version` counts, although its name is private."""
    filter = Scale(by=2)
    filter._cache_version = ["a"]  # type: ignore[assignment]
    recall = Recall(filter)
    before = recall.identity(Moment()).digest
    filter._cache_version.append("b")  # type: ignore[union-attr]

    assert recall.identity(Moment()).digest == identity(filter).digest != before


def test_edited_code_is_seen_in_the_next_run() -> None:
    """A method replaced between two runs counts in the second."""

    class Edited(Filter):
        def forward(self, x, state=None):
            return x * self.by

    filter = Edited(by=2)
    recall = Recall(filter)
    before = recall.identity(Moment()).digest
    Edited.forward = lambda self, x, state=None: x + self.by

    assert recall.identity(Moment()).digest == identity(filter).digest != before


def test_nothing_is_read_again_while_nothing_changes() -> None:
    """The same answer object comes back for a filter of plain values."""
    recall = Recall(Scale(by=2))

    assert recall.identity(Moment()) is recall.identity(Moment())


def test_a_glance_holds_while_nothing_changes() -> None:
    """An attribute that is set again, and be it to an equal value, ends a glance."""
    filter = Scale(by=2)
    identity(filter)
    glance = Glance([filter, Scale(by=1)], Moment())
    held = glance.holds(Moment())
    filter.by = 2.0

    assert (held, glance.holds(Moment())) == (True, False)


def test_a_glance_sees_an_attribute_that_moves() -> None:
    """What one filter has lost and the next one has got is told apart from no change."""
    one, two = Scale(by=1), Scale()
    one.more = 5
    identity(one)
    glance = Glance([one, two], Moment())
    held = glance.holds(Moment())
    rest = dict(vars(two))
    vars(two).clear()
    vars(two).update(more=vars(one).pop("more"), **rest)

    assert (held, glance.holds(Moment())) == (True, False)
