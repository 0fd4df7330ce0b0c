"""What else a graph does, it does with nodes on workers too, or says why not."""

import copy
import gc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.optim import LBFGS, SGD, Adam

from soma import DifferentiableFilter, Graph, RunView
from soma.distributed import _host
from soma.distributed._current import current_connection
from soma.errors import InvalidInput, InvalidOutput, ModeError, NoOptimizer, NotSent
from soma.tracking import RunRecord
from soma.viz.figures import gantt_info
from tests.distributed.graphs import Normed, Reading, Square, Tied, X, Y, weights
from tests.training.filters import Dense, Gated, Rounded, Wrap

pytestmark = [pytest.mark.process, pytest.mark.slow]

Pair = Callable[..., tuple[Graph, Graph]]


@pytest.fixture
def pair(workers: tuple[str, ...]) -> Pair:
    """Make a chain twice, here and on a worker."""

    def make(*filters: DifferentiableFilter) -> tuple[Graph, Graph]:
        return chain(filters, None), chain(filters, workers[0])

    return make


def chain(filters: tuple[DifferentiableFilter, ...], worker: str | None) -> Graph:
    """Return a graph of copies, built, that is about to train."""
    torch.manual_seed(0)
    g = Graph()
    for number, filter in enumerate(filters):
        g.node(f"n{number}", copy.copy(filter), target=worker)
        if number:
            g.connect(f"n{number - 1}", f"n{number}")
    g.materialize(X).train().make_optimizer(Adam, lr=0.05)
    return g


def step(g: Graph, x: object = X) -> object:
    """Take one training step; return the output."""
    with g.context() as ctx:
        g.zero_grad()
        output, _ = g.forward(x)
        g.backward(ctx, (output - Y).square().mean())
    g.step(ctx)
    return output


def equal(one: Graph, other: Graph) -> bool:
    """Whether two graphs hold the same bits."""
    mine, theirs = weights(one), weights(other)
    return mine.keys() == theirs.keys() and all(
        torch.equal(mine[name], theirs[name]) for name in mine
    )


def test_modes(pair: Pair) -> None:
    """`evaluating`, `eval`, `freeze`, and training afterwards answer as they do here."""

    def answers(g: Graph) -> list[Tensor]:
        step(g)
        with g.evaluating():
            found = [g.forward(X)]
        found += [step(g), g.eval().forward(X), g.freeze().forward(X)]
        g.train()
        found += [step(g), g.eval().forward(X), torch.tensor(g.forward(X.tolist()))]
        return found

    here, there = pair(Dense(4), Dense(2))
    assert all(map(torch.equal, answers(here), answers(there)))


def test_frozen_weights_are_here(pair: Pair) -> None:
    """After `freeze` no worker is asked, answers are cached, and gradients reach the input."""
    _, there = pair(Dense(4), Dense(2))
    x = X.clone().requires_grad_()
    with pytest.raises(ModeError, match="`n0` and `n1`"):
        there.eval().forward(x)
    there.freeze().forward(x).sum().backward()

    assert x.grad is not None
    assert not any(one.is_meta for _, f in there.filters() for one in f._module.parameters())


def test_two_graphs_whose_nodes_have_the_same_names(workers: tuple[str, ...]) -> None:
    """They have weights and optimizers of their own on the worker that they share."""
    here = [chain((Dense(4), Dense(2)), None) for _ in range(2)]
    there = [chain((Dense(4), Dense(2)), workers[0]) for _ in range(2)]
    for graphs in (here, there):
        for g in (graphs[0], graphs[1], graphs[0]):
            step(g)

    assert all(map(equal, here, there))
    assert not equal(*there)


@pytest.mark.parametrize("filter", [Normed(), Tied()], ids=["buffers", "tied, dropout"])
def test_what_modules_hold(filter: DifferentiableFilter, pair: Pair) -> None:
    """Running statistics, tied weights and dropout have the bits of a training here."""
    graphs = pair(filter, Dense(2))
    for g in graphs:
        torch.manual_seed(3)
        step(g), step(g)
    here, there = (dict(g.freeze().filters())["n0"]._module for g in graphs)

    assert equal(*graphs)
    assert torch.equal(graphs[0].forward(X), graphs[1].forward(X))
    if isinstance(filter, Normed):
        assert torch.equal(here.passing, there.passing)
        assert here.calls == there.calls == 2
    else:
        assert there[0].weight is there[2].weight


