"""What a program reads from a gradient diagnostic: level, place and labels."""

from soma.compiler import Compiler
from soma.core import Composable, Diagnostic, Filter, Topology


class Linear(Filter):
    _differentiable = True
    _kind = "trainable"


class Tree(Filter):
    _kind = "opaque"


def judged(expression: Composable) -> list[Diagnostic]:
    topology = Topology()
    topology.add_expression(expression)
    return Compiler().check_gradient_flow(topology)


def with_role(found: list[Diagnostic], role: str) -> set[str]:
    return {label.node for one in found for label in one.labels if label.role == role}


def test_each_named_node_has_a_role() -> None:
    """A chain through one opaque filter has one node of each role."""
    (found,) = judged(Linear() >> Tree() >> Linear())

    assert [(label.node, label.role) for label in found.labels] == [
        ("tree", "cut"),
        ("linear", "cut-off"),
        ("linear_2", "restart"),
    ]


def test_node_and_position_are_those_of_the_first_opaque_node() -> None:
    """A diagnostic stands at the first node of its run, counted from 1."""
    (found,) = judged(Linear() >> Tree() >> Tree() >> Linear())

    assert (found.node, found.position, found.marked) == ("tree", 2, (1, 3))


def test_two_separate_cuts_below_one_node_both_name_it() -> None:
    """A node that two opaque filters cut off is named by each of them."""
    found = judged(Linear() >> Linear() >> (Tree() | Tree()))

    assert [one.level for one in found] == ["warning", "warning"]
    assert all(with_role([one], "cut-off") == {"linear", "linear_2"} for one in found)


def test_many_cuts_below_one_chain_stay_cheap() -> None:
    """The whole chain is named once; further cuts name the part that is near."""
    chain: Composable = Linear()
    for _ in range(199):
        chain = chain >> Linear()
    heads: Composable = Tree()
    for _ in range(199):
        heads = heads | Tree()
    found = judged(chain >> heads)

    assert len(with_role(found, "cut-off")) == 200
    assert sum(len(one.labels) for one in found) < 200 * 50


def test_a_node_cut_off_above_a_nearer_cut_is_named_there() -> None:
    """What lies above the first of two cuts is no business of the second."""
    first, second = judged(Linear() >> Tree() >> Linear() >> Tree())

    assert with_role([first], "cut-off") == {"linear"}
    assert with_role([second], "cut-off") == {"linear_2"}


def test_a_run_may_surround_a_node() -> None:
    """A differentiable node between two linked opaque ones is cut off by them."""
    topology = Topology()
    for name, filter in [("top", Tree()), ("mid", Linear()), ("end", Tree())]:
        topology.add(filter, name)
    for link in [("top", "mid"), ("mid", "end"), ("top", "end")]:
        topology.connect(*link)
    (found,) = Compiler().check_gradient_flow(topology)

    assert with_role([found], "cut") == {"top", "end"}
    assert with_role([found], "cut-off") == {"mid"}
    assert with_role([found], "restart") == set()


def test_the_drawn_path_shows_what_the_sentences_say() -> None:
    """It begins at a node that is cut off, and ends where gradients restart."""
    topology = Topology()
    for kind, names in {Linear: "learns lost closed open side", Tree: "cut more wall"}.items():
        for name in names.split():
            topology.add(type(name.title(), (kind,), {})(), name)
    links = "learns-cut lost-cut cut-closed cut-more more-open learns-side closed-wall"
    for link in links.split():
        topology.connect(*link.split("-"))
    found = Compiler().check_gradient_flow(topology)[0]

    assert found.drawn == ("Lost", "Cut", "More", "Open")


def test_learning_nodes_are_grouped_by_their_open_paths() -> None:
    """Many trunks with the same way out fill one sentence; many ways out are cut short."""
    trunks = [Linear() for _ in range(6)]
    topology = Topology()
    topology.add(Tree(), "tree")
    for index, trunk in enumerate(trunks):
        topology.add(trunk, f"trunk{index}")
        topology.add(Linear(), f"head{index}")
        topology.connect(f"trunk{index}", "tree")
        topology.connect(f"trunk{index}", f"head{index}")
    (found,) = Compiler().check_gradient_flow(topology)

    assert len(found.remarks) == 5
    assert found.remarks[-1].endswith("and [Linear (trunk5)] through other nodes.")
    assert with_role([found], "learns") >= {f"trunk{index}" for index in range(6)}
