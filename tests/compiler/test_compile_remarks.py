"""Warnings and notes beside gradient flow."""

from textwrap import dedent

from soma.compiler import Compiler
from soma.core import Composable, Diagnostic, Filter, Topology


class Dense(Filter):
    _differentiable = True
    _kind = "trainable"
    _has_module = True


class Relu(Filter):
    _differentiable = True


class Scaler(Filter):
    _differentiable = True

    def fit(self, x: object, y: object = None) -> object:
        return 0


class Forest(Filter):
    def fit(self, x: object, y: object = None) -> object:
        return 0


class Log(Filter): ...


def remarks(topology: Topology, code: str) -> list[Diagnostic]:
    found = Compiler().compile(topology).diagnostics
    return [one for one in found if one.code == code]


def declared(expression: Composable) -> Topology:
    topology = Topology()
    topology.add_expression(expression)
    return topology


def text(expected: str) -> str:
    return dedent(expected).strip("\n")


def test_fitting_below_a_module_warns() -> None:
    """A filter that fits on what a module gives sees its initial weights."""
    (found,) = remarks(declared(Dense() >> Forest()), "fitted-on-untrained")

    assert str(found) == text(
        """
        warning[fitted-on-untrained]: `Forest` is fitted before `Dense` is trained
          --> pipeline node 2
          |
          | [Dense] → [Forest]
          |           ^^^^^^^^
          |           This filter is fitted once, on what the initial weights give.
          |           Training changes what [Dense] gives; the fitted state stays.
          |
          = help: Move it above [Dense], or train and freeze [Dense] in a graph of its own and
                  fit this filter on what that gives.
        """
    )


def test_the_module_may_be_far_above() -> None:
    """Distance does not help: what comes from a module stays untrained on its way."""
    (found,) = remarks(declared(Dense() >> Relu() >> Log() >> Scaler()), "fitted-on-untrained")

    assert (found.node, found.drawn) == ("scaler", ("Dense", "…", "Scaler"))


def test_a_fitted_differentiable_filter_is_no_module() -> None:
    """A scaler has its state before training starts; what reads it may fit on it."""
    assert not remarks(declared(Scaler() >> Forest() >> Dense()), "fitted-on-untrained")


def test_a_node_without_links_is_noted() -> None:
    """A node that nothing links to is shown with its place."""
    topology = declared(Relu() >> Dense())
    topology.add(Log())
    (found,) = remarks(topology, "unconnected")

    assert str(found) == text(
        """
        note[unconnected]: `Log` has no links; it is a root and a leaf by itself
          --> pipeline node 3
          |
          = help: Link it with `g.connect`, or take it out, unless it is meant to stand alone.
        """
    )


def test_one_node_needs_no_link() -> None:
    """Several without any are noted, one is not."""
    assert not remarks(declared(Dense()), "unconnected")
    assert len(remarks(declared(Dense() | Relu()), "unconnected")) == 2


def test_remarks_come_in_topological_order() -> None:
    """All checks together follow the order of the nodes."""
    topology = declared(Dense() >> Forest() >> Dense() >> Forest())
    topology.add(Log())
    found = Compiler().compile(topology).diagnostics
    positions = [one.position for one in found if one.position is not None]

    assert len(positions) == len(found) == 5
    assert positions == sorted(positions)
