"""Training through a graph against the same loop written by hand: equal to the last bit."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from soma import Graph
from tests.training.filters import Concatenate, Dense, Wrap, data

STEPS = 50
X, Y = data()


@dataclass
class Case:
    """A graph, and the modules and the forward of the same network by hand."""

    graph: Callable[[], Graph]
    modules: Callable[[], list[nn.Module]]
    forward: Callable[[list[nn.Module], Tensor], Tensor | dict[str, Tensor]]


def fork_graph() -> Graph:
    return Graph.somatize((Dense(5) | Dense(4, nn.Tanh)) >> Concatenate(3))


def skip_graph() -> Graph:
    g = Graph()
    g.node("stem", Dense(5))
    g.node("deep", Dense(5, nn.ReLU))
    g.node("join", Concatenate(3))
    g.connect("stem", "deep").connect("deep", "join").connect("stem", "join")
    return g


def shared_graph() -> Graph:
    shared = nn.Linear(6, 6)
    return Graph.somatize(Wrap(lambda _: shared) >> Wrap(lambda _: shared) >> Dense(3))


def shared_modules() -> list[nn.Module]:
    return [nn.Linear(6, 6), nn.Linear(6, 3)]


def dropout_net(_: object = None) -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.4), nn.Linear(16, 3))


def norm_net(_: object = None) -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


CASES = {
    "chain": Case(
        lambda: Graph.somatize(Dense(8, nn.Tanh) >> Dense(8, nn.ReLU) >> Dense(3)),
        lambda: [
            nn.Sequential(nn.Linear(6, 8), nn.Tanh()),
            nn.Sequential(nn.Linear(8, 8), nn.ReLU()),
            nn.Linear(8, 3),
        ],
        lambda m, x: m[2](m[1](m[0](x))),
    ),
    "fork and fan-in": Case(
        fork_graph,
        lambda: [nn.Linear(6, 5), nn.Sequential(nn.Linear(6, 4), nn.Tanh()), nn.Linear(9, 3)],
        lambda m, x: m[2](torch.cat([m[0](x), m[1](x)], dim=1)),
    ),
    "fan-in in edge order": Case(
        skip_graph,
        lambda: [nn.Linear(6, 5), nn.Sequential(nn.Linear(5, 5), nn.ReLU()), nn.Linear(10, 3)],
        lambda m, x: m[2](torch.cat([m[1](h := m[0](x)), h], dim=1)),
    ),
    "two heads": Case(
        lambda: Graph.somatize(Dense(8, nn.Tanh) >> (Dense(3) | Dense(1))),
        lambda: [nn.Sequential(nn.Linear(6, 8), nn.Tanh()), nn.Linear(8, 3), nn.Linear(8, 1)],
        lambda m, x: {"dense_2": m[1](h := m[0](x)), "dense_3": m[2](h)},
    ),
    "shared module": Case(shared_graph, shared_modules, lambda m, x: m[1](m[0](m[0](x)))),
    "dropout": Case(
        lambda: Graph.somatize(Wrap(dropout_net)), lambda: [dropout_net()], lambda m, x: m[0](x)
    ),
    "batch norm": Case(
        lambda: Graph.somatize(Wrap(norm_net)), lambda: [norm_net()], lambda m, x: m[0](x)
    ),
}


def loss_of(output: object) -> Tensor:
    """Return one loss for one output or for several heads."""
    if isinstance(output, dict):
        first, second = output.values()
        return F.mse_loss(first, Y) + second.pow(2).mean()
    return F.mse_loss(output, Y)


def trained(case: Case) -> Graph:
    """Return a graph in training with the seed that `by_hand` uses too."""
    torch.manual_seed(7)
    g = case.graph()
    g.materialize(X)
    g.train()
    return g


def by_hand(case: Case) -> tuple[list[nn.Module], list[Tensor]]:
    torch.manual_seed(7)
    modules = case.modules()
    seen: dict[int, Tensor] = {id(one): one for module in modules for one in module.parameters()}
    return modules, list(seen.values())


def assert_same(g: Graph, modules: list[nn.Module]) -> None:
    mine = [*g.parameters()]
    hers = [one for module in modules for one in module.parameters()]
    assert len(mine) == len(hers)
    assert all(torch.equal(one, other) for one, other in zip(mine, hers, strict=True))
    buffers = [one for _, filter in g.filters() for one in filter._module.buffers()]
    hers = [one for module in modules for one in module.buffers()]
    assert all(torch.equal(one, other) for one, other in zip(buffers, hers, strict=True))


def run_graph(g: Graph, losses: list[float], steps: int = STEPS) -> None:
    for _ in range(steps):
        with g.context() as ctx:
            g.zero_grad()
            output, _ = g.forward(X)
            loss = loss_of(output)
            g.backward(ctx, loss)
        g.step(ctx)
        losses.append(loss.item())


@pytest.mark.parametrize("name", CASES)
def test_fifty_steps_equal_the_loop_written_by_hand(name: str) -> None:
    """Weights, buffers and losses are the same bits after fifty steps."""
    case = CASES[name]
    g = trained(case)
    g.make_optimizer(torch.optim.Adam, lr=1e-2)
    losses: list[float] = []
    run_graph(g, losses)

    modules, parameters = by_hand(case)
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    expected = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(case.forward(modules, X))
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    assert losses == expected
    assert_same(g, modules)


def test_two_parameter_groups_equal_the_loop_written_by_hand() -> None:
    """An optimizer with two groups, set from outside, steps the same bits."""
    case = CASES["chain"]
    g = trained(case)
    first, *rest = [list(filter._module.parameters()) for _, filter in g.filters()]
    groups = [{"params": first, "lr": 1e-3}, {"params": [one for part in rest for one in part]}]
    g.set_optimizer(torch.optim.SGD(groups, lr=1e-2, momentum=0.9))
    run_graph(g, [])

    modules, _ = by_hand(case)
    groups = [
        {"params": list(modules[0].parameters()), "lr": 1e-3},
        {"params": [one for module in modules[1:] for one in module.parameters()]},
    ]
    optimizer = torch.optim.SGD(groups, lr=1e-2, momentum=0.9)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(case.forward(modules, X)).backward()
        optimizer.step()
    assert_same(g, modules)


def test_accumulation_and_clipping_equal_the_loop_written_by_hand() -> None:
    """Four backwards in one step, then a clipped step, give the same bits."""
    case = CASES["chain"]
    g = trained(case)
    g.make_optimizer(torch.optim.Adam, lr=1e-2)
    modules, parameters = by_hand(case)
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    for _ in range(STEPS):
        g.zero_grad()
        optimizer.zero_grad()
        for start in range(0, 64, 16):
            rows = slice(start, start + 16)
            with g.context() as ctx:
                output, _ = g.forward(X[rows])
                g.backward(ctx, F.mse_loss(output, Y[rows]))
            F.mse_loss(case.forward(modules, X[rows]), Y[rows]).backward()
        norm = g.clip_gradients(0.1)
        assert torch.equal(norm, nn.utils.clip_grad_norm_(parameters, 0.1))
        g.step(ctx)
        optimizer.step()
    assert_same(g, modules)


@pytest.mark.parametrize("name", ["chain", "fork and fan-in", "batch norm"])
def test_autocast_equals_the_loop_written_by_hand(name: str) -> None:
    """Under bfloat16 autocast on the CPU the weights are the same bits."""
    case = CASES[name]
    g = trained(case)
    g.make_optimizer(torch.optim.Adam, lr=1e-2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        run_graph(g, [])

    modules, parameters = by_hand(case)
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss_of(case.forward(modules, X)).backward()
            optimizer.step()
    assert_same(g, modules)


def test_a_scaled_loss_equals_the_loop_written_by_hand() -> None:
    """A GradScaler around `g.optimizer()` steps the same bits."""
    case = CASES["chain"]
    g = trained(case)
    g.make_optimizer(torch.optim.SGD, lr=1e-2)
    scaler, other = (torch.amp.GradScaler("cpu", init_scale=1024.0) for _ in range(2))
    modules, parameters = by_hand(case)
    optimizer = torch.optim.SGD(parameters, lr=1e-2)
    for _ in range(STEPS):
        with g.context() as ctx:
            g.zero_grad()
            output, _ = g.forward(X)
            g.backward(ctx, scaler.scale(loss_of(output)))
        scaler.step(g.optimizer())
        scaler.update()
        optimizer.zero_grad()
        other.scale(loss_of(case.forward(modules, X))).backward()
        other.step(optimizer)
        other.update()
    assert_same(g, modules)
