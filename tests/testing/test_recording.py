"""`Recording` keeps what a graph says."""

import pytest

from soma import Filter, Graph
from soma.testing import Recording


class Double(Filter):
    def forward(self, x, state):
        return 2 * x


def test_a_recording_keeps_events_and_outputs() -> None:
    """In order, and only of what happens inside the `with`."""
    g, recording = Graph.somatize(Double() >> Double()), Recording()
    g.forward(1)
    with recording.of(g):
        g.forward(3)
    g.forward(5)

    assert recording.kinds() == ["NodeStarted", "NodeFinished"] * 2
    assert recording.outputs == [("double", 6), ("double_2", 12)]


def test_a_recording_goes_on() -> None:
    """It can be used again, of another graph too, and grows."""
    recording = Recording()
    for x in (1, 2):
        g = Graph.somatize(Double())
        with recording.of(g):
            g.forward(x)

    assert recording.outputs == [("double", 2), ("double", 4)]


def test_a_recording_ends_with_an_error() -> None:
    """And keeps what was said until then."""
    g, recording = Graph.somatize(Double()), Recording()
    with pytest.raises(TypeError), recording.of(g):
        g.forward(None)
    g.forward(1)

    assert recording.kinds() == ["NodeStarted", "NodeFailed"]
    assert recording.outputs == []
