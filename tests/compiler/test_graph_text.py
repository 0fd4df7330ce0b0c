"""How a graph is drawn as text."""

from soma import Filter, Graph


class Load(Filter):
    def forward(self, x, state):
        return x


class Embed(Load):
    pass


class Fuse(Load):
    pass


def test_branches_stand_side_by_side_and_short_ones_in_a_line() -> None:
    """A fork, a fan-in and two heads read from top to bottom."""
    g = Graph.somatize((Load() >> Embed() | Load()) >> Fuse())
    g.node("left", Embed())
    g.node("right", Embed())
    g.connect("fuse", "left").connect("fuse", "right")

    assert str(g) == (
        "Graph `graph`: 6 nodes, in eval\n"
        "├─ side by side\n"
        "│  ├─ load → embed\n"
        "│  └─ load_2\n"
        "├─ fuse\n"
        "└─ side by side\n"
        "   ├─ left (Embed)\n"
        "   └─ right (Embed)"
    )


def test_what_a_node_reads_is_told_where_its_place_does_not_tell() -> None:
    """A link that skips a level is written out."""
    g = Graph(name="skipping")
    for name in ("load", "embed", "fuse"):
        g.node(name, {"load": Load, "embed": Embed, "fuse": Fuse}[name]())
    g.connect("load", "embed").connect("embed", "fuse").connect("load", "fuse")

    assert str(g) == (
        "Graph `skipping`: 3 nodes, in eval\n├─ load\n├─ embed\n└─ fuse ← embed, load"
    )


def test_a_broken_graph_is_drawn_as_far_as_it_goes() -> None:
    """Drawing never raises: what a cycle keeps from running is named."""
    g = Graph()
    g.node("a", Load())
    g.node("b", Load())
    g.connect("a", "b").connect("b", "a")

    assert str(g) == "Graph `graph`: 2 nodes, in eval\n└─ in a cycle, or behind one: a, b"
    assert str(Graph()) == "Graph `graph`: 0 nodes, in eval"
