"""What the tests of traced flows have in common."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from soma import DifferentiableFilter, Graph
from soma.audit import FlowTracer
from soma.core import ModuleFlow


class Bare(DifferentiableFilter):
    """A module that is called as it is."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__(module=module)

    def build_module(self, input_shape):
        return self.module


class Around(DifferentiableFilter):
    """A module, and a function around it for a `forward`."""

    def __init__(self, module: nn.Module, function: Callable) -> None:
        super().__init__(module=module, function=function)

    def build_module(self, input_shape):
        return self.module

    def forward(self, x, state=None):
        return self.function(self._module, x), {}


def in_training(filter: DifferentiableFilter, sample: object) -> Graph:
    """Return a graph of one node, built and in training."""
    graph = Graph.somatize(filter)
    graph.materialize(sample)
    graph.train()
    return graph


def traced(graph: Graph, *batches: object) -> ModuleFlow:
    """Run a forward for each batch, traced each time, and return the flow of the one node."""
    tracer = Always(graph.topology)
    with graph._runner.listeners.listening(watcher=tracer):
        for batch in batches:
            graph.forward(batch)
    (flow,) = tracer.flows()
    return flow


class Always(FlowTracer):
    """A tracer that wants every forward."""

    def wanted(self) -> bool:
        super().wanted()
        return True


def flow_of(module: nn.Module, x: object = None, function: Callable | None = None) -> ModuleFlow:
    """Trace one forward of a module, with `function` around it."""
    x = torch.randn(4, 6) if x is None else x
    filter = Bare(module) if function is None else Around(module, function)
    return traced(in_training(filter, x), x)


def edges(flow: ModuleFlow) -> set[tuple[str, str, str | None]]:
    """Return the edges without their shares."""
    return {(edge.source, edge.target, edge.cut) for edge in flow.edges}


def arrows(text: str) -> set[tuple[str, str, str | None]]:
    """Read edges as `a > b > c, a >detach> d`."""
    found = set()
    for chain in text.replace("\n", " ").split(","):
        words = chain.split()
        for source, sign, target in zip(words[:-2:2], words[1::2], words[2::2], strict=True):
            found.add((source, target, sign.strip(">") or None))
    return found


def node(flow: ModuleFlow, id: str):
    """Return the node of that id."""
    return next(one for one in flow.nodes if one.id == id)


class Join(nn.Module):
    """Two layers side by side, an in-place activation, and a dict for an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(6, 3)
        self.right = nn.Linear(6, 3)
        self.act = nn.ReLU(inplace=True)
        self.head = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        joined = torch.cat([self.act(self.left(x)), self.right(x)], dim=1)
        return {"logits": self.head(joined), "code": joined}
