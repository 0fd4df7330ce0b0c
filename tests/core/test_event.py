"""Who listens, in which order, and until when."""

from contextlib import ExitStack
from dataclasses import FrozenInstanceError

import pytest

from soma.core import Listeners, NodeStarted

STARTED = NodeStarted(node="a", phase="fit")


def test_everybody_hears_in_the_order_of_coming() -> None:
    """Events go to listeners, values to taps."""
    listeners, told = Listeners(), []
    with (
        listeners.listening(lambda event: told.append(("first", event))),
        listeners.listening(lambda event: told.append(("second", event))),
        listeners.listening(tap=lambda node, value: told.append((node, value))),
    ):
        listeners.say(STARTED)
        listeners.show("a", 3)

    assert told == [("first", STARTED), ("second", STARTED), ("a", 3)]


def test_nobody_listens_unless_asked() -> None:
    """Empty listeners are false, which is what the loops look at."""
    listeners = Listeners()
    assert not listeners
    with listeners.listening(print):
        assert listeners
    with listeners.listening(tap=print):
        assert listeners

    assert not listeners


def test_listening_twice_is_hearing_twice() -> None:
    """Each `with` takes away one of them."""
    listeners, told = Listeners(), []
    with listeners.listening(told.append):
        with listeners.listening(told.append):
            listeners.say(STARTED)
        listeners.say(STARTED)

    assert told == [STARTED] * 3
    assert not listeners


def test_listeners_that_are_equal_are_not_confused() -> None:
    """The one that leaves is the one that came."""
    listeners, first, second, outer = Listeners(), [], [], ExitStack()
    outer.enter_context(listeners.listening(first.append))
    with listeners.listening(second.append):
        outer.close()
        listeners.say(STARTED)

    assert (first, second) == ([], [STARTED])


def test_a_listener_may_leave_while_it_is_told() -> None:
    """Those after it still hear of the same event."""
    listeners, told, once = Listeners(), [], ExitStack()
    once.enter_context(listeners.listening(lambda event: once.close()))
    with listeners.listening(told.append):
        listeners.say(STARTED)
        listeners.say(STARTED)

    assert told == [STARTED, STARTED]


def test_an_event_is_data() -> None:
    """Equal where it says the same, and never changed."""
    assert NodeStarted(node="a", phase="fit") == STARTED
    assert len({STARTED, NodeStarted(node="a", phase="fit")}) == 1
    with pytest.raises(FrozenInstanceError):
        STARTED.node = "b"  # type: ignore[misc]
