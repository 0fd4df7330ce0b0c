"""Whatever executor runs the nodes, a graph gives, keeps and tells the same."""

import os
import random
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier, Lock

import pytest
import torch
from distributed import Client, LocalCluster
from joblib.externals.loky import ProcessPoolExecutor as LokyExecutor  # noqa: TID251 - as joblib has it

from soma import DifferentiableFilter, Filter, Graph, why
from soma.errors import NotSent, RemoteFailure
from soma.testing import Recording
from tests.engine.filters import Center, Draws, Pairs, Plus, Raises, Same

pytestmark = [pytest.mark.process, pytest.mark.slow]


class Counts(Filter):
    """Leaves a file in a folder at each call."""

    def forward(self, x, state):
        (Path(self.folder) / f"{os.getpid()}-{random.random()}").touch()
        return x


class Holds(Filter):
    """Holds something that no process can be sent."""

    def __init__(self):
        self.lock = Lock()

    def forward(self, x, state):
        return x


class Odd(Exception):
    """An error that cannot be made again of its arguments."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class RaisesOdd(Filter):
    """Raises such an error."""

    def forward(self, x, state):
        raise Odd(1, 2)


class Mean(Filter):
    """Learns a mean, a tensor, and takes it away."""

    def fit(self, x, y=None):
        return x.mean()

    def forward(self, x, state):
        return x - state


class Multiplies(Filter):
    """Tells in which type torch multiplies and makes numbers."""

    def forward(self, x, state):
        ones = torch.ones(2, 2, dtype=torch.float32)
        return [str((ones @ ones).dtype), str(torch.zeros(1).dtype)]


class Dense(DifferentiableFilter):
    """A layer that tells where it runs."""

    def build_module(self, input_shape):
        return torch.nn.Linear(input_shape[-1], 2)

    def forward(self, x, state=None):
        self.process = os.getpid()
        return super().forward(x, state)


@contextmanager
def dask() -> Iterator[Executor]:
    """Give the executor of a cluster of two processes."""
    place = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, **place) as cluster,
        Client(cluster) as client,
    ):
        yield client.get_executor()


MAKERS = {
    "threads": lambda: ThreadPoolExecutor(2),
    "fork": lambda: ProcessPoolExecutor(2, mp_context=get_context("forkserver")),
    "loky": lambda: LokyExecutor(2),
    "dask": dask,
}


@pytest.fixture(scope="module", params=MAKERS)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """Give each in turn."""
    with MAKERS[request.param]() as found:
        yield found


@pytest.fixture
def away(executor: Executor) -> Executor:
    """Give those with processes of their own."""
    if isinstance(executor, ThreadPoolExecutor):
        pytest.skip("threads share all that there is")
    return executor


def test_it_gives_what_a_run_in_order_gives(executor: Executor) -> None:
    """In fit and in forward, to each of which it can be given."""

    def made() -> Graph:
        return Graph.somatize(Plus(1) >> (Center() | Center() >> Same()) >> Pairs(), cache=None)

    here, there = made().fit(torch.arange(3.0)), made().fit(torch.arange(3.0), executor=executor)
    assert there.get_node_state("center") == here.get_node_state("center")
    answer = there.forward(torch.ones(2), executor=executor)
    assert str(answer) == str(here.forward(torch.ones(2)))


def test_the_cache_and_its_reasons(executor: Executor, tmp_path: Path) -> None:
    """Two nodes that do the same compute it once, and the next run reads it."""
    g = Graph.somatize((Counts(folder=str(tmp_path)) | Counts(folder=str(tmp_path))) >> Pairs())
    for _ in range(2):
        g.forward([1], executor=executor)

    assert len([*tmp_path.iterdir()]) == 1
    assert why(g, "counts") == "`counts` did not run: its answer was stored"


def test_events(executor: Executor) -> None:
    """Listeners hear what they hear of a run in order, up to the order itself."""

    def heard(g: Graph, **given: Executor) -> list[tuple[object, ...]]:
        recording = Recording()
        with recording.of(g):
            g.forward([1], **given)
        return sorted((type(one).__name__, one.node) for one in recording.events)

    assert heard(Graph.somatize(Same() | Same(), cache="memory"), executor=executor) == heard(
        Graph.somatize(Same() | Same(), cache="memory")
    )


@pytest.mark.parametrize("seed", [None, 1])
def test_each_node_draws_its_own(executor: Executor, seed: int | None) -> None:
    """With a seed what a run in order draws, and without one something new each time."""
    g = Graph.somatize(Draws() | Draws() | Draws(), seed=seed, cache=None)
    first, second = (g.forward(0, executor=executor) for _ in range(2))

    assert len({*first.values()}) == 3
    assert (first == second == g.forward(0)) is (seed is not None)


def test_settings_of_torch_go_along(executor: Executor) -> None:
    """Autocast and the default type hold in a node wherever it runs."""
    g = Graph.somatize(Multiplies() | Same(), cache=None)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = g.forward(0, executor=executor)["multiplies"]
    finally:
        torch.set_default_dtype(torch.float32)

    assert found == ["torch.bfloat16", "torch.float64"]
    assert g.forward(0, executor=executor)["multiplies"] == ["torch.float32"] * 2


def test_inputs_and_states_stay_where_they_are(executor: Executor) -> None:
    """No tensor is moved into shared memory while another node may be reading it."""
    x = torch.arange(6.0)
    g = Graph.somatize(Mean() | Same(), cache=None).fit(x, executor=executor)
    state = g.get_node_state("mean")
    before = [one.data_ptr() for one in (x, state)]
    found = g.forward(x, executor=executor)["mean"]

    assert [one.data_ptr() for one in (x, state)] == before
    assert not x.is_shared()
    assert torch.equal(found, x - 2.5)


def test_modules_stay_here(executor: Executor) -> None:
    """Their weights are not sent with each call."""
    dense = Dense()
    g = Graph.somatize(Same() >> (dense | Same()), cache=None).materialize(torch.ones(3, 2))
    g.freeze().forward(torch.ones(3, 2), executor=executor)

    assert dense.process == os.getpid()


def test_an_error_of_a_filter(executor: Executor) -> None:
    """It keeps its type, and names the node once."""
    g = Graph.somatize(Same() >> Raises(KeyError("gone")), cache=None)
    with pytest.raises(KeyError, match="gone") as caught:
        g.forward([1], executor=executor)

    assert caught.value.__notes__ == [
        "in node `raises` (Raises), during forward; its input: list of 1"
    ]


def test_an_error_that_cannot_come_home(away: Executor) -> None:
    """Its text does, with the trace, and the executor lives on."""
    with pytest.raises(RemoteFailure, match="Odd in another process: 1 and 2") as caught:
        Graph.somatize(RaisesOdd(), cache=None).forward(0, executor=away)

    assert "`raises_odd` (RaisesOdd)" in caught.value.__notes__[0]
    assert Graph.somatize(Same(), cache=None).forward(1, executor=away) == 1


def test_a_filter_that_cannot_be_sent(away: Executor) -> None:
    """The error names it, and says what to do; the node has failed for listeners too."""
    g, recording = Graph.somatize(Same() >> Holds(), cache=None), Recording()
    with recording.of(g), pytest.raises(NotSent, match=r"`holds` \(Holds"):
        g.forward(1, executor=away)

    assert recording.kinds()[-1] == "NodeFailed"


@pytest.mark.parametrize("name", ["fork", "loky", "dask"])
def test_one_that_was_shut_down(name: str) -> None:
    """The error is its own, and says that the node is not to blame; the graph goes on."""
    with MAKERS[name]() as executor:
        executor.shutdown()
        g = Graph.somatize(Plus(1), cache=None)
        with pytest.raises(RuntimeError, match="shutdown") as caught:
            g.forward(1, executor=executor)

    assert "an error of the executor" in caught.value.__notes__[0]
    assert g.forward(1) == 2


def test_two_threads_with_an_executor_each() -> None:
    """What one thread asks for is of no concern to the other, then or later."""
    both = Barrier(2)

    class Waits(Filter):
        def forward(self, x, state):
            both.wait(timeout=60)
            return x

    g = Graph.somatize(Waits(), cache=None)
    with ThreadPoolExecutor(2) as callers:
        asked = [callers.submit(g.forward, n, executor="threads") for n in range(2)]
        assert [one.result() for one in asked] == [0, 1]
    assert g._runner.executors.present() is None
