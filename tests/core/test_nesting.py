"""A graph inside another one: its nodes come along as `outer.inner`."""

import pytest

from soma import Graph, Inputs
from soma.errors import CompileError, InvalidNodeId, NotAFilter
from tests.core.filters import A, B, C, D, Learns


def encoder(name: str = "enc") -> Graph:
    """Return a graph with two roots and two leaves."""
    return Graph.somatize((A() | B()) >> (C() | D()), name=name)


def test_a_graph_in_an_expression_is_inlined() -> None:
    """Its nodes are named after it, and its ends are linked as a fork would be."""
    g = Graph.somatize(A() >> encoder() >> B())

    assert g.filter_ids() == ["a", "enc.a", "enc.b", "enc.c", "enc.d", "b"]
    assert g.edges()[:2] == [("enc.a", "enc.c"), ("enc.b", "enc.c")]
    assert g.edges()[-2:] == [("enc.c", "b"), ("enc.d", "b")]
    assert (g.roots(), g.leaves()) == (["a"], ["b"])


def test_a_graph_can_be_declared_as_a_node() -> None:
    """`node` returns the name that stands before the ids of what is inside."""
    g = Graph()
    names = [g.node("left", encoder()), g.node(encoder("right"))]

    assert names == ["left", "right"]
    assert g.roots() == ["left.a", "left.b", "right.a", "right.b"]


def test_graphs_of_one_name_count_up() -> None:
    """Two encoders side by side are `enc` and `enc_2`."""
    g = Graph.somatize((encoder() | encoder()) >> A())

    assert g.roots() == ["enc.a", "enc.b", "enc_2.a", "enc_2.b"]
    assert g.leaves() == ["a"]


def test_a_graph_alone_is_an_expression() -> None:
    """Somatizing a graph gives one that answers the same, with longer ids."""
    g = Graph.somatize(encoder())

    assert g.forward(4) == {"enc.c": {"enc.a": 4, "enc.b": 4}, "enc.d": {"enc.a": 4, "enc.b": 4}}


def test_nesting_goes_on() -> None:
    """Each level adds its name in front."""
    inner = Graph.somatize(A() >> B(), name="inner")
    middle = Graph.somatize(inner >> C(), name="middle")
    g = Graph.somatize(middle >> D())

    assert g.filter_ids() == ["middle.inner.a", "middle.inner.b", "middle.c", "d"]
    assert g.forward("x") == "x"


def test_what_was_learned_comes_along() -> None:
    """A fitted graph keeps its states inside another one."""
    inner = Graph.somatize(A() >> Learns(), name="inner").fit([1, 2])
    by_expression = Graph.somatize(Graph.somatize(inner, name="middle") >> A())
    by_node = Graph()
    by_node.node("n", inner)

    assert by_expression.forward([0]) == by_node.forward([0]) == 3
    assert by_expression.get_node_state("middle.inner.learns") == 3


def test_a_graph_that_was_taken_in_works_on_its_own() -> None:
    """Fitting the outer graph leaves the states of the inner one alone."""
    inner = Graph.somatize(Learns(), name="inner").fit([1])
    outer = Graph.somatize(A() >> inner).fit([5])

    assert (inner.forward([0]), outer.forward([0])) == (1, 5)


def test_the_name_of_a_graph_stands_for_its_ends() -> None:
    """As a source it is all its leaves, as a target all its roots."""
    g = Graph()
    for id, part in (("pre", A()), ("enc", encoder()), ("head", B())):
        g.node(id, part)
    g.connect("pre", "enc").connect("enc", "head")

    assert g.edges()[-4:] == [
        ("pre", "enc.a"),
        ("pre", "enc.b"),
        ("enc.c", "head"),
        ("enc.d", "head"),
    ]


def test_a_graph_into_a_graph_links_all_pairs() -> None:
    """Each root of the second reads each leaf of the first."""
    g = Graph()
    g.node("one", encoder()), g.node("two", encoder())
    g.connect("one", "two")

    assert g.edges()[-4:] == [
        ("one.c", "two.a"),
        ("one.d", "two.a"),
        ("one.c", "two.b"),
        ("one.d", "two.b"),
    ]


