"""A training step through the graph over the same step written by hand.

Prints, for each size, the median ratio of interleaved rounds with its bootstrapped 95 %
interval, and the ratio of minima. One torch thread.
"""

import gc

import torch
from measure import Ratio, ratio, verdict
from torch import nn
from torch.nn import functional as F

from soma import DifferentiableFilter, Graph

torch.set_num_threads(1)


class Linear(DifferentiableFilter):
    """A linear layer in the program itself."""

    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], self.width)


class Overridden(Linear):
    """The same layer through a `forward` of its own."""

    def forward(self, x, state=None):
        return self._module(x), {}


class Add(DifferentiableFilter):
    """A fan-in that adds its branches."""

    def build_module(self, input_shape):
        return nn.Linear(next(iter(input_shape.values()))[-1], self.width)

    def forward(self, x, state=None):
        return self._module(sum(x.values())), {}


def chain(nodes: int, width: int, batch: int) -> Ratio:
    x, y = torch.randn(batch, width), torch.randn(batch, width)
    expression = Linear(width=width)
    for _ in range(nodes - 1):
        expression = expression >> Linear(width=width)
    g = Graph.somatize(expression)

    def by_hand(modules, value):
        for module in modules:
            value = module(value)
        return value

    return step_ratio(g, by_hand, x, y)


def fork(branches: int, width: int, batch: int) -> Ratio:
    x, y = torch.randn(batch, width), torch.randn(batch, width)
    sides = Linear(width=width)
    for _ in range(branches - 1):
        sides = sides | Linear(width=width)
    g = Graph.somatize(Linear(width=width) >> sides >> Add(width=width))

    def by_hand(modules, value):
        stem, *middle, last = modules
        value = stem(value)
        return last(sum([one(value) for one in middle]))

    return step_ratio(g, by_hand, x, y)


def step_ratio(g, by_hand, x, y) -> Ratio:
    g.materialize(x)
    g.train()
    # The same modules and the same optimizer both ways: all that differs is who calls them.
    optimizer = g.make_optimizer(torch.optim.Adam, lr=1e-3)
    modules = [filter._module for _, filter in g.filters()]

    def through_the_graph():
        with g.context() as ctx:
            g.zero_grad()
            out, _ = g.forward(x)
            loss = F.mse_loss(out, y)
            g.backward(ctx, loss)
        g.step(ctx)

    def raw():
        optimizer.zero_grad()
        out = by_hand(modules, x)
        loss = F.mse_loss(out, y)
        loss.backward()
        optimizer.step()

    gc.collect()
    return ratio(through_the_graph, raw)


def walk(nodes: int, kind: type[DifferentiableFilter]) -> float:
    """Return microseconds a node that the walk costs over `nn.Sequential`, without gradients."""
    x = torch.randn(1, 1)
    expression = kind(width=1)
    for _ in range(nodes - 1):
        expression = expression >> kind(width=1)
    g = Graph.somatize(expression)
    g.materialize(x)
    g.train()
    modules = [filter._module for _, filter in g.filters()]
    for module in modules:
        # The layer itself is not what is timed: its place is taken by the cheapest of calls.
        module.forward = _same
    sequence = nn.Sequential(*modules)
    with torch.no_grad():
        result = ratio(lambda: g.forward(x), lambda: sequence(x))
    return (result.seconds - result.base_seconds) / nodes * 1e6


def _same(x):
    return x


def inference(rows: int, width: int) -> Ratio:
    x = torch.randn(rows, width)
    expression = Linear(width=width)
    for _ in range(3):
        expression = expression >> Linear(width=width)
    g = Graph.somatize(expression, cache=None)
    g.materialize(x)
    g.freeze()
    sequence = nn.Sequential(*[filter._module for _, filter in g.filters()])

    def raw():
        with torch.no_grad():
            return sequence(x)

    return ratio(lambda: g.forward(x), raw)


def main() -> None:
    print("training step, chain of nodes of width 8, batch 32, over the loop by hand")
    for nodes, target in ((2, 1.03), (8, 1.02), (32, 1.02), (128, 1.02)):
        print(f"  {nodes:4} nodes      {verdict(chain(nodes, 8, 32), target)}")
    print("training step, chain of 4 nodes of width 1024, batch 32")
    print(f"  width 1024      {verdict(chain(4, 1024, 32), 1.01)}")
    print("training step, fork and fan-in, width 8, batch 32")
    for branches in (2, 5, 8):
        print(f"  {branches + 2:4} nodes      {verdict(fork(branches, 8, 32), 1.03)}")
    print("the walk alone, microseconds a node over nn.Sequential")
    for kind, target in ((Linear, 0.1), (Overridden, 1.0)):
        for nodes in (10, 100, 1000):
            cost = walk(nodes, kind)
            met = "met" if cost <= target else "MISSED"
            name = "module itself" if kind is Linear else "own forward"
            print(f"  {name:13} {nodes:5} nodes  {cost:6.3f} us  target {target:4.1f}  {met}")
    print("inference after freeze, 4 nodes, no cache, over the module under no_grad")
    for label, rows, width, target in (
        ("1 KB", 32, 8, 1.10),
        ("256 KB", 256, 256, 1.03),
        ("4 MB", 4096, 256, 1.03),
    ):
        print(f"  {label:8}        {verdict(inference(rows, width), target)}")


if __name__ == "__main__":
    main()
