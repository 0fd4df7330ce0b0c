"""Training goes on after a load exactly as if it had never stopped."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn, optim
from torch.optim import lr_scheduler as rates

from soma import DifferentiableFilter, Graph
from soma.errors import CheckpointError
from tests.checkpoint.filters import edited
from tests.training.filters import Dense, Standardize, data

X, Y = data()


class Body(DifferentiableFilter):
    """Dropout and batch norm, which both have more than weights."""

    def build_module(self, input_shape):
        return nn.Sequential(
            nn.Linear(input_shape[-1], 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3)
        )


def graph() -> Graph:
    """Return a graph that is ready for a loop."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    g = Graph.somatize(Standardize() >> Body() >> Dense(3), cache=None)
    return g.fit(X, Y, epochs=0).train()


def train(g: Graph, steps: int, scheduler: Any = None) -> None:
    """Take some steps on rows that all three generators choose."""
    for _ in range(steps):
        rows = torch.randperm(len(X))[: random.randint(8, 16)]
        noise = float(np.random.normal()) * 0.01

        def closure(rows: Any = rows, noise: float = noise) -> torch.Tensor:
            g.zero_grad()
            output, _ = g.forward(X[rows])
            loss = nn.functional.mse_loss(output, Y[rows] + noise)
            g.backward(None, loss)
            return loss

        if isinstance(g.optimizer(), optim.LBFGS):
            g.step(closure=closure)
        else:
            closure()
            g.step()
        if scheduler is not None:
            scheduler.step()


def everything(g: Graph) -> dict[str, Any]:
    """Return the bits of weights, buffers, optimizers and generators."""
    made = g.optimizer()
    found: dict[str, Any] = {"weights": g.state(), "random": torch.get_rng_state()}
    for name, one in (made if isinstance(made, dict) else {"": made}).items():
        found[name] = one.state_dict()
    return found


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same, tensors bit for bit."""
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def resumed(g: Graph, path: Path, **options: Any) -> Graph:
    """Return the graph of another process: saved, everything disturbed, loaded."""
    g.save(path, optimizer=True, random=True)
    torch.manual_seed(99)
    random.seed(99)
    np.random.seed(99)
    return Graph.load(path, cache=None, **options).train()


def in_groups(g: Graph) -> optim.Optimizer:
    """Return an optimizer with two groups, in another order than the graph's."""
    weights = dict(g.named_parameters())
    head = [one for name, one in weights.items() if name.startswith("dense")]
    body = [one for name, one in weights.items() if name.startswith("body")]
    groups = [{"params": head, "lr": 0.1}, {"params": body[::-1], "weight_decay": 0.01}]
    return optim.SGD(groups, lr=0.01, momentum=0.9, nesterov=True)


