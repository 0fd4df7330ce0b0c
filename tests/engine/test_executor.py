"""Independent nodes run side by side on threads, or on any executor."""

import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from copy import deepcopy
from decimal import Decimal, localcontext
from typing import ClassVar

import pytest
import torch

from soma import Filter, Graph
from soma.errors import InvalidInput
from soma.testing import Recording
from tests.engine.filters import Center, Pairs, Plus, Raises, Same
from tests.engine.fresh import fresh_python


class Meets(Filter):
    """Waits for the others at a barrier, in `fit` or in `forward`."""

    def fit(self, x, y=None):
        if self.phase == "fit":
            self.barrier.wait(timeout=60)

    def forward(self, x, state):
        if self.phase == "forward":
            self.barrier.wait(timeout=60)
        return x


class Where(Filter):
    """Tells which thread it runs in."""

    def forward(self, x, state):
        return threading.current_thread().name


class AtOnce(Executor):
    """An executor that has done everything when `submit` returns."""

    def __init__(self):
        self.count = 0

    def submit(self, function, /, *arguments, **named):
        self.count += 1
        future: Future[object] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except BaseException as error:
            future.set_exception(error)
        return future


@pytest.mark.parametrize("phase", ["fit", "forward"])
@pytest.mark.parametrize("executor", ["threads", ThreadPoolExecutor(2)], ids=["name", "pool"])
def test_independent_branches_overlap(executor: object, phase: str) -> None:
    """Two nodes that wait for each other both get through."""
    barrier = threading.Barrier(2)
    one, other = (Meets(barrier=barrier, phase=phase, number=n) for n in range(2))
    g = Graph.somatize(Same() >> (one | other), executor=executor, cache=None).fit([1])

    assert g.forward([1]) == {"meets": [1], "meets_2": [1]}


def test_fit_takes_an_executor_for_itself() -> None:
    """It is used for that fit only."""
    barrier = threading.Barrier(2)
    one, other = (Meets(barrier=barrier, phase="fit", number=n) for n in range(2))
    g = Graph.somatize(one | other | Where(), cache=None).fit([1], executor="threads")

    assert barrier.broken is False
    assert g.forward([1])["where"] == threading.current_thread().name


def test_the_executor_of_a_fit_wins_and_the_graphs_own_comes_back() -> None:
    """Both are the caller's, and stay open."""
    own, other = AtOnce(), AtOnce()
    g = Graph.somatize(Center() | Same(), executor=own, cache=None)
    g.fit([1], executor=other)
    assert (own.count, other.count) == (0, 2)

    g.forward([1])
    assert (own.count, other.count) == (2, 2)


def test_threads_are_named_after_the_library() -> None:
    """So that a debugger tells them apart."""
    assert Graph.somatize(Where(), executor="threads").forward(0).startswith("soma")


def test_any_executor_will_do() -> None:
    """All that is asked of one is `submit`."""
    g = Graph.somatize((Plus(1) | Plus(2) >> Plus(3)) >> Pairs(), executor=AtOnce())

    assert g.forward(0) == [("plus", 1), ("plus_3", 5)]


@pytest.mark.parametrize("executor", ["thread", "", 4, True, ThreadPoolExecutor, object()])
def test_anything_else_is_refused(executor: object) -> None:
    """Where it is given, with what is possible."""
    with pytest.raises(InvalidInput, match=r"concurrent\.futures\.Executor") as caught:
        Graph(executor=executor)  # type: ignore[arg-type]
    assert repr(executor) in str(caught.value)
    with pytest.raises(InvalidInput):
        Graph.somatize(Same()).fit([1], executor=executor)  # type: ignore[arg-type]


def test_a_pool_that_was_shut_down_says_so() -> None:
    """It is the pool's own error; the graph can go on without it."""
    pool = ThreadPoolExecutor(1)
    g = Graph.somatize(Same() >> Plus(1), executor=pool)
    pool.shutdown()

    with pytest.raises(RuntimeError, match="after shutdown"):
        g.forward(1)
    assert g.fit(1, executor="threads") is g


def test_an_error_waits_for_what_is_running() -> None:
    """When it comes out, no node of the run is still at work."""
    started, raised, ended = threading.Event(), threading.Event(), []

    class Slow(Filter):
        def forward(self, x, state):
            started.set()
            raised.wait(timeout=60)
            ended.append("slow")

    class Fails(Filter):
        def forward(self, x, state):
            started.wait(timeout=60)
            raised.set()
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Graph.somatize(Slow() | Fails(), executor="threads").forward(0)
    assert ended == ["slow"]


def test_after_an_error_nothing_new_begins() -> None:
    """What depends on the node, and what has not begun, does not run."""
    ran = []

    class Runs(Filter):
        def forward(self, x, state):
            ran.append(x)

    g = Graph.somatize(Raises(ValueError("no")) >> Runs(), executor="threads")

    with pytest.raises(ValueError, match="no"):
        g.forward(0)
    assert ran == []


