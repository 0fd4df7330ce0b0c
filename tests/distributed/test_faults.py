"""Whatever happens to a worker, the program gets an error of ours, soon, that names it."""

import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from soma import Graph
from soma.distributed import connect
from soma.errors import (
    CheckpointWarning,
    NotSent,
    RemoteFailure,
    SomaError,
    TornStep,
    WorkerLost,
    WorkerTimeout,
)
from tests.distributed.faulty import (
    BAD,
    Answering,
    Faulty,
    FaultyPlain,
    KilledStep,
    RaisingStep,
    StoppedStep,
)
from tests.distributed.graphs import X, Y, weights
from tests.training.filters import Dense

pytestmark = [pytest.mark.process, pytest.mark.slow]

SECONDS = 10.0  # that a call may take here
KINDS = {"kill": WorkerLost, "stop": WorkerTimeout, "sleep": WorkerTimeout, "raise": RemoteFailure}


@pytest.fixture
def two(workers: tuple[str, ...]) -> tuple[str, ...]:
    """Have a new session with two workers."""
    connect(*workers, timeout=SECONDS)
    return workers


def step(g: Graph, x: Tensor = X) -> None:
    """Take one training step."""
    with g.context() as ctx:
        g.zero_grad()
        output, _ = g.forward(x)
        g.backward(ctx, nn.functional.mse_loss(output, Y))
    g.step(ctx)


def broken(action: Callable[[], object]) -> tuple[SomaError, float]:
    """Return the error of an action, and the seconds that it took."""
    began = time.monotonic()
    with pytest.raises(SomaError) as told:
        action()
    return told.value, time.monotonic() - began


def training(filter: Faulty | Dense, two: tuple[str, ...], cls: type[SGD] = SGD) -> Graph:
    """Return a graph that has taken one step."""
    torch.manual_seed(0)
    g = Graph.somatize(Dense(3).at(two[0]) >> filter.at(two[1]) >> Dense(2))
    g.materialize(X).train().make_optimizer(cls, lr=0.1)
    step(g)
    return g


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_a_worker_breaks_in_a_pass(where: str, kind: str, two: tuple[str, ...]) -> None:
    """Killed, stopped, asleep or at an error, in forward or backward."""
    g = training(Faulty(where, kind), two)
    error, seconds = broken(lambda: step(g, BAD))

    assert type(error) is KINDS[kind]
    assert two[1] in str(error)
    assert seconds < 5 * SECONDS
    if (where, kind) != ("backward", "sleep"):  # nobody can tell who of several still computes
        assert "`faulty`" in str(error)


@pytest.mark.parametrize("cls", [KilledStep, StoppedStep, RaisingStep])
def test_a_worker_breaks_in_a_step(cls: type[SGD], two: tuple[str, ...]) -> None:
    """A step that some have taken is told of, and no other is taken before a state is loaded."""
    g = training(Dense(4), two, cls)
    before = g.state()
    error, seconds = broken(lambda: step(g))
    again, _ = broken(lambda: g.step())

    assert type(error) is type(again) is TornStep
    assert seconds < 5 * SECONDS
    g.load_state(before).train().make_optimizer(SGD, lr=0.1)
    step(g)


ACTIONS: dict[str, Callable[[Graph], object]] = {
    "forward": lambda g: g.forward(X),
    "eval": lambda g: g.eval().forward(X),
    "evaluating": lambda g: evaluated(g),
    "fit": lambda g: g.fit(X, Y, epochs=1, progress=False),
    "materialize": lambda g: g.materialize(X),
    "clip": lambda g: g.clip_gradients(1.0),
    "step": lambda g: g.step(),
    "freeze": lambda g: g.freeze(),
    "state": lambda g: g.state(),
    "save": lambda g: g.save("nowhere.soma"),
}


def evaluated(g: Graph) -> object:
    """Return what a graph gives in eval."""
    with g.evaluating():
        return g.forward(X)


