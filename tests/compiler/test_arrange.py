"""A plan keeps every order that the links ask for, and as little else as it can."""

from functools import reduce
from itertools import combinations
from operator import or_, rshift

from hypothesis import given, settings
from hypothesis import strategies as st

from soma.compiler import Compiler, Empty, Execute, ExecutionPlan, Parallel, Part
from soma.core import Composable, Filter, NodeId, Topology

Place = tuple[tuple[bool, int], ...]


class Step(Filter): ...


class Smooth(Filter):
    _differentiable = True


filters = st.sampled_from([Step, Smooth]).map(lambda kind: kind())


@st.composite
def random_topologies(draw: st.DrawFn) -> Topology:
    topology = Topology()
    nodes: list[NodeId] = []
    for filter in draw(st.lists(filters, min_size=1, max_size=14)):
        node = topology.add(filter)
        for source in draw(st.sets(st.sampled_from(nodes), max_size=3)) if nodes else ():
            topology.connect(source, node)
        nodes.append(node)
    return topology


expressions = st.recursive(
    filters,
    lambda inner: st.tuples(st.sampled_from([rshift, or_]), st.lists(inner, min_size=2)).map(
        lambda made: reduce(made[0], made[1])
    ),
    max_leaves=14,
)


def places(plan: ExecutionPlan) -> dict[NodeId, Place]:
    """Say for each node which way leads to it: is the holder parallel, and which part of it."""
    found: dict[NodeId, Place] = {}
    pending: list[tuple[Part, Place]] = [(plan.root, ())]
    while pending:
        part, place = pending.pop()
        if isinstance(part, Execute):
            assert part.node not in found
            found[part.node] = place
        elif not isinstance(part, Empty):
            free = isinstance(part, Parallel)
            pending += [(one, (*place, (free, i))) for i, one in enumerate(part.parts)]
    return found


def comes_before(one: Place, other: Place) -> bool:
    """Whether the plan runs `one` before `other`, and not just beside it."""
    (free, first), (_, second) = next(
        pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]
    )
    return not free and first < second


def descendants(topology: Topology) -> dict[NodeId, set[NodeId]]:
    wiring = topology.wiring()
    below: dict[NodeId, set[NodeId]] = {}
    for node in reversed(wiring.order):
        near = wiring.successors[node]
        below[node] = set(near).union(*(below[one] for one in near))
    return below


@settings(max_examples=300, deadline=None)
@given(random_topologies())
def test_every_link_leads_from_an_earlier_part_to_a_later_one(topology: Topology) -> None:
    """No link runs between the parts of a `Parallel`, or backwards in a `Sequence`."""
    plan = Compiler().compile(topology)
    place = places(plan)

    assert place.keys() == set(topology.nodes)
    assert all(comes_before(place[a], place[b]) for a, b in topology.links)
    assert tuple(step.node for step in plan.steps()) == topology.wiring().order


@settings(max_examples=300, deadline=None)
@given(expressions)
def test_an_expression_keeps_all_its_freedom(expression: Composable) -> None:
    """In what `>>` and `|` build, two nodes are ordered only where one reaches the other."""
    topology = Topology()
    topology.add_expression(expression)
    place, below = places(Compiler().compile(topology)), descendants(topology)

    for a, b in combinations(topology.nodes, 2):
        assert comes_before(place[a], place[b]) == (b in below[a])


def test_a_long_chain_is_flat() -> None:
    """Ten thousand nodes in a row are one sequence of ten thousand steps."""
    topology = Topology()
    topology.add_expression(reduce(rshift, [Step() for _ in range(10_000)]))
    plan = Compiler().compile(topology)

    assert all(len(place) == 1 for place in places(plan).values())


def test_deeply_nested_forks_end_in_levels() -> None:
    """Forks nested 5,000 deep give a plan of bounded depth that keeps every link."""
    expression: Composable = Step()
    for _ in range(5_000):
        expression = Step() >> (Step() | expression)
    topology = Topology()
    topology.add_expression(expression)
    place = places(Compiler().compile(topology))

    assert max(map(len, place.values())) <= 60
    assert all(comes_before(place[a], place[b]) for a, b in topology.links)
