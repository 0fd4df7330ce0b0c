"""Where a filter runs is data on its node: told by every text and picture, kept by every copy."""

import pytest

from soma import Filter, Graph
from soma.compiler import ExecutionPlan, Remote
from soma.core import Topology
from soma.errors import InvalidTarget


class Add(Filter):
    """Adds one."""

    def forward(self, x: int, state: object) -> int:
        return x + 1


def targets(topology: Topology) -> dict[str, str | None]:
    """Return the worker of each node."""
    return {node.id: node.target for node in topology}


def test_a_filter_is_placed_in_an_expression_or_by_name() -> None:
    """`at` and `target=` say the same, and a filter without either runs here."""
    g = Graph.somatize(Add() >> (Add().at("one") | Add()))
    h = Graph()
    h.node("a", Add(), target="one")
    h.node("b", Add().at("two"))

    assert targets(g.topology) == {"add": None, "add_2": "one", "add_3": None}
    assert targets(h.topology) == {"a": "one", "b": "two"}


def test_a_placement_outlives_copies_and_nesting() -> None:
    """An unfitted graph, and a graph with this one inside, keep it."""
    g = Graph.somatize(Add() >> Add().at("one"), name="inner")
    outer = Graph.somatize(Add() >> g)

    assert targets(g.unfitted().topology) == targets(g.topology)
    assert targets(outer.topology)["inner.add_2"] == "one"


def test_a_plan_tells_it() -> None:
    """The node stands in a `Remote` of the tree, which goes to JSON and back."""
    plan = Graph.somatize(Add() >> Add().at("one")).compile()

    assert any(isinstance(part, Remote) and part.target == "one" for part in plan.root.parts)
    assert "Remote on one" in str(plan)
    assert ExecutionPlan.from_json(plan.to_json()) == plan
    assert [step.node for step in plan.steps()] == ["add", "add_2"]


def test_texts_and_pictures_tell_it() -> None:
    """Text, graph picture and plan picture name the worker."""
    g = Graph.somatize(Add() >> Add().at("worker-1"))

    assert "add_2 on worker-1" in g.to_text()
    assert "on worker-1" in g.to_svg()
    assert "on worker-1" in g.compile().to_svg()
    assert repr(Add() >> Add().at("worker-1")) == "Add() >> Add().at('worker-1')"


@pytest.mark.parametrize("name", ["", "../x", "a b", "ä", "-x", "x" * 65, None, 3])
def test_a_name_that_no_worker_can_have_is_refused(name: object) -> None:
    """It would name a file and a peer."""
    with pytest.raises(InvalidTarget, match="the name of a worker is wanted"):
        Add().at(name)  # type: ignore[arg-type]
    with pytest.raises(InvalidTarget):
        Graph().node("a", Add(), target=name or "")  # type: ignore[arg-type]


def test_a_whole_graph_is_not_placed() -> None:
    """Its filters are, one by one."""
    with pytest.raises(InvalidTarget, match="one by one"):
        Graph().node("inner", Graph.somatize(Add() >> Add()), target="one")
