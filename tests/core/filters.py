"""Filters that do nothing: the tests of this folder are about names and links."""

from soma import Filter


class A(Filter):
    def forward(self, x, state):
        return x


class B(A):
    pass


class C(A):
    pass


class D(A):
    pass


class E(A):
    pass


class F(A):
    pass


class G(A):
    pass


class LoadText(A):
    pass


class Scale(Filter):
    """A filter with parameters and an `__init__` that hands them on."""

    def __init__(self, factor, offset=0, *, unit="cm"):
        super().__init__(factor=factor, offset=offset, unit=unit)

    def forward(self, x, state):
        return [self.factor * value + self.offset for value in x]


class Silent(Filter):
    """A filter whose `__init__` never calls `super().__init__`."""

    def __init__(self, width, /, *names, deep=False):
        self.total = width + len(names)


class Learns(Filter):
    """A filter that learns a state."""

    def fit(self, x, y=None):
        return sum(x)

    def forward(self, x, state):
        return state
