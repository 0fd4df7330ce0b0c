"""Flows of all kinds of nodes: what goes in, what comes out, in what order."""

from collections.abc import Callable
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

import soma
from soma import Flow, Graph
from soma.errors import BudgetSpent, InvalidInput, InvalidOutput
from soma.flow import IO, LLM, Budget, Computation, Condition, FlowNode, Tool, Turn
from soma.testing import ScriptedModel
from tests.flow.talking import Shift


def heard(messages: Any) -> str:
    """Answer with what was said."""
    return f"<{messages[-1].text}>"


def double(number: float) -> float:
    """Double a number."""
    return 2 * number


def test_what_one_node_gives_the_next_one_gets(tmp_path: Path) -> None:
    """`>>` hands values on, and prompts put them in."""
    flow = Flow.somatize(
        LLM(prompt="A {input}") >> LLM(prompt="B {input}"), model=ScriptedModel([heard, heard])
    )

    assert flow.run("x", root=tmp_path).output == "<B <A x>>"


def test_a_fan_in_is_a_mapping_by_node(tmp_path: Path) -> None:
    """A prompt behind a fork names the nodes that it reads."""
    flow = Flow(model=ScriptedModel([heard]))
    flow.node("double", Tool(double))
    flow.node("ten", Tool(lambda: 10, name="ten", description="Ten.", schema={"type": "object"}))
    flow.node("tell", LLM(prompt="{double} of {ten}"))
    flow.connect("double", "tell").connect("ten", "tell")

    assert flow.run(4, root=tmp_path).output == "<8 of 10>"


def test_several_leaves_give_a_dict(tmp_path: Path) -> None:
    """A flow that ends in several nodes gives what each of them gave."""
    flow = Flow.somatize(Tool(double) | Tool(double, name="again"))

    assert flow.run(4, root=tmp_path).output == {"double": 8, "again": 8}


def test_branches_run_side_by_side(tmp_path: Path) -> None:
    """Two branches that wait for each other both get through."""
    both = Barrier(2)

    def meet(number: int) -> int:
        """Wait for the other branch."""
        both.wait(timeout=20)
        return number

    flow = Flow.somatize(Tool(meet) | Tool(meet, name="too"))

    assert flow.run(1, root=tmp_path).output == {"meet": 1, "too": 1}


def test_a_fan_out_is_bounded(tmp_path: Path) -> None:
    """No more tools are at work than `side_by_side` allows."""
    at_work: list[int] = []
    most: list[int] = []

    def work(number: int) -> int:
        """Count who works."""
        at_work.append(number)
        most.append(len(at_work))
        at_work.pop()
        return number

    parts: Any = Tool(work, name="work_0")
    for number in range(1, 20):
        parts = parts | Tool(work, name=f"work_{number}")
    Flow.somatize(parts, side_by_side=1).run(1, root=tmp_path)

    assert (len(most), max(most)) == (20, 1)


def test_a_graph_is_one_node(tmp_path: Path) -> None:
    """A graph between others runs `forward`, and arrays are handed on as they are."""
    g = Graph.somatize(Shift(), name="shift", cache=None)
    g.fit([1.0, 3.0])
    flow = Flow.somatize(Tool(double) >> g)

    output = flow.run(4, root=tmp_path).output

    assert (flow.filter("shift").kind, output) == ("computation", 6.0)


@pytest.mark.parametrize("data", [{"x": [1.0, 3.0]}, {"x": [1.0, 3.0], "y": None}, ([1.0, 3.0], 0)])
def test_a_graph_may_be_fitted(tmp_path: Path, data: object) -> None:
    """`mode="fit"` fits the graph itself, from a mapping or a pair."""
    g = Graph.somatize(Shift(), cache=None)

    output = Flow.somatize(Computation(g, mode="fit")).run(data, root=tmp_path).output

    assert (output, g.get_node_state("shift")) == ({"fitted": "graph"}, 2.0)


def test_a_fit_wants_data(tmp_path: Path) -> None:
    """Something else than data is told with what is wanted."""
    g = Graph.somatize(Shift(), cache=None)

    with pytest.raises(InvalidInput, match='"y": targets'):
        Flow.somatize(Computation(g, mode="fit")).run("x", root=tmp_path)


def test_a_flow_in_a_flow_has_its_own_model(tmp_path: Path) -> None:
    """Its nodes ask its model, and are named after it."""
    inner = Flow.somatize(LLM(prompt="in {input}"), name="inner", model=ScriptedModel([heard]))
    outer = Flow.somatize(
        LLM(prompt="out {input}") >> inner, model=ScriptedModel([lambda messages: "x"])
    )

    result = outer.run("x", root=tmp_path)

    assert (result.output, result.turns) == ("<in x>", 2)
    assert [id for id, _ in outer.filters()] == ["llm", "inner", "inner.llm"]


