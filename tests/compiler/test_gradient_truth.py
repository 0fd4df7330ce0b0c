"""What the compiler says of gradients is what torch does with them."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soma.compiler import Compiler
from soma.core import Diagnostic, Filter, NodeId, Topology

torch = pytest.importorskip("torch")


class Module(Filter):
    _differentiable = True
    _kind = "trainable"


class Plain(Filter):
    _differentiable = True


class Opaque(Filter):
    _kind = "opaque"


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Random graphs of up to twelve nodes; the node `n3` has a class `N3` of its own."""
    topology = Topology()
    kinds = draw(st.lists(st.sampled_from([Module, Plain, Opaque]), min_size=1, max_size=12))
    for index, kind in enumerate(kinds):
        topology.add(type(f"N{index}", (kind,), {})(), f"n{index}")
        earlier = st.integers(0, max(index - 1, 0))
        for source in draw(st.sets(earlier, max_size=3)) if index else ():
            topology.connect(f"n{source}", f"n{index}")
    return topology


def run(topology: Topology) -> dict[NodeId, torch.Tensor]:
    """Run a graph with autograd live, and back from all leaves; return one probe a node.

    A probe is the parameter of a module, and a zero added to the output of a plain filter.
    """
    wiring = topology.wiring()
    probes, outputs = {}, {}
    for node in topology:
        sources = [outputs[one] for one in wiring.predecessors[node.id]]
        x = torch.stack(sources).sum(0) if sources else torch.ones(2)
        if isinstance(node.filter, Opaque):
            with torch.no_grad():
                outputs[node.id] = torch.floor(x.detach())
        else:
            probe = probes[node.id] = torch.ones(2, requires_grad=True)
            learns = isinstance(node.filter, Module)
            outputs[node.id] = x * probe if learns else torch.tanh(x) + (probe - 1)
    leaves = [outputs[leaf] for leaf in wiring.leaves if outputs[leaf].requires_grad]
    if leaves:
        torch.stack(leaves).sum().backward()
    return probes


def named(found: list[Diagnostic], role: str) -> set[NodeId]:
    return {label.node for one in found for label in one.labels if label.role == role}


@settings(max_examples=300, deadline=None)
@given(topologies())
def test_cut_off_are_exactly_the_nodes_without_a_gradient(topology: Topology) -> None:
    """The nodes labelled `cut-off` are those that autograd leaves without a gradient."""
    probes = run(topology)
    found = Compiler().check_gradient_flow(topology)

    assert named(found, "cut-off") == {node for node, one in probes.items() if one.grad is None}


@settings(max_examples=300, deadline=None)
@given(topologies())
def test_what_is_said_to_get_gradients_gets_some(topology: Topology) -> None:
    """The nodes labelled `learns` and `restart` have a gradient after the backward pass."""
    probes = run(topology)
    found = Compiler().check_gradient_flow(topology)

    assert all(probes[node].grad is not None for node in named(found, "learns"))
    assert all(probes[node].grad is not None for node in named(found, "restart"))


@settings(max_examples=200, deadline=None)
@given(topologies())
def test_each_diagnostic_is_one_run_beside_something_differentiable(topology: Topology) -> None:
    """An opaque node is in one run, unless nothing around the run is differentiable."""
    wiring = topology.wiring()
    found = Compiler().check_gradient_flow(topology)
    cut = [label.node for one in found for label in one.labels if label.role == "cut"]

    assert len(cut) == len(set(cut))
    for node in wiring.order:
        near = {*wiring.predecessors[node], *wiring.successors[node]}
        opaque = isinstance(topology.nodes[node].filter, Opaque)
        if opaque and any(topology.nodes[one].filter._differentiable for one in near):
            assert node in cut


@settings(max_examples=200, deadline=None)
@given(topologies())
def test_a_warning_has_a_reason(topology: Topology) -> None:
    """A warning cuts something off or stands at a root; a note does neither."""
    for one in Compiler().check_gradient_flow(topology):
        roles = {label.role for label in one.labels}
        at_root = not roles & {"cut-off", "learns"}
        assert (one.level == "warning") == ("cut-off" in roles or at_root)


@settings(max_examples=200, deadline=None)
@given(topologies())
def test_the_drawn_line_is_a_path_of_the_graph(topology: Topology) -> None:
    """Neighbours in the drawn line are linked, and exactly its opaque nodes are marked."""
    successors = topology.wiring().successors
    for one in Compiler().check_gradient_flow(topology):
        way = [label.lower() for label in one.drawn]
        marked = range(*one.marked)

        assert all(b in successors[a] for a, b in pairwise(way) if "…" not in (a, b))
        for index, node in enumerate(way):
            if node != "…":
                assert isinstance(topology.nodes[node].filter, Opaque) == (index in marked)
