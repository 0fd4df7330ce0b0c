"""What a run says of itself, as a listener hears it."""

import pytest

from soma import Filter, Graph
from soma.core import NodeFailed, NodeStarted
from soma.testing import Recording
from tests.engine.filters import Center, Keeps, Pairs, Plus, Raises, RaisesInFit, Same


def heard(recording: Recording) -> list[tuple[str, str]]:
    """Return what was said, in order, as `(what, node)`."""
    return [(type(event).__name__.removeprefix("Node"), event.node) for event in recording.events]


def test_each_node_starts_and_finishes_in_order() -> None:
    """One after the other, with the phase and the time it took."""
    g, recording = Graph.somatize(Plus(1) >> Same()), Recording()
    with recording.of(g):
        g.forward(1)

    assert heard(recording) == [
        ("Started", "plus"),
        ("Finished", "plus"),
        ("Started", "same"),
        ("Finished", "same"),
    ]
    assert {event.phase for event in recording.events} == {"forward"}
    assert all(event.seconds >= 0 for event in recording.events[1::2])


def test_fit_says_it_is_a_fit() -> None:
    """Nodes that learn and nodes that do not are told alike."""
    g, recording = Graph.somatize(Same() >> Center()), Recording()
    with recording.of(g):
        g.fit([1, 3])

    assert heard(recording)[::2] == [("Started", "same"), ("Started", "center")]
    assert {event.phase for event in recording.events} == {"fit"}


@pytest.mark.parametrize("executor", [None, "threads"])
def test_a_failure_is_the_last_word(executor: str | None) -> None:
    """It names the error, and what would come after stays silent."""
    g = Graph.somatize(Same() >> Raises(KeyError("k")) >> Plus(1), executor=executor)
    recording = Recording()
    with pytest.raises(KeyError), recording.of(g):
        g.forward(1)

    assert heard(recording)[-2:] == [("Started", "raises"), ("Failed", "raises")]
    assert recording.events[-1] == NodeFailed(node="raises", phase="forward", error="KeyError")


def test_a_failing_fit_is_told_too() -> None:
    """With its own phase."""
    g, recording = Graph.somatize(RaisesInFit(ValueError("v"))), Recording()
    with pytest.raises(ValueError, match="v"), recording.of(g):
        g.fit([1])

    assert recording.events[-1] == NodeFailed(node="raises_in_fit", phase="fit", error="ValueError")


@pytest.mark.parametrize("executor", [None, "threads"])
def test_a_tap_sees_what_each_node_gives(executor: str | None) -> None:
    """Also in a fit, where the node has a state to give besides."""
    g, recording = Graph.somatize(Plus(1) >> Keeps(), executor=executor), Recording()
    with recording.of(g):
        g.fit(1, "y")
        g.forward(5)

    kept = (2, "y")
    assert recording.outputs == [("plus", 2), ("keeps", kept), ("plus", 6), ("keeps", kept)]


def test_a_tap_sees_the_value_itself() -> None:
    """Not a copy of what the node gave."""

    class Makes(Filter):
        def forward(self, x, state):
            return self.value

    value = object()
    g, recording = Graph.somatize(Makes(value=value)), Recording()
    with recording.of(g):
        output = g.forward(0)

    assert recording.outputs[0][1] is output is value


def test_a_tap_sees_one_value_of_a_fan_in() -> None:
    """What the node gives, not what it gets."""
    g, recording = Graph.somatize((Plus(1) | Plus(2)) >> Pairs()), Recording()
    with recording.of(g):
        g.forward(0)

    assert recording.outputs[-1] == ("pairs", [("plus", 1), ("plus_2", 2)])


def test_listening_does_not_change_the_answer() -> None:
    """And a run without listeners says nothing."""
    g, recording = Graph.somatize(Plus(1) >> (Plus(2) | Plus(3)) >> Pairs()), Recording()
    silent = g.forward(0)
    with recording.of(g):
        told = g.forward(0)
    g.forward(0)

    assert told == silent
    assert len(recording.outputs) == 4


def test_nobody_listens_after_an_error() -> None:
    """The `with` ends as every `with` does."""
    g, recording = Graph.somatize(Same()), Recording()
    with pytest.raises(ZeroDivisionError), recording.of(g):
        1 / 0  # noqa: B018
    g.forward(1)

    assert recording.events == recording.outputs == []
    assert not g._runner.listeners


def test_several_listen_side_by_side() -> None:
    """Each hears everything while it listens."""
    g, long, short = Graph.somatize(Same()), Recording(), Recording()
    with long.of(g):
        g.forward(1)
        with short.of(g):
            g.forward(2)
        g.forward(3)

    assert [value for _, value in long.outputs] == [1, 2, 3]
    assert [value for _, value in short.outputs] == [2]


def test_graphs_speak_for_themselves() -> None:
    """Listening to one is not listening to another."""
    g, other, recording = Graph.somatize(Same()), Graph.somatize(Same()), Recording()
    with recording.of(g):
        other.forward(1)

    assert recording.events == []


def test_a_listener_that_fails_fails_the_run() -> None:
    """Its error comes out, and the graph runs on afterwards."""
    g = Graph.somatize(Same() >> Plus(1))

    def listener(event: object) -> None:
        if event == NodeStarted(node="plus", phase="forward"):
            raise LookupError("tell me not")

    with pytest.raises(LookupError), g._runner.listeners.listening(listener):
        g.forward(1)
    assert g.forward(1) == 2
