"""A plan draws itself."""

from xml.dom.minidom import parseString

from soma import Filter, Graph
from soma.compiler._plan_picture import plan_diagram


class Plain(Filter):
    """Learns nothing."""

    def forward(self, x, state):
        return x


class Smooth(Plain):
    _differentiable = True


class Unkept(Plain):
    _cacheable = False


def test_a_stretch_that_gradients_pass_stands_in_a_frame() -> None:
    """Differentiable nodes in a row share a frame; what is not stored is dashed."""
    plan = Graph.somatize(Unkept() >> Smooth() >> Smooth() >> Plain(), cache="memory").compile()
    drawn = plan_diagram(plan.root, plan.mode, len(plan.order))

    assert {box.key: (box.group, box.dashed) for box in drawn.boxes} == {
        "unkept": (None, True),
        "smooth": ("stretch smooth", False),
        "smooth_2": ("stretch smooth", False),
        "plain": (None, False),
    }
    assert len(drawn.arrows) == 3


def test_a_hostile_id_is_no_markup() -> None:
    """The picture of a plan is valid XML whatever its nodes are called."""
    g = Graph(cache=None)
    g.node("<text><script>", Plain())
    shown = g.compile()._repr_html_()

    assert parseString(shown).documentElement.tagName == "svg"
    assert "<script" not in shown
