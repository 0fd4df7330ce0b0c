"""Graphs that the tests of `soma.as_estimator` share; loky's processes import them from here."""

from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import nn

import soma

ADAM = partial(torch.optim.Adam, lr=0.05)


class Dense(soma.DifferentiableFilter):
    """A hidden layer."""

    width = 16

    def build_module(self, input_shape: Any) -> nn.Module:
        return nn.Sequential(nn.Linear(input_shape[-1], self.width), nn.Tanh())


class Head(soma.DifferentiableFilter):
    """A linear layer, as wide as it is told."""

    def __init__(self, classes: int = 3, bias: bool = True) -> None:
        super().__init__(classes=classes, bias=bias)

    def build_module(self, input_shape: Any) -> nn.Module:
        return nn.Linear(input_shape[-1], self.classes, self.bias)


class Scale(soma.Filter):
    """A plain scaler of arrays."""

    def fit(self, x: Any, y: Any = None) -> Any:
        return np.mean(x, axis=0), np.std(x, axis=0) + 1e-6

    def forward(self, x: Any, state: Any) -> Any:
        return (np.asarray(x) - np.asarray(state[0])) / np.asarray(state[1])


def network(classes: int = 4) -> soma.Graph:
    """Return a graph that ends in a module and begins with an estimator."""
    g = soma.Graph(cache="memory")
    g.node("scale", StandardScaler())
    g.node("body", Dense())
    g.node("head", Head(classes=classes))
    return g.connect("scale", "body").connect("body", "head")


def estimators() -> soma.Graph:
    """Return a graph of estimators alone."""
    return soma.Graph.somatize(soma.sk(StandardScaler()) >> LogisticRegression(), cache=None)


def plain(*, head: int) -> soma.Graph:
    """Return a graph whose first filter does not look at what it is given."""
    return soma.Graph.somatize(Scale() >> Dense() >> Head(head), cache=None)


def blobs(labels: Any = (0, 1, 2)) -> tuple[Any, Any]:
    """Return three clouds of points and their labels."""
    random = np.random.default_rng(0)
    y = np.arange(90) % 3
    return random.normal(size=(90, 4)) + 3 * y[:, None], np.asarray(labels)[y]
