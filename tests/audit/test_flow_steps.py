"""Several steps laid over each other, and which steps are looked at."""

from pathlib import Path

import pytest
import torch
from torch import nn

from soma import DifferentiableFilter, Graph
from soma.audit import FlowTracer
from soma.audit._flow._merge import MergedFlow
from soma.tracking import RunRecord
from tests.audit.flows import Around, edges, in_training, node, traced


def test_a_branch_has_a_share() -> None:
    """What ran in some steps only has its share of them."""

    def forward(m, x):
        return m["warm"](x) if x.mean() > 0 else m["cold"](x)

    module = nn.ModuleDict({"warm": nn.Linear(6, 2), "cold": nn.Linear(6, 2)})
    x = torch.ones(4, 6)
    flow = traced(in_training(Around(module, forward), x), x, x, x, -x)
    shares = {(edge.source, edge.target): edge.share for edge in flow.edges}

    assert (node(flow, "warm").share, node(flow, "cold").share) == (0.75, 0.25)
    assert (shares["input", "warm"], shares["cold", "output"]) == (0.75, 0.25)


def test_a_loop_as_long_as_the_data() -> None:
    """Each round of a loop is a call, with the share of steps that got there."""

    def forward(m, x):
        for _ in range(int(x.abs().max())):
            x = m(x) + 1
        return x

    x = torch.ones(4, 6)
    flow = traced(in_training(Around(nn.Linear(6, 6), forward), x), x, 2 * x)

    assert node(flow, "Linear").share == node(flow, "add_1").share == 1.0
    assert node(flow, "Linear#2").share == node(flow, "add_2").share == 0.5
    assert ("add_1", "Linear#2", None) in edges(flow)


def test_fewer_and_fewer_steps_are_traced() -> None:
    """Of twenty forwards the tracer looks at numbers 1, 2, 4, 8 and 16."""
    x = torch.randn(4, 6)
    graph = in_training(Around(nn.Linear(6, 6), lambda m, x: m(x)), x)
    tracer = FlowTracer(graph.topology)
    with graph._runner.listeners.listening(watcher=tracer):
        for _ in range(20):
            graph.forward(x)

    assert [flow.calls for flow in tracer.flows()] == [5]


def test_a_fit_is_traced() -> None:
    """A tracer sees the training in `fit`, and of several nodes each has its flow."""

    class Dense(DifferentiableFilter):
        def build_module(self, input_shape):
            return nn.Sequential(nn.Linear(input_shape[-1], 4), nn.ReLU())

    graph = Graph.somatize(Dense() >> Dense())
    tracer = FlowTracer(graph.topology)
    with graph._runner.listeners.listening(watcher=tracer):
        graph.fit(torch.randn(32, 6), torch.randn(32, 4), epochs=2, batch_size=16)

    assert [flow.node for flow in tracer.flows()] == list(graph.topology.nodes)
    assert {flow.calls for flow in tracer.flows()} == {3}


def test_aux_is_an_end_of_its_own() -> None:
    """What a filter says beside its output is seen to come from somewhere."""

    class Telling(DifferentiableFilter):
        def build_module(self, input_shape):
            return nn.ModuleDict({"a": nn.Linear(6, 4), "b": nn.Linear(4, 2)})

        def forward(self, x, state=None):
            code = self._module["a"](x)
            return self._module["b"](code), {"code": code, "weight": 0.5}

    x = torch.randn(4, 6)
    flow = traced(in_training(Telling(), x), x)

    assert [one.id for one in flow.nodes if one.kind == "output"] == ["output", "output.code"]
    assert ("a", "output.code", None) in edges(flow)


@pytest.mark.parametrize("name", ["input", "output"])
def test_a_class_may_be_called_as_an_end_is(name: str) -> None:
    """Also where the module is shown as one box, each node has an id of its own."""
    merged = MergedFlow("node", "Node")
    merged.take(None, type(name, (nn.Linear,), {})(6, 2), "compiled: only its ends were seen")
    ids = [node.id for node in merged.flow().nodes]

    assert len({*ids}) == 3
    assert name in ids


def test_what_holds_half_a_character_trains_and_is_recorded(tmp_path: Path) -> None:
    """The name of a part, and what it says of itself."""

    class Odd(nn.Linear):
        def extra_repr(self) -> str:
            return "\ud800"

    module = nn.Sequential()
    module.add_module("\ud800", Odd(6, 2))
    graph = Graph.somatize(Around(module, lambda m, x: m(x)), cache=None)
    with graph.track_run("test", root=tmp_path) as run:
        graph.fit(torch.zeros(4, 6), torch.zeros(4, 2), progress=False)

    (flow,) = RunRecord(run.dir).modules()
    assert (node(flow, "?").path, node(flow, "?").detail) == ("?", "?")