def test_a_flow_in_a_flow_has_its_own_budget(tmp_path: Path) -> None:
    """It may use less than the flow around it."""
    inner = Flow.somatize(LLM() >> LLM(), name="inner", budget=Budget(turns=1))
    outer = Flow.somatize(inner, model=ScriptedModel([heard, heard]))

    with pytest.raises(BudgetSpent, match="`inner` has used 1 of its 1 turns"):
        outer.run("x", root=tmp_path)


def test_files_are_read_and_written(tmp_path: Path) -> None:
    """`IO.read` gives a text, `IO.write` keeps one and hands it on."""
    (tmp_path / "in.txt").write_text("héllo")
    flow = Flow.somatize(IO.read(tmp_path / "in.txt") >> IO.write(tmp_path / "out.txt"))

    output = flow.run(root=tmp_path).output

    assert (output, (tmp_path / "out.txt").read_text()) == ("héllo", "héllo")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are told with the place of the first."""
    (tmp_path / "in.bin").write_bytes(b"ab\xff")

    with pytest.raises(InvalidInput, match="invalid start byte at byte 2"):
        Flow.somatize(IO.read(tmp_path / "in.bin")).run(root=tmp_path)


def test_a_person_may_have_answered_before(tmp_path: Path) -> None:
    """`answers` go to the nodes that ask."""
    flow = Flow.somatize(IO.ask("Is {input} good?"))

    assert flow.run("it", root=tmp_path, answers={"ask": "yes"}).output == "yes"


def test_an_exception_says_where_it_came_up(tmp_path: Path) -> None:
    """The error of a node is raised as it is, with the node and a way to go on."""

    def fail(number: int) -> int:
        """Fail."""
        raise KeyError(number)

    with pytest.raises(KeyError) as caught:
        Flow.somatize(Tool(fail)).run(1, root=tmp_path)

    assert "node `fail`" in caught.value.__notes__[0]
    assert "flow.resume(" in caught.value.__notes__[1]


def test_a_value_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    """What a tool gives has to be data that a resumed run can have again."""

    def strange(number: int) -> object:
        """Give what is no data."""
        return iter([number])

    with pytest.raises(InvalidOutput, match="register_codec"):
        Flow.somatize(Tool(strange)).run(1, root=tmp_path)


class Twice(FlowNode):
    """Asks for a value two times."""

    def run(self, value: object, turn: Turn) -> object:
        """Return what was read."""
        count: Callable[[], object] = lambda: value  # noqa: E731
        return [turn.value("read", 1, count, part="a_"), turn.value("read", 2, count, part="b_")]


def test_a_node_of_ones_own_keeps_values(tmp_path: Path) -> None:
    """What it takes from outside is kept once, and replayed."""
    flow = Flow.somatize(Twice())
    result = flow.run([1], root=tmp_path)

    assert result.output == flow.resume(result.id, root=tmp_path).output == [[1], [1]]


class Sober(LLM):
    """Its temperature is searched."""

    temperature: float = soma.search(0.0, 1.0)
    prompt: str = soma.search(choices=["{input}", "Please: {input}"])


def test_prompts_and_temperatures_are_searched(tmp_path: Path) -> None:
    """A space in the class is a space of the flow, also inside of a case or a graph."""
    model = ScriptedModel([heard])
    flow = Flow.somatize(Condition(bool, {"yes": Sober(), "no": None}), model=model)
    key = "condition.yes.sober"

    params = {f"{key}.temperature": 0.25, f"{key}.prompt": "Please: {input}"}
    other = soma.apply_params(flow, params)

    assert [*soma.search_space(flow)] == [*params]
    assert other.run("x", root=tmp_path).output == "<Please: x>"
    assert model.asked[0].options.temperature == 0.25
    assert flow.filter(key).temperature == 0.5


def test_a_run_of_a_flow_is_a_run(tmp_path: Path) -> None:
    """Its directory shows nodes, their turns and their tokens as any other."""
    flow = Flow.somatize(LLM() >> LLM(), model=ScriptedModel([heard, heard]), name="two")
    view = soma.RunView(flow.run("x", root=tmp_path, tags=["a"]).run_dir)

    assert (view.name, view.state, view.kind) == ("two", "completed", "flow")
    assert [timing.node for timing in view.node_timings()] == ["llm", "llm_2"]
    assert view.metric_names() == ["tokens/llm", "turns/llm", "tokens/llm_2", "turns/llm_2"]
    assert "llm_2" in view.to_svg()


def test_a_flow_draws_itself() -> None:
    """Text, SVG, Mermaid and DOT show the nodes inside of others too."""
    flow = Flow.somatize(Condition(bool, {"yes": LLM(), "no": None}) >> Tool(double))

    for drawn in (str(flow), flow.to_svg(), flow.to_mermaid(), flow.to_graphviz()):
        assert "condition.yes.llm" in drawn
        assert "double" in drawn
    assert repr(flow) == "<Flow `flow`: 3 nodes>"
