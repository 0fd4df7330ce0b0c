"""The shape of plans, as they are printed."""

from textwrap import dedent

import pytest

from soma.compiler import Compiler, Composite, Execute, Sequence
from soma.core import Composable, Filter, Topology


class A(Filter): ...


class B(A): ...


class C(A): ...


class D(A): ...


class X(Filter):
    _differentiable = True


class Y(X): ...


class Z(X): ...


def tree(expression: Composable) -> str:
    topology = Topology()
    topology.add_expression(expression)
    return printed(topology)


def printed(topology: Topology) -> str:
    """Return the printed plan without its head and the line that counts diagnostics."""
    lines = str(Compiler().compile(topology)).splitlines()[1:]
    return "\n".join(line for line in lines if not line.endswith("see `diagnostics`"))


def text(expected: str) -> str:
    return dedent(expected).strip("\n")


def test_a_chain_is_a_sequence() -> None:
    """Nodes one after the other stand in one sequence."""
    assert tree(A() >> B() >> C()) == text(
        """
        └─ Sequence
           ├─ a
           ├─ b
           └─ c
        """
    )


def test_a_fork_that_joins_is_parallel_inside() -> None:
    """Branches between a fork and a fan-in are order-free."""
    assert tree(A() >> (B() >> C() | D()) >> A()) == text(
        """
        └─ Sequence
           ├─ a
           ├─ Parallel
           │  ├─ Sequence
           │  │  ├─ b
           │  │  └─ c
           │  └─ d
           └─ a_2
        """
    )


def test_two_roots_crossing_into_two_heads_are_two_parallels() -> None:
    """Where every first node feeds every second one, there is a cut between them."""
    assert tree((A() | B()) >> (C() | D())) == text(
        """
        └─ Sequence
           ├─ Parallel
           │  ├─ a
           │  └─ b
           └─ Parallel
              ├─ c
              └─ d
        """
    )


@pytest.mark.parametrize("target", ["c", "y"])
def test_a_skip_link_changes_nothing(target: str) -> None:
    """A link over one node, or over a whole fork, leaves the order as it is."""
    topology = Topology()
    topology.add_expression(A() >> B() >> (C() >> D() | X()) >> Y())
    plain = str(Compiler().compile(topology))
    topology.connect("a", target)

    assert str(Compiler().compile(topology)) == plain


def test_what_is_not_linked_is_parallel() -> None:
    """Two chains without a link between them run side by side."""
    assert tree(A() >> B() | C()) == text(
        """
        └─ Parallel
           ├─ Sequence
           │  ├─ a
           │  └─ b
           └─ c
        """
    )


def test_what_has_no_cut_goes_level_by_level() -> None:
    """Links in the form of an N leave two levels."""
    topology = Topology()
    for filter in (A(), B(), C(), D()):
        topology.add(filter)
    for link in [("a", "c"), ("a", "d"), ("b", "d")]:
        topology.connect(*link)

    assert printed(topology) == text(
        """
        └─ Sequence
           ├─ Parallel
           │  ├─ a
           │  └─ b
           └─ Parallel
              ├─ c
              └─ d
        """
    )


def test_differentiable_neighbours_are_a_composite() -> None:
    """Stretches of two or more are grouped, a single node is not."""
    assert tree(X() >> A() >> Y() >> (Z() | X()) >> B()) == text(
        """
        └─ Sequence
           ├─ x
           ├─ a
           ├─ Composite
           │  ├─ y
           │  └─ Parallel
           │     ├─ z
           │     └─ x_2
           └─ b
        """
    )


def test_a_graph_that_is_differentiable_throughout_is_one_composite() -> None:
    """No composite stands inside another."""
    assert tree(X() >> (Y() >> X() | Z()) >> X()) == text(
        """
        └─ Composite
           ├─ x
           ├─ Parallel
           │  ├─ Sequence
           │  │  ├─ y
           │  │  └─ x_2
           │  └─ z
           └─ x_3
        """
    )


def test_branches_beside_opaque_ones_keep_their_composites() -> None:
    """A stretch inside a parallel is found as well."""
    assert tree(A() >> (X() >> Y() | B())) == text(
        """
        └─ Sequence
           ├─ a
           └─ Parallel
              ├─ Composite
              │  ├─ x
              │  └─ y
              └─ b
        """
    )


def test_one_node_is_one_step() -> None:
    """A graph of one node needs no holder."""
    topology = Topology()
    topology.add_expression(A())
    plan = Compiler().compile(topology, cache=object())

    assert plan.root == Execute("a", (), differentiable=False, uncached=None)
    assert str(plan) == "ExecutionPlan: inference, 1 node\n└─ a"


def test_steps_follow_the_order_of_declaration() -> None:
    """Steps come in the topological order of the wiring, whatever the tree looks like."""
    topology = Topology()
    for filter in (A(), B(), C(), D()):
        topology.add(filter)
    topology.connect("a", "c")
    topology.connect("b", "d")
    steps = Compiler().compile(topology).steps()

    assert [step.node for step in steps] == ["a", "b", "c", "d"]
    assert steps[2].inputs == ("a",)


def test_a_graph_is_read_through_its_topology() -> None:
    """Whatever holds a topology can be compiled."""

    class Holder:
        topology = Topology()

    Holder.topology.add_expression(X() >> Y())
    root = Compiler().compile(Holder()).root

    assert isinstance(root, Composite)
    assert root != Sequence(root.parts)


def test_levels_stand_in_the_sequence_around_them() -> None:
    """What has no cut between two cuts adds its levels to the sequence."""
    topology = Topology()
    for filter in (X(), A(), B(), C(), D(), Y()):
        topology.add(filter)
    for link in ["x-a", "x-b", "a-c", "a-d", "b-d", "c-y", "d-y"]:
        topology.connect(*link.split("-"))

    assert printed(topology) == text(
        """
        └─ Sequence
           ├─ x
           ├─ Parallel
           │  ├─ a
           │  └─ b
           ├─ Parallel
           │  ├─ c
           │  └─ d
           └─ y
        """
    )


@pytest.mark.parametrize("name", ["a\x1b[31mb", "a\nb", "a\u202eb"])
def test_hostile_names_do_not_reach_the_terminal(name: str) -> None:
    """Control signs in a class name are dropped when a plan is printed."""
    topology = Topology()
    topology.add(type(name, (Filter,), {})(), "plain")
    topology.nodes["plain"].filter._cacheable = False  # type: ignore[misc]
    printed = str(Compiler().compile(topology, cache=object()))

    assert printed.splitlines()[0].endswith("nothing stored: `ab` says `_cacheable = False`")


def test_a_plan_says_that_there_are_diagnostics() -> None:
    """Who prints only the plan still learns of the warnings."""
    topology = Topology()
    topology.add_expression(A() >> X() >> B() >> Y())

    assert str(Compiler().compile(topology)).endswith("2 warnings: see `diagnostics`")