def test_a_weight_that_asks_for_no_gradient(pair: Pair) -> None:
    """It stays as it is on the worker, and comes home as such."""
    _, there = pair(Dense(4), Dense(2))
    parameter = next(there.parameters())
    parameter.requires_grad_(requires_grad=False)
    before = there.state()
    step(there)
    after = there.state()
    home = dict(there.freeze().filters())["n0"]._module

    assert torch.equal(before["n0"]["weight"], after["n0"]["weight"])
    assert not torch.equal(before["n0"]["bias"], after["n0"]["bias"])
    assert [one.requires_grad for one in home.parameters()] == [False, True]


INPUTS: dict[str, object] = {
    "not contiguous": X.t().contiguous().t(),
    "expanded": torch.randn(1, 5).expand(24, 5),
    "integers": torch.arange(120).reshape(24, 5),
    "booleans": X > 0,
    "dict": {"a": X, "b": X > 0},
    "tuple": (X, X),
    "array": X.numpy(),
}


@pytest.mark.parametrize("x", INPUTS.values(), ids=INPUTS)
def test_inputs(x: object, workers: tuple[str, ...]) -> None:
    """What a filter can read here it can read on a worker."""

    def answer(part: object) -> Tensor:
        torch.manual_seed(0)
        return Graph.somatize(part).materialize(x).train().forward(x)[0]  # type: ignore[arg-type]

    assert torch.equal(answer(Reading()), answer(Reading().at(workers[0])))


def test_a_prefix(workers: tuple[str, ...]) -> None:
    """What stands before the first module is run once, here."""
    graphs = []
    for dense in (Dense(2), Dense(2).at(workers[0])):
        torch.manual_seed(0)
        g = Graph.somatize(Rounded() >> dense).materialize(X).train()
        g.make_optimizer(SGD, lr=0.1)
        prefix = g.prefix(X)
        step(g, prefix), step(g, prefix)
        graphs.append(g)

    assert equal(*graphs)


def test_several_losses(pair: Pair) -> None:
    """One backward from two losses, and two backwards of one forward, add up."""
    graphs = pair(Dense(4), Gated(2))
    for g in graphs:
        with g.context() as ctx:
            g.zero_grad()
            output, _ = g.forward(X)
            g.backward(ctx, [output.mean(), output.square().mean()], retain_graph=True)
            g.backward(ctx, output.abs().mean())
        g.step(ctx)

    assert equal(*graphs)


def test_optimizers_in_turn(pair: Pair) -> None:
    """`only` steps one of several, and another one in the same context."""
    graphs = pair(Dense(4), Dense(2))
    for g in graphs:
        first, *others = g.parameters()
        g.set_optimizer({"a": SGD([first], lr=0.1), "b": SGD(others, lr=0.2)})
        with g.context() as ctx:
            g.zero_grad()
            g.backward(ctx, g.forward(X)[0].mean())
        g.step(ctx, only="b")
        g.step(ctx, only="a")

    assert equal(*graphs)


def test_a_file_holds_what_optimizers_have_on_workers(pair: Pair, tmp_path: Path) -> None:
    """A graph of `g.save(optimizer=True)` goes on here with the same bits."""
    loaded = []
    for number, g in enumerate(pair(Dense(4), Dense(2))):
        step(g), step(g)
        g.save(tmp_path / f"{number}.soma", optimizer=True)
        loaded.append(Graph.load(tmp_path / f"{number}.soma", classes=[Dense]).train())
        step(loaded[-1])

    assert equal(*loaded)


def test_an_error_inside_a_context(pair: Pair) -> None:
    """The next step is taken as if there had been none before."""
    here, there = pair(Dense(4), Dense(2))
    with pytest.raises(ZeroDivisionError), there.context():  # noqa: PT012
        there.zero_grad()
        there.forward(X)
        raise ZeroDivisionError
    step(here), step(there)

    assert equal(here, there)


def test_a_tracked_run_tells_where_nodes_ran(pair: Pair, tmp_path: Path) -> None:
    """The record and the timeline name the worker of a node."""
    _, there = pair(Dense(4), Dense(2))
    with there.track_run("placed", root=tmp_path) as run:
        step(there)
    record = RunRecord(run.dir)
    graph = record.graph()

    assert graph is not None
    assert [node.target for node in graph.nodes] == ["worker1", "worker1"]
    assert gantt_info(record).labels == ("n0 on worker1", "n1 on worker1")
    assert "n1 on worker1" in RunView(run.dir).plot_gantt().to_svg()


def leaves_out(g: Graph) -> None:
    """Give `backward` the first of two forwards."""
    with g.context() as ctx:
        first, _ = g.forward(X)
        g.forward(X)
        g.backward(ctx, first.mean())


