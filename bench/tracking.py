"""What tracking costs: a forward of 8 nodes of 1 ms inside a run over the same outside of one.

Prints the median ratio of interleaved rounds with its bootstrapped 95 % interval, and the ratio
of minima; the same for a training step; then what one `log` and one node's turn take alone.
"""

import os
import tempfile
import time
from collections.abc import Callable

import torch
from measure import Ratio, ratio, verdict
from torch import nn
from torch.nn import functional as F

from soma import DifferentiableFilter, Filter, Graph
from soma.core import NodeFinished, NodeStarted
from soma.tracking import RunListener, track_run

torch.set_num_threads(1)


class Busy(Filter):
    """Computes for a millisecond."""

    def forward(self, x, state):
        end = time.perf_counter() + 1e-3
        while time.perf_counter() < end:
            pass
        return x


class Linear(DifferentiableFilter):
    """A linear layer of width 8."""

    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], 8)


def chain(kind: type[Filter], **settings: object) -> Graph:
    expression = kind()
    for _ in range(7):
        expression = expression >> kind()
    return Graph.somatize(expression, **settings)


def forward(root: str, cache: object) -> Ratio:
    plain, tracked = chain(Busy, cache=cache), chain(Busy, cache=cache)
    with tracked.track_run("bench", root=root) as run:

        def inside():
            tracked.forward(1)
            run.log("loss", 0.5)

        return ratio(inside, lambda: plain.forward(1), round_seconds=0.1)


def training(root: str) -> Ratio:
    x, y = torch.randn(32, 8), torch.randn(32, 8)
    plain, tracked = stepper(x, y), stepper(x, y)
    with tracked.graph.track_run("bench", root=root) as run:

        def inside():
            run.log("loss", tracked().detach())

        return ratio(inside, plain)


def stepper(x: torch.Tensor, y: torch.Tensor) -> Callable[[], torch.Tensor]:
    graph = chain(Linear, cache=None).materialize(x).train()
    graph.make_optimizer()

    def step() -> torch.Tensor:
        with graph.context() as ctx:
            graph.zero_grad()
            loss = F.mse_loss(graph.forward(x)[0], y)
            graph.backward(ctx, loss)
        graph.step(ctx)
        return loss

    step.graph = graph
    return step


def alone(root: str) -> None:
    """Print microseconds for a point and for a node's turn, beside the write they are made of."""
    with track_run("bench", root=root) as run:
        listener = RunListener(run)

        def turn():
            listener(NodeStarted(node="busy", phase="forward"))
            listener(NodeFinished(node="busy", phase="forward", seconds=1e-3))

        descriptor = os.open(run.dir / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        line = b'{"name":"loss","step":1234,"value":0.5,"time":12.345678901}\n'
        for label, call in (
            ("run.log", lambda: run.log("loss", 0.5)),
            ("a node's turn", turn),
        ):
            cost = ratio(call, lambda: os.write(descriptor, line))
            print(
                f"  {label:14} {cost.seconds * 1e6:6.2f} us, "
                f"of which writing a line takes {cost.base_seconds * 1e6:.2f} us"
            )
        os.close(descriptor)


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        print("a forward of 8 nodes of 1 ms and a logged number, over the forward alone")
        print(f"  no cache        {verdict(forward(root, None), 1.02)}")
        print("a training step of 8 nodes of width 8, its loss logged, over the step alone")
        step = training(root)
        print(
            f"  width 8         {step.median:6.3f}  [{step.lower:.3f}, {step.upper:.3f}]   "
            f"({(step.seconds - step.base_seconds) * 1e6:.0f} us for two lines)"
        )
        print("alone")
        alone(root)


if __name__ == "__main__":
    main()