def test_an_error_cancels_what_has_not_begun() -> None:
    """Nobody waits for a node that would run for nothing."""

    class OnlyFirst(AtOnce):
        pending: ClassVar[list[Future[object]]] = []

        def submit(self, function, /, *arguments, **named):
            if not self.count:
                return super().submit(function, *arguments, **named)
            self.pending.append(Future())
            return self.pending[-1]

    executor = OnlyFirst()
    with pytest.raises(ValueError, match="no"):
        Graph.somatize(Raises(ValueError("no")) | Same() | Plus(1), executor=executor).forward(0)
    assert [future.cancelled() for future in executor.pending] == [True, True]


def test_listeners_are_called_in_the_thread_of_the_caller() -> None:
    """They need no locks."""
    g = Graph.somatize((Where() | Where()) >> Pairs(), executor="threads")
    names = []
    with g._runner.listeners.listening(
        lambda event: names.append(threading.current_thread().name),
        lambda node, value: names.append(threading.current_thread().name),
    ):
        g.forward(0)

    assert set(names) == {threading.current_thread().name}
    assert len(names) == 9


def test_every_node_is_told_once() -> None:
    """Started before finished, and a reader starts after what it reads."""
    g = Graph.somatize(Plus(1) >> (Plus(2) | Plus(3)) >> Pairs(), executor="threads")
    recording = Recording()
    with recording.of(g):
        g.forward(0)

    told = [(type(event).__name__, event.node) for event in recording.events]
    assert len(set(told)) == len(told) == 8
    assert told[:2] == [("NodeStarted", "plus"), ("NodeFinished", "plus")]
    assert told[-2:] == [("NodeStarted", "pairs"), ("NodeFinished", "pairs")]


def test_a_node_sees_the_settings_of_the_caller() -> None:
    """Context variables, such as the precision of decimals, hold on threads too."""

    class Third(Filter):
        def forward(self, x, state):
            return str(Decimal(1) / 3)

    with localcontext() as context:
        context.prec = 3
        assert Graph.somatize(Third(), executor="threads").forward(0) == "0.333"


def test_nothing_is_recorded_for_autograd_on_threads() -> None:
    """As in a sequential run."""

    class Asks(Filter):
        def forward(self, x, state):
            return torch.is_grad_enabled()

    assert Graph.somatize(Asks(), executor="threads").forward(0) is False
    assert Graph.somatize(Asks()).forward(0) is False


def test_two_threads_may_run_one_graph() -> None:
    """Each gets its own answer."""
    barrier = threading.Barrier(4)
    meets = Meets(barrier=barrier, phase="forward")
    g = Graph.somatize(Plus(1) >> meets >> Plus(10)).set_node_state("meets", None)
    with ThreadPoolExecutor(4) as callers:
        answers = list(callers.map(g.forward, range(4)))

    assert answers == [11, 12, 13, 14]


def test_a_wide_graph_on_few_threads() -> None:
    """Nodes wait for a free thread, not for a turn."""
    expression = Plus(0)
    for amount in range(1, 1_000):
        expression = expression | Plus(amount)
    with ThreadPoolExecutor(2) as pool:
        output = Graph.somatize(Same() >> expression, executor=pool).forward(0)

    assert list(output.values()) == list(range(1_000))


def test_no_thread_holds_up_the_end_of_the_program() -> None:
    """A graph with threads needs no closing."""
    told = fresh_python("""
        import threading
        from soma import Filter, Graph

        class Same(Filter):
            def forward(self, x, state):
                return x

        g = Graph.somatize(Same() >> (Same() | Same()), executor="threads")
        g.forward(1)
        Graph.somatize(Same() | Same()).fit(1, executor="threads")
        print(len(threading.enumerate()) < 5)
    """)

    assert told == "True\n"


def test_a_node_may_import_a_library_while_others_run() -> None:
    """A library that is half loaded is of no concern to the nodes beside."""
    told = fresh_python("""
        from soma import Filter, Graph

        class Imports(Filter):
            def forward(self, x, state):
                import numpy
                return float(numpy.float64(x))

        class Same(Filter):
            def forward(self, x, state):
                return x

        expression = Imports()
        for _ in range(1_000):
            expression = expression | Same()
        print(set(Graph.somatize(expression, executor="threads").forward(2.0).values()))
    """)

    assert told == "{2.0}\n"


def test_a_copy_of_a_graph_gets_threads_of_its_own() -> None:
    """A pool cannot be copied, the wish for one can."""
    g = Graph.somatize(Plus(1) | Plus(2), executor="threads")
    other = deepcopy(g)

    assert other.forward(1) == g.forward(1)
    assert other._runner.executors.present() is not g._runner.executors.present()