OPTIMIZERS: dict[str, Callable[[Graph], Any]] = {
    "Adam": lambda g: optim.Adam(g.parameters(), lr=1e-2),
    "Adam fused": lambda g: optim.Adam(g.parameters(), lr=1e-2, fused=True, amsgrad=True),
    "Adam tensor rate": lambda g: optim.Adam(g.parameters(), lr=torch.tensor(1e-2)),
    "AdamW": lambda g: optim.AdamW(g.parameters(), lr=1e-2),
    "SGD": lambda g: optim.SGD(g.parameters(), lr=1e-2),
    "SGD momentum": lambda g: optim.SGD(g.parameters(), lr=1e-2, momentum=0.9),
    "groups": in_groups,
    "LBFGS": lambda g: optim.LBFGS(g.parameters(), lr=0.1, max_iter=3, history_size=4),
    **{
        name: partial(lambda g, name: getattr(optim, name)(g.parameters()), name=name)
        for name in (
            "Adadelta", "Adafactor", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop",
            "Rprop",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_twenty_more_steps_are_the_same(tmp_path: Path, name: str) -> None:
    """After 5 steps, a file and 20 more, every bit is that of 25 steps."""
    whole = graph()
    whole.set_optimizer(OPTIMIZERS[name](whole))
    train(whole, 25)
    expected = everything(whole)
    stopped = graph()
    stopped.set_optimizer(OPTIMIZERS[name](stopped))
    train(stopped, 5)
    again = resumed(stopped, tmp_path / "g.soma")
    train(again, 20)

    assert same(everything(again), expected)
    assert type(again.optimizer()) is type(whole.optimizer())
    assert again.optimizer().defaults.keys() == whole.optimizer().defaults.keys()


def test_several_optimizers_keep_their_names(tmp_path: Path) -> None:
    """Each goes on by its own name."""
    g = graph()
    weights = dict(g.named_parameters())
    head = [one for name, one in weights.items() if name.startswith("dense")]
    body = [one for name, one in weights.items() if name.startswith("body")]
    g.set_optimizer({"body": optim.Adam(body), "head": optim.SGD(head, lr=0.1)})
    train(g, 3)
    h = resumed(g, tmp_path / "g.soma")
    h.step(only="head")

    assert list(h.optimizer()) == ["body", "head"]
    assert type(h.optimizer()["head"]) is optim.SGD


SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "StepLR": partial(rates.StepLR, step_size=3, gamma=0.5),
    "OneCycleLR": partial(rates.OneCycleLR, max_lr=0.1, total_steps=40),
    "LinearLR": partial(rates.LinearLR, start_factor=0.1, total_iters=10),
    "CosineAnnealingLR": partial(rates.CosineAnnealingLR, T_max=12),
    "LambdaLR": partial(rates.LambdaLR, lr_lambda=lambda epoch: 0.9**epoch),
    "SequentialLR": lambda one: rates.SequentialLR(
        one, [rates.LinearLR(one, 0.1, total_iters=4), rates.StepLR(one, 3)], [4]
    ),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_go_on(tmp_path: Path, name: str) -> None:
    """A schedule whose state came along in `extra` gives the rates it would have given."""
    make = SCHEDULERS[name]
    whole = graph()
    train(whole, 25, make(whole.make_optimizer(optim.SGD, lr=0.05, momentum=0.9)))
    expected = everything(whole)

    g = graph()
    scheduler = make(g.make_optimizer(optim.SGD, lr=0.05, momentum=0.9))
    train(g, 5, scheduler)
    extra = {"scheduler": scheduler.state_dict()}
    g.save(tmp_path / "g.soma", optimizer=True, random=True, extra=extra)

    h = Graph.load(tmp_path / "g.soma", cache=None).train()
    state = h.optimizer().state_dict()
    scheduler = make(h.optimizer())
    scheduler.load_state_dict(h.extra["scheduler"])
    h.optimizer().load_state_dict(state)
    train(h, 20, scheduler)

    assert same(everything(h), expected)


def test_fit_goes_on_with_its_optimizer(tmp_path: Path) -> None:
    """A second `fit` after a load is the second `fit` without one."""

    def fitted(g: Graph) -> Graph:
        return g.fit(X, Y, epochs=3, batch_size=16, progress=False)

    g = fitted(graph())
    g.save(tmp_path / "g.soma", optimizer=True, random=True)
    expected = everything(fitted(g))
    h = fitted(Graph.load(tmp_path / "g.soma", cache=None))

    assert same(everything(h), expected)
    assert torch.equal(h.forward(X), g.forward(X))


def test_without_being_asked_neither_is_stored(tmp_path: Path) -> None:
    """By default a file has no optimizer, and loading leaves the generators alone."""
    g = graph()
    g.make_optimizer()
    g.save(tmp_path / "g.soma")
    torch.manual_seed(7)
    h = Graph.load(tmp_path / "g.soma")
    drawn = torch.rand(2)
    torch.manual_seed(7)

    assert h.optimizer() is None
    assert torch.equal(torch.rand(2), drawn)


def test_state_in_another_type_than_its_weights_stays(tmp_path: Path) -> None:
    """Moments in float32 beside weights in bfloat16 are not rounded."""
    g = graph().to(dtype=torch.bfloat16)
    optimizer = g.make_optimizer(optim.SGD, lr=0.1, momentum=0.9)
    for weight in g.parameters():
        optimizer.state[weight]["momentum_buffer"] = torch.randn(weight.shape)
    h = resumed(g, tmp_path / "g.soma")

    assert same(
        [held["momentum_buffer"] for held in h.optimizer().state.values()],
        [held["momentum_buffer"] for held in optimizer.state.values()],
    )


class Own(optim.SGD):
    """An optimizer of the user's."""

    def __init__(self, params: Any, wanted: object, lr: float = 0.1) -> None:
        super().__init__(params, lr=lr)


def test_an_optimizer_that_cannot_be_made_again_is_named(tmp_path: Path) -> None:
    """One whose constructor needs more than its defaults is an error with a way out."""
    g = graph()
    g.set_optimizer(Own(g.parameters(), wanted=1))
    with pytest.raises(CheckpointError, match=r"optimizer `optimizer` cannot be made again: Type"):
        resumed(g, tmp_path / "g.soma")


def test_tensors_of_no_node_are_refused(tmp_path: Path) -> None:
    """An optimizer that also moves a weight of the user's own cannot be saved with the graph."""
    g = graph()
    g.set_optimizer(optim.SGD([*g.parameters(), nn.Parameter(torch.zeros(2))], lr=0.1))
    with pytest.raises(CheckpointError, match=r"of shape \(2,\) that is a weight of no node"):
        g.save(tmp_path / "g.soma", optimizer=True)


@pytest.mark.parametrize("name", [("os", "system"), ("torch.nn", "Linear"), ("mine", "Adam")])
def test_only_optimizers_are_made(tmp_path: Path, name: tuple[str, str]) -> None:
    """The class of an optimizer needs leave like that of a filter."""
    g = graph()
    g.make_optimizer()
    g.save(tmp_path / "g.soma", optimizer=True)

    def change(manifest: Any) -> None:
        entry = manifest["training"]["optimizers"]["optimizer"]
        entry["class_module"], entry["class_name"] = name

    with pytest.raises(CheckpointError, match="nothing is imported"):
        Graph.load(edited(tmp_path / "g.soma", change))