def test_a_graph_may_be_linked_before_it_is_declared() -> None:
    """A link by name waits for the graph as it waits for a node."""
    g = Graph()
    g.connect("pre", "enc").connect("enc", "head")
    for id, part in (("head", A()), ("enc", Graph.somatize(B() >> C())), ("pre", D())):
        g.node(id, part)

    assert g.filter_ids() == ["pre", "enc.b", "enc.c", "head"]
    assert g.forward(2) == 2


def test_a_graph_inside_a_graph_can_be_linked_by_name() -> None:
    """The name of every level stands for its ends."""
    middle = Graph()
    middle.node("inner", Graph.somatize(A() >> B()))
    g = Graph()
    g.node("outer", middle), g.node("head", C())
    g.connect("outer.inner", "head")

    assert ("outer.inner.b", "head") in g.edges()


def test_one_inner_node_can_be_linked_too() -> None:
    """An inner node is a node like others."""
    g = Graph()
    g.node("enc", Graph.somatize(A() >> B())), g.node("probe", C())
    g.connect("enc.a", "probe")

    assert g.leaves() == ["enc.b", "probe"]


def test_each_inner_root_takes_its_part_of_the_input() -> None:
    """`Inputs` names inner roots by their whole id."""
    g = Graph.somatize((Graph.somatize(A(), name="left") | B()) >> C())

    assert g.forward(Inputs({"left.a": 1}, b=2)) == {"left.a": 1, "b": 2}


def test_the_prefix_steps_over_ids_given_by_hand() -> None:
    """A graph that is named by nobody takes a name under which all its ids are free."""
    g = Graph()
    g.node("graph.b", A())
    g.node("graph_2", A())

    assert g.node(Graph.somatize(A() >> B())) == "graph_3"


def test_an_id_inside_that_is_taken_changes_nothing() -> None:
    """A refused graph leaves no half of itself behind."""
    g = Graph()
    g.node("enc.b", A())

    with pytest.raises(InvalidNodeId, match=r"a node `enc\.b` already"):
        g.node("enc", Graph.somatize(A() >> B()))
    assert g.filter_ids() == ["enc.b"]
    assert g.node("enc", Graph.somatize(A())) == "enc"


def test_the_name_of_a_graph_is_taken() -> None:
    """A node may not have the id of an inlined graph, nor the reverse."""
    g = Graph()
    g.node("x", A()), g.node("enc", encoder())

    for id in ("x", "enc"):
        with pytest.raises(InvalidNodeId, match=f"a node `{id}` already"):
            g.node(id, encoder())
        with pytest.raises(InvalidNodeId, match=f"a node `{id}` already"):
            g.node(id, A())


@pytest.mark.parametrize("name", ["a/b", "", "a\nb"])
def test_a_graph_is_named_as_a_node_may_be(name: str) -> None:
    """Where the name becomes part of ids it keeps their rules."""
    with pytest.raises(InvalidNodeId):
        Graph.somatize(Graph.somatize(A(), name=name) >> B())


def test_a_graph_without_nodes_links_nothing() -> None:
    """It would cut the graph in two without a word, so it is refused."""
    with pytest.raises(NotAFilter, match="`hole` has no nodes"):
        Graph.somatize(A() >> Graph(name="hole") >> B())
    with pytest.raises(NotAFilter, match="has no nodes"):
        Graph().node("x", Graph())


def test_a_graph_twice_is_its_filters_twice() -> None:
    """One graph object in two places, or inside itself, shares its filters; compile says so."""
    g = Graph.somatize(A())

    with pytest.raises(CompileError, match=r"`graph\.a` and `graph_2\.a`"):
        Graph.somatize(g | g)
    g.node("me", g)
    with pytest.raises(CompileError, match=r"`a` and `me\.a`"):
        g.compile()