def test_every_way_to_a_lost_worker(two: tuple[str, ...]) -> None:
    """Whatever asks a worker that was lost, our error names it at once."""
    g = training(Faulty("forward", "kill"), two)
    broken(lambda: step(g, BAD))
    found = {name: broken(lambda action=action: action(g)) for name, action in ACTIONS.items()}

    assert {name: type(error) for name, (error, _) in found.items()} == dict.fromkeys(
        ACTIONS, WorkerLost
    )
    assert [name for name, (error, _) in found.items() if "worker2" not in str(error)] == []
    assert max(seconds for _, seconds in found.values()) < SECONDS


@pytest.mark.parametrize(("where", "kind"), [("fit", "kill"), *[("forward", one) for one in KINDS]])
def test_a_plain_filter_breaks(where: str, kind: str, two: tuple[str, ...]) -> None:
    """A plain filter's `fit` and `forward` on a worker fail in the same words."""
    g = Graph.somatize(FaultyPlain(where, kind).at(two[1]), cache=None)
    error, seconds = broken(lambda: g.fit(X).forward(X))

    assert type(error) is KINDS[kind]
    assert two[1] in str(error)
    assert "`faulty_plain`" in str(error)
    assert seconds < 5 * SECONDS


UNUSUAL = {
    "exit": (RemoteFailure, "SystemExit on worker2 (`answering`): 3"),
    "interrupt": (RemoteFailure, "KeyboardInterrupt on worker2"),
    "untold": (RemoteFailure, "Untold on worker2 (`answering`): (it has no text"),
    "unsendable": (NotSent, "what worker2 (`answering`) answers cannot be sent here: "),
}


@pytest.mark.parametrize(("call", "kind", "told"), [(k, *v) for k, v in UNUSUAL.items()])
def test_an_unusual_answer(
    call: str,
    kind: type[SomaError],
    told: str,
    two: tuple[str, ...],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Whatever a filter raises or gives, the error is ours, and the worker prints nothing."""
    g = Graph.somatize(Answering(call).at(two[1]), cache=None)
    error, _ = broken(lambda: g.forward(X))

    assert type(error) is kind
    assert str(error).startswith(told)
    assert capfd.readouterr().err == ""


def test_an_error_comes_with_its_trace(two: tuple[str, ...]) -> None:
    """What the user's code raised on a worker is told as it was there."""
    error, _ = broken(lambda: step(training(Faulty("forward", "raise"), two), BAD))

    assert "ValueError" in str(error)
    assert "a bug of the user" in str(error)
    assert "faulty.py" in str(error)


def test_a_worker_that_was_not_named_at_first(two: tuple[str, ...]) -> None:
    """The error says how to have both, and the graph of before goes on from its state there."""
    connect(two[0], timeout=SECONDS)
    first = Graph.somatize(Dense(2).at(two[0])).materialize(X).train()
    state = first.state()
    second = Graph.somatize(Dense(2).at(two[1]))
    error, _ = broken(lambda: second.materialize(X))
    connect(*two)
    first.load_state(state).train().make_optimizer(SGD, lr=0.1)
    step(first)
    second.materialize(X)

    assert "connect('worker1', 'worker2')" in str(error)
    assert "keep it by `g.state()` first" in str(error)


def test_going_on_equals_a_run_that_was_never_stopped(two: tuple[str, ...]) -> None:
    """From the last state, in the same graph, the weights are those of an undisturbed run."""
    undisturbed, g = training(Dense(4), two), training(Faulty("forward", "kill"), two)
    for _ in range(3):
        step(undisturbed)
    kept = g.state()
    expected = [*weights(undisturbed).values()]
    broken(lambda: step(g, BAD))
    g.load_state(kept)
    for _ in range(3):
        step(g)

    assert all(map(torch.equal, weights(g).values(), expected))


def test_half_a_state_mends_no_torn_step(two: tuple[str, ...]) -> None:
    """Only a state of all nodes lets the graph step again."""
    g = training(Dense(4), two, RaisingStep)
    before = g.state()
    broken(lambda: step(g))
    with pytest.warns(CheckpointWarning, match="`dense` is missing"):
        g.load_state({"dense_2": before["dense_2"]}, strict=False).train()
    assert type(broken(lambda: step(g))[0]) is TornStep

    g.load_state(before).train().make_optimizer(SGD, lr=0.1)
    step(g)
