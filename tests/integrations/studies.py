"""A small graph over digits whose trials may be sick, and an objective; tests share them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import torch
from sklearn.datasets import load_digits
from torch import nn

import soma
from soma.integrations.optuna import suggest, trial_run

Objective = Callable[[optuna.Trial], float]


class Scale(soma.Filter):
    """A plain filter whose divisor is searched."""

    size: float = soma.search(8, 32, step=8, default=16)

    def forward(self, x: Any, state: Any) -> Any:
        return (x / self.size).astype("float32")


class Body(soma.DifferentiableFilter):
    """A hidden layer that is dead where its bias starts far below 0."""

    width: int = soma.search(8, 32, step=8)
    activation: str = soma.search(choices=["relu", "tanh"])
    bias = 0.0

    def build_module(self, input_shape: Any) -> nn.Module:
        linear = nn.Linear(input_shape[-1], self.width)
        with torch.no_grad():
            linear.bias.add_(self.bias)
        return nn.Sequential(linear, {"relu": nn.ReLU(), "tanh": nn.Tanh()}[self.activation])


class Head(soma.DifferentiableFilter):
    """Scores of ten classes, with the learning rate that a trial is to use."""

    rate: float = soma.search(5e-3, 5e-2, scale="log")

    def build_module(self, input_shape: Any) -> nn.Module:
        return nn.Linear(input_shape[-1], 10)


def graph(**body: Any) -> soma.Graph:
    """Return the graph of all studies."""
    return soma.Graph.somatize(Scale() >> Body(**body) >> Head(), name="digits", cache="memory")


def digits() -> tuple[Any, Any, Any, Any]:
    """Return a part of the digits to train on, and one to validate on."""
    x, y = load_digits(return_X_y=True)
    return x[:256], y[:256], x[256:384], y[256:384]


def accuracy_of(
    g: soma.Graph, root: Path, *, epochs: int = 3, rate: float | None = None
) -> Objective:
    """Return an objective that trains a graph with a trial's values and reports each epoch."""
    x, y, x_valid, y_valid = digits()

    def objective(trial: optuna.Trial) -> float:
        mine = suggest(trial, g)
        lr = rate or mine.filter("head").rate
        accuracy = 0.0
        with trial_run(trial, graph=mine, root=root) as run:
            for epoch in range(epochs):
                adam = partial(torch.optim.Adam, lr=lr) if epoch == 0 else None
                mine.fit(x, y, epochs=1, batch_size=32, optimizer=adam, progress=False, seed=epoch)
                accuracy = float((mine.forward(x_valid).argmax(axis=1) == y_valid).mean())
                run.report(accuracy, epoch)
        return accuracy

    return objective
