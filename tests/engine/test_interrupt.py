"""Ctrl-C stops a run, and the graph can run again."""

import pytest

from soma import Graph
from soma.testing import Recording
from tests.engine.filters import Center, Plus, Raises, RaisesInFit, Same
from tests.engine.fresh import fresh_python


@pytest.mark.parametrize("executor", [None, "threads"])
def test_an_interrupt_in_a_node_leaves_the_graph_usable(executor: str | None) -> None:
    """The next run is an ordinary one."""
    fragile = Raises(KeyboardInterrupt())
    g = Graph.somatize(Plus(1) >> (fragile | Same()), executor=executor)

    with pytest.raises(KeyboardInterrupt):
        g.forward(1)
    fragile.error = None
    assert g.forward(1) == {"raises": 2, "same": 2}


@pytest.mark.parametrize("executor", [None, "threads"])
def test_an_interrupted_fit_keeps_the_old_states(executor: str | None) -> None:
    """Nothing is half learned."""
    fragile = RaisesInFit(None)
    g = Graph.somatize(Center() >> fragile).fit([1, 3])
    fragile.error = KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        g.fit([10, 30], executor=executor)
    assert g.get_node_state("center") == 2


def test_an_interrupt_is_told_to_listeners() -> None:
    """A progress bar hears that the node has ended, and listens no longer."""
    g = Graph.somatize(Raises(KeyboardInterrupt()))
    recording = Recording()

    with pytest.raises(KeyboardInterrupt), recording.of(g):
        g.forward(1)
    assert recording.kinds() == ["NodeStarted", "NodeFailed"]
    assert not g._runner.listeners


SIGNALLED = """
    import signal, threading
    from concurrent.futures import ThreadPoolExecutor
    from soma import Filter, Graph

    arrived = threading.Event()
    ran = []

    def on_signal(*args):
        arrived.set()
        signal.default_int_handler(*args)

    class Waits(Filter):
        def forward(self, x, state):
            ran.append(self.name)
            if not arrived.is_set():
                {signal}
                arrived.wait()
            return x

    signal.signal(signal.SIGINT, on_signal)
    g = Graph.somatize(
        Waits(name="first") >> (Waits(name="second") | Waits(name="third")), executor={executor}
    )
    try:
        g.forward(1)
    except KeyboardInterrupt:
        print("interrupted", *ran)
    print(g.forward(2), *ran)
"""


@pytest.mark.parametrize("executor", ["'threads'", "ThreadPoolExecutor(1)"])
def test_a_signal_stops_threads_without_hanging(executor: str) -> None:
    """The running node ends, the next ones do not begin, the graph and the pool go on."""
    signal = "signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)"
    told = fresh_python(SIGNALLED.format(signal=signal, executor=executor))

    assert told.splitlines()[0] == "interrupted first"
    assert told.splitlines()[1].startswith("{'waits_2': 2, 'waits_3': 2} first first")


def test_a_signal_stops_a_sequential_run() -> None:
    """The node that is running is left at once."""
    signal = "signal.raise_signal(signal.SIGINT)"
    told = fresh_python(SIGNALLED.format(signal=signal, executor=None))

    assert told.splitlines() == [
        "interrupted first",
        "{'waits_2': 2, 'waits_3': 2} first first second third",
    ]
