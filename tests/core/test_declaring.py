"""Nodes and links one by one, in any order, and the questions a graph answers."""

import pytest

from soma import Graph
from soma.errors import CompileError, InvalidNodeId, NotAFilter, UnknownNode
from tests.core.filters import A, B, C, Learns


def test_node_returns_the_id() -> None:
    """What `node` gives goes straight into `connect`."""
    g = Graph()
    first, second = g.node(A()), g.node("second", B())
    g.connect(first, second)

    assert (first, second) == ("a", "second")
    assert g.forward(5) == 5


def test_connect_returns_the_graph() -> None:
    """Links can be declared in one line, and `edge` is the same word."""
    g = Graph()
    g.node(A()), g.node(B()), g.node(C())

    assert g.connect("a", "b").edge("b", "c") is g
    assert g.edges() == [("a", "b"), ("b", "c")]


def test_a_link_may_come_before_its_nodes() -> None:
    """Declarations have no order; only what is there in the end counts."""
    g = Graph()
    g.connect("second", "third").connect("first", "second")
    for id in ("third", "first", "second"):
        g.node(id, A())

    assert g.filter_ids() == ["first", "second", "third"]
    assert g.forward("x") == "x"


def test_a_node_may_be_added_after_a_run() -> None:
    """The next run sees what was declared since the last one."""
    g = Graph.somatize(A())
    assert g.forward(1) == 1
    g.node(Learns())
    g.connect("a", "learns")

    g.fit([1, 2])
    assert g.forward([0]) == 3


def test_a_link_to_nowhere_is_found_by_compile() -> None:
    """A link that names no node is an error that names the nearest one."""
    g = Graph.somatize(A() >> B())
    g.connect("b", "aa")

    with pytest.raises(CompileError, match="mean `a`"):
        g.compile()


@pytest.mark.parametrize("end", [A(), None, 3, ["a"]])
def test_a_link_is_said_with_ids(end: object) -> None:
    """A filter, or anything else that is no string, is refused where it is written."""
    g = Graph.somatize(A())

    with pytest.raises(InvalidNodeId, match="ids of two nodes"):
        g.connect("a", end)  # type: ignore[arg-type]
    assert g.edges() == []


def test_an_expression_is_not_one_node() -> None:
    """`node` takes a filter or a graph, and says how to make one of an expression."""
    g = Graph()

    with pytest.raises(NotAFilter, match=r"Graph\.somatize"):
        g.node("x", A() >> B())
    with pytest.raises(NotAFilter, match="a `NoneType` stands in `node`"):
        g.node("x")


def test_filters_come_in_topological_order() -> None:
    """Where links leave a choice, the order of declaration decides."""
    g = Graph()
    a, b, c = A(), B(), C()
    g.node("last", a), g.node("first", b), g.node("middle", c)
    g.connect("first", "middle").connect("middle", "last")

    assert g.filters() == [("first", b), ("middle", c), ("last", a)]
    assert g.filter_ids() == ["first", "middle", "last"]
    assert g.filter("middle") is c


def test_the_order_of_independent_nodes_is_that_of_declaration() -> None:
    """Two chains declared in turns keep their turns."""
    g = Graph()
    for id in ("p1", "q1", "p2", "q2"):
        g.node(id, A())
    g.connect("q1", "q2").connect("p1", "p2")

    assert g.filter_ids() == ["p1", "q1", "p2", "q2"]


def test_answers_are_copies() -> None:
    """Changing what a question gave does not change the graph."""
    g = Graph.somatize(A() >> B())
    for answer in (g.edges(), g.filter_ids(), g.roots(), g.leaves(), g.filters()):
        answer.clear()

    assert (g.edges(), g.roots(), g.leaves()) == ([("a", "b")], ["a"], ["b"])


@pytest.mark.parametrize(
    "ask",
    [
        lambda g, id: g.filter(id),
        lambda g, id: g.get_node_state(id),
        lambda g, id: g.set_node_state(id, 1),
    ],
    ids=["filter", "get_node_state", "set_node_state"],
)
def test_an_unknown_id_is_a_lookup_error_with_a_guess(ask) -> None:
    """Each question by id names the nodes there are and the nearest one."""
    g = Graph()
    g.node("encoder", A())

    with pytest.raises(UnknownNode, match=r"no node `encodr`.*mean `encoder`") as caught:
        ask(g, "encodr")
    assert isinstance(caught.value, LookupError)


@pytest.mark.parametrize("id", [3, None, A(), ("a",)])
def test_an_id_that_is_no_string_is_unknown(id: object) -> None:
    """A filter in place of its id is an unknown node, not a crash of the guess."""
    with pytest.raises(UnknownNode, match="it has `a`"):
        Graph.somatize(A()).filter(id)  # type: ignore[arg-type]


def test_an_empty_graph_has_no_nodes_yet() -> None:
    """Questions to an empty graph have empty answers, and a run says what is missing."""
    g = Graph()

    assert g.filters() == g.edges() == g.roots() == g.leaves() == []
    with pytest.raises(UnknownNode, match="no nodes yet"):
        g.filter("a")
    with pytest.raises(CompileError, match="no nodes"):
        g.forward(1)


def test_a_state_is_what_fit_learned() -> None:
    """None before; afterwards the state, which another graph can be given."""
    g, other = Graph.somatize(Learns()), Graph.somatize(Learns())
    before = g.get_node_state("learns")
    g.fit([1, 2])
    other.set_node_state("learns", g.get_node_state("learns"))

    assert (before, g.get_node_state("learns")) == (None, 3)
    assert other.forward([0]) == 3


def test_set_node_state_returns_the_graph() -> None:
    """States can be set in one line, as links can."""
    g = Graph.somatize(Learns())

    assert g.set_node_state("learns", 9).forward([0]) == 9


def test_a_cycle_leaves_the_questions_answered() -> None:
    """What a circle holds has no place in the order; everything else is told as ever."""
    g = Graph.somatize(A() >> B() >> C())
    g.connect("c", "b")

    assert g.filter_ids() == ["a"]
    assert g.edges()[-1] == ("c", "b")
    with pytest.raises(CompileError, match="in a circle"):
        g.compile()
