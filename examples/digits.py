"""Train a mixed graph on scikit-learn's handwritten digits, beside a logistic regression.

    pixels  -> convolution -\
                             join -> trunk -> digit  (which of the ten)
    strokes -> scale -> dense-/            -> loops  (does it have a closed loop)

`strokes` is plain NumPy: no gradient passes it, and the compiler says so before anything runs.
"""

import argparse
import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from torch import nn

from soma import DifferentiableFilter, Filter, Graph

WITH_A_LOOP = [0, 6, 8, 9]


class Pixels(Filter):
    """The image itself, as one channel of numbers from 0 to 1."""

    def forward(self, x, state):
        return (x / 16).reshape(-1, 1, 8, 8)


class Strokes(Filter):
    """How strongly lines run in each of eight directions, in each quarter of the image."""

    _kind = "opaque"

    def forward(self, x, state):
        down, right = np.gradient(x.reshape(-1, 8, 8), axis=(1, 2))
        strength = np.hypot(down, right)
        direction = np.floor((np.arctan2(down, right) + np.pi) / (2 * np.pi) * 8) % 8
        quarters = [
            (strength * (direction == d)).reshape(-1, 2, 4, 2, 4).sum(axis=(2, 4)) for d in range(8)
        ]
        return np.concatenate([one.reshape(-1, 4) for one in quarters], axis=1)


class Scale(Filter):
    """Zero mean and unit spread, as learned from the training data."""

    def fit(self, x, y=None):
        return {"mean": x.mean(axis=0), "spread": x.std(axis=0) + 1e-6}

    def forward(self, x, state):
        return (x - state["mean"]) / state["spread"]


class Convolution(DifferentiableFilter):
    """Two small convolutions over the image."""

    def build_module(self, input_shape):
        return nn.Sequential(
            nn.Conv2d(input_shape[0], 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )


class Dense(DifferentiableFilter):
    """One layer with an activation."""

    def build_module(self, input_shape):
        return nn.Sequential(nn.Linear(input_shape[-1], self.width), nn.ReLU())


class Join(DifferentiableFilter):
    """The fan-in: a dict with what each branch gives, in the order of the branches."""

    def build_module(self, input_shape):
        return nn.BatchNorm1d(sum(shape[-1] for shape in input_shape.values()))

    def forward(self, x, state=None):
        return self._module(torch.cat(list(x.values()), dim=1)), {}


class Trunk(DifferentiableFilter):
    """What both heads share."""

    def build_module(self, input_shape):
        return nn.Sequential(nn.Dropout(0.3), nn.Linear(input_shape[-1], 64), nn.ReLU())


class Head(DifferentiableFilter):
    """One score a class."""

    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], self.classes)


def build() -> Graph:
    """Connect the two branches, the trunk and the two heads."""
    g = Graph.somatize(
        (Pixels() >> Convolution() | Strokes() >> Scale() >> Dense(width=32)) >> Join() >> Trunk()
    )
    g.node("digit", Head(classes=10))
    g.node("loops", Head(classes=2))
    return g.connect("trunk", "digit").connect("trunk", "loops")


def mistaken() -> Graph:
    """Connect a module before an opaque filter: it will not learn."""
    return Graph.somatize(Pixels() >> Convolution() >> Strokes() >> Dense(width=32))


def targets(y: np.ndarray) -> dict[str, np.ndarray]:
    """Return what each head is to answer."""
    return {"digit": y, "loops": np.isin(y, WITH_A_LOOP).astype(np.int64)}


def accuracy(scores: np.ndarray, y: np.ndarray) -> float:
    """Return the share of rows whose best score is the right one."""
    return float((np.argmax(scores, axis=1) == y).mean())


def run(seed: int, epochs: int, *, progress: bool | None) -> tuple[Graph, float, float, float]:
    """Train on one split; return the graph, its accuracy by head, and the regression's."""
    images, digits = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(
        images, digits, test_size=0.3, random_state=seed, stratify=digits
    )
    x, x_valid, y, y_valid = train_test_split(x, y, test_size=0.15, random_state=seed, stratify=y)

    g = build()
    g.fit(
        x,
        targets(y),
        epochs=epochs,
        validation=(x_valid, targets(y_valid)),
        progress=progress,
        seed=seed,
    )
    scores = g.forward(x_test)
    right = targets(y_test)
    regression = LogisticRegression(max_iter=2000).fit(x / 16, y)
    return (
        g,
        accuracy(scores["digit"], right["digit"]),
        accuracy(scores["loops"], right["loops"]),
        float(regression.score(x_test / 16, y_test)),
    )


def main() -> None:
    """Show the graph, what the compiler says of it, and five trainings of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()

    began = time.perf_counter()
    g = build()
    print(g, "\n")
    for diagnostic in g.compile("differentiable").diagnostics:
        print(diagnostic, "\n")

    print(
        "Both are meant to be: nothing before them has to learn. Behind a module it is a mistake:\n"
    )
    print(mistaken().compile("differentiable").diagnostics[-1], "\n")

    rows = []
    for seed in range(options.seeds):
        shown = seed == 0  # the first training is shown, the others are for the comparison
        g, *scores = run(seed, options.epochs, progress=None if shown else False)
        rows.append((seed, *scores))
        if shown:
            print(g.history, "\n")
    print("test accuracy\nseed   graph, digit   graph, loops   logistic regression, digit")
    for seed, digit, loops, regression in rows:
        print(f"{seed:4}   {digit:12.2%}   {loops:12.2%}   {regression:26.2%}")
    won = sum(digit > regression for _, digit, _, regression in rows)
    print(f"\nThe graph is ahead on {won} of {options.seeds} seeds, ", end="")
    print(f"in {time.perf_counter() - began:.0f} s altogether.")
    print(
        "\nLook next: examples/digits.py is this program, README.md tells of its parts, and\n"
        "docs/gradients.md of the warnings above."
    )


if __name__ == "__main__":
    main()