def forgets_to_clear(g: Graph) -> None:
    """Go back in two contexts and clear nothing."""
    for _ in range(2):
        with g.context() as ctx:
            g.backward(ctx, g.forward(X)[0].mean())


REFUSED: dict[str, tuple[Callable[[Graph], object], type[Exception], str]] = {
    "no context": (lambda g: g.backward(None, g.forward(X)[0].mean()), ModeError, "context"),
    "not cleared": (forgets_to_clear, ModeError, "neither stepped nor cleared"),
    "left out": (leaves_out, ModeError, "leaves out an answer of `n0` and `n1`"),
    "no step": (lambda g: g.step(), ModeError, "no context"),
    "closure": (lambda g: g.step(closure=lambda: 0.0), NoOptimizer, "closure"),
    "lbfgs": (lambda g: (g.make_optimizer(LBFGS), step(g)), NoOptimizer, "LBFGS"),
    "module": (lambda g: g.module(), InvalidInput, "on a worker"),
    "deepcopy": (copy.deepcopy, InvalidInput, "g.unfitted"),
    "to": (lambda g: g.to(dtype=torch.float64), InvalidOutput, "--device"),
}


@pytest.mark.parametrize(("action", "kind", "told"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(
    action: Callable[[Graph], object], kind: type[Exception], told: str, workers: tuple[str, ...]
) -> None:
    """What cannot be done across processes is refused with a reason, and training goes on."""
    g = chain((Dense(4), Dense(2)), workers[0])
    with pytest.raises(kind, match=told):
        action(g)
    g.zero_grad()
    g.make_optimizer(Adam)
    step(g)


class Local:
    """Makes a class that no other process can import."""

    @staticmethod
    def make() -> DifferentiableFilter:
        """Return a filter of a class inside a function."""

        class Inside(Dense):
            pass

        return Inside(2)


UNSENT: dict[str, tuple[Callable[[], DifferentiableFilter], str]] = {
    "lambda": (lambda: Wrap(lambda shape: nn.Linear(5, 2)), "lambda"),
    "local class": (Local.make, "top of a module"),
}


@pytest.mark.parametrize(("make", "told"), UNSENT.values(), ids=UNSENT)
def test_what_cannot_be_sent(
    make: Callable[[], DifferentiableFilter], told: str, workers: tuple[str, ...]
) -> None:
    """A filter that cannot be pickled is refused, and the message says what would do."""
    with pytest.raises(NotSent, match=told):
        Graph.somatize(make().at(workers[0])).materialize(X)


def test_nodes_on_workers_beside_a_pool_of_processes(workers: tuple[str, ...]) -> None:
    """What is placed is asked from this process, and the rest goes to the pool."""
    g = Graph.somatize(Square().at(workers[0]) | Square(), cache=None)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there, here = g.fit(X, executor=pool).forward(X, executor=pool).values()

    assert torch.equal(there, here)


def test_another_optimizer_begins_without_moments(pair: Pair) -> None:
    """On a worker too, where the one before it had the same name and the same class."""
    both = pair(Dense(3), Dense(2))
    for g in both:
        for _ in range(2):
            step(g)
        g.make_optimizer(Adam, lr=0.05)
        step(g)

    assert equal(*both)


def test_options_that_change_in_place(pair: Pair) -> None:
    """A worker steps with the options of now, also where they are tensors, or of other types."""
    both = pair(Dense(3), Dense(2))
    for g in both:
        rate = torch.tensor(0.05)
        g.make_optimizer(Adam, lr=rate)
        for _ in range(3):
            step(g)
            rate.mul_(0.5)
        (group,) = g.optimizer().param_groups
        group["lr"], group["weight_decay"] = 0.2, 0.1
        step(g)

    assert equal(*both)


def test_a_graph_that_is_gone_is_gone_on_its_worker(pair: Pair, workers: tuple[str, ...]) -> None:
    """Its modules and optimizers are dropped there when the next one is built."""
    before = there(workers[0])
    for _ in range(3):
        step(pair(Dense(3), Dense(2))[1])
        gc.collect()
    modules, optimizers = (now - then for now, then in zip(there(workers[0]), before, strict=True))

    assert modules <= 4
    assert optimizers <= 2


def there(worker: str) -> tuple[int, int]:
    """Return how many modules and optimizers a worker holds."""
    connection = current_connection()
    assert connection is not None
    return connection.call(worker, held_here)


def held_here() -> tuple[int, int]:
    """Return how many modules and optimizers this process holds for others."""
    return len(_host.HOST.nodes), len(_host.HOST.optimizers)
