"""What is said of a flow before it runs."""

from typing import Any

import pytest

from soma import Filter, Flow, Graph
from soma.errors import CompileError, NotAFilter
from soma.flow import LLM, Agent, Condition, FlowNode, Tool
from soma.testing import ScriptedModel


class Scale(Filter):
    """Computes."""

    def forward(self, x: Any, state: object) -> Any:
        """Return it."""
        return x


def ask(text: str) -> str:
    """Ask."""
    return text


def model() -> ScriptedModel:
    """Return a model that says nothing."""
    return ScriptedModel([])


def codes(build: Any) -> list[tuple[str, str | None]]:
    """Return codes and nodes of what is wrong with a flow."""
    with pytest.raises(CompileError, match="this flow cannot run") as caught:
        build()
    return [(one.code, one.node) for one in caught.value.diagnostics]  # type: ignore[attr-defined]


def test_a_node_of_a_flow_is_refused_in_a_graph() -> None:
    """The message says to make a flow."""
    with pytest.raises(CompileError, match="`LLM` orchestrates, and a graph only computes") as told:
        Graph.somatize(Scale() >> LLM())

    assert "soma.Flow.somatize" in str(told.value)


def test_a_filter_is_refused_in_a_flow() -> None:
    """The message says to put it into a graph."""
    assert codes(lambda: Flow.somatize(LLM() >> Scale())) == [("no-flow-node", "scale")]


def test_a_flow_is_refused_in_a_graph() -> None:
    """A graph cannot take a flow in."""
    with pytest.raises(NotAFilter, match="a flow may hold graphs, and not the reverse"):
        Graph.somatize(Scale() >> Flow.somatize(LLM()))


def test_something_else_is_refused_in_a_flow() -> None:
    """An estimator of scikit-learn belongs in a graph too."""
    tree = pytest.importorskip("sklearn.tree")

    with pytest.raises(NotAFilter, match="belongs in a graph"):
        Flow.somatize(LLM() >> tree.DecisionTreeClassifier())


def test_nodes_without_a_model_are_found() -> None:
    """A flow may be made without one, and does not run so."""
    flow = Flow.somatize(LLM() >> Condition(bool, {"yes": Agent(), "no": None}))

    assert codes(flow.compile) == [("no-model", "llm"), ("no-model", "condition.yes.agent")]
    assert Flow.somatize(flow, model=model()).compile().order == ("flow",)


def test_a_name_is_no_model() -> None:
    """A node that names a model wants one of the flow."""
    assert codes(Flow.somatize(LLM("large")).compile) == [("no-model", "llm")]


def test_one_node_in_two_places_is_found() -> None:
    """As in a graph, each place wants its own."""
    node = LLM()

    assert codes(lambda: Flow.somatize(node >> Tool(ask) >> node)) == [("shared-filter", "llm_2")]


def test_a_circle_is_found_with_the_way_out() -> None:
    """The message says how to repeat a part of a flow."""
    flow = Flow(model=model())
    flow.node("a", LLM())
    flow.node("b", LLM())
    flow.connect("a", "b").connect("b", "a")

    with pytest.raises(CompileError, match=r"Condition\.loop"):
        flow.compile()


def test_unknown_nodes_in_links_are_found() -> None:
    """A link to nowhere is an error, with the nearest name."""
    flow = Flow(model=model())
    flow.node("judge", LLM())
    flow.connect("judge", "jugde")

    assert [code for code, _ in codes(flow.compile)] == ["unknown-node"]


def test_tools_of_one_name_are_found() -> None:
    """A model could not tell them apart."""
    agent = Agent(tools=[ask, Tool(ask)])

    assert codes(lambda: Flow.somatize(agent)) == [("equal-tools", "agent")]


@pytest.mark.parametrize(
    "expression",
    [
        lambda: (LLM() | LLM()) >> LLM(prompt="{llm} and {lm_2}"),
        lambda: LLM() >> LLM(prompt="{text}"),
    ],
    ids=["of a fan-in", "of a text"],
)
def test_fields_that_nobody_gives_are_found(expression: Any) -> None:
    """Where it is known what comes, a prompt is held to it."""
    assert codes(lambda: Flow.somatize(expression()))[0][0] == "unknown-field"


def test_fields_of_what_is_not_known_are_let_through() -> None:
    """A tool may give a mapping."""
    Flow.somatize(Tool(ask) >> LLM(prompt="{text}"))
    Flow.somatize((LLM() | LLM()) >> LLM(prompt="{llm} and {llm_2}, or {input}"))


def test_a_flow_inside_of_itself_is_found() -> None:
    """It would never end."""
    flow = Flow(model=model())
    flow.node("self", flow)

    assert codes(flow.compile) == [("recursion", "self")]


def test_flows_in_each_other_are_bounded() -> None:
    """Twenty of them are enough."""
    flow = Flow.somatize(LLM(), model=model())
    for _ in range(19):
        flow = Flow.somatize(flow)
    flow.compile()

    assert [code for code, _ in codes(lambda: Flow.somatize(Flow.somatize(flow)))] == ["depth"]


def test_gradients_end_where_reasoning_begins() -> None:
    """Each link between a graph and a node of reasoning is told, and where gradients work."""
    g = Graph.somatize(Scale(), name="net", cache=None)
    flow = Flow.somatize(LLM() >> g >> LLM(), model=model())

    found = flow.compile("differentiable").diagnostics

    assert flow.compile().diagnostics == ()
    assert str(found[1]) == (
        "warning[gradients-end]: Gradients have no meaning between `net` (a graph) and `llm_2` "
        "(LLM)\n"
        "  --> pipeline node 2\n"
        "  |\n"
        "  | [net] → [llm_2]\n"
        "  | ^^^^^^^^^^^^^^^\n"
        "  | Models, tools and people answer in texts and data, which have no gradient.\n"
        "  |\n"
        "  = help: Gradients work within each graph. What stops them there,\n"
        '          `graph.compile("differentiable")` says.'
    )


def test_two_graphs_beside_each_other_are_told_apart() -> None:
    """Gradients go through where both are one graph."""
    one, other = (Graph.somatize(Scale(), name=name, cache=None) for name in ("one", "other"))

    (found,) = Flow.somatize(one >> other).compile("differentiable").diagnostics

    assert "Make one graph of both" in str(found.help)


def test_a_node_without_a_run_says_so(tmp_path: Any) -> None:
    """The error names the class and the method."""
    with pytest.raises(NotImplementedError, match=r"define `run\(value, turn\)`"):
        Flow.somatize(FlowNode()).run(root=tmp_path)
