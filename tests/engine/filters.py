"""Filters that the tests of this folder are made of. Processes import them from here."""

import random

from soma import Filter


class Plus(Filter):
    """Adds a number."""

    def __init__(self, amount=1):
        super().__init__(amount=amount)

    def forward(self, x, state):
        return x + self.amount


class Same(Filter):
    """Gives what it gets."""

    def forward(self, x, state):
        return x


class Other(Same):
    """Does the same under another name."""


class Pairs(Filter):
    """A fan-in: gives what it gets as a list of pairs, in order."""

    def forward(self, x, state):
        return list(x.items())


class Center(Filter):
    """Learns a mean and takes it away."""

    def fit(self, x, y=None):
        return sum(x) / len(x)

    def forward(self, x, state):
        return [value - state for value in x]


class Keeps(Filter):
    """Learns all that it is given, and gives its state."""

    def fit(self, x, y=None):
        return x, y

    def forward(self, x, state):
        return state


class Told(Filter):
    """Writes into a list, given as `told`, whenever it is called."""

    def fit(self, x, y=None):
        self.told.append(("fit", self.name, x, y))
        return self.name

    def forward(self, x, state):
        self.told.append(("forward", self.name, x, state))
        return f"{x}>{self.name}"


class Raises(Filter):
    """Raises `error`, unless that is None."""

    def __init__(self, error):
        super().__init__(error=error)

    def forward(self, x, state):
        if self.error is not None:
            raise self.error
        return x


class RaisesInFit(Raises):
    """Raises `error` when it is fitted."""

    def fit(self, x, y=None):
        Raises.forward(self, x, None)

    def forward(self, x, state):
        return x


class Draws(Filter):
    """Draws a number from Python's generator."""

    _deterministic = False

    def forward(self, x, state):
        return random.random()
