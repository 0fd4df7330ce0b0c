"""Runs that are taken up again: what happened does not happen twice."""

from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest

import soma
from soma import Filter, Flow, Graph, RunView
from soma.core import Usage
from soma.errors import (
    BudgetSpent,
    InvalidInput,
    JournalMismatch,
    ModelUnavailable,
    RunBusy,
    Suspended,
    UnknownRun,
)
from soma.flow import IO, LLM, Agent, Budget, Computation, Suspend, Tool, ask
from soma.testing import ScriptedModel
from soma.tracking import RunRecord, read_journal
from tests.flow.talking import NoModel, Shift, calling, only_run, told


def test_a_replay_calls_nobody(tmp_path: Path) -> None:
    """A run that has completed gives its output again, and stays as it is."""
    calls: list[int] = []

    def note(number: int) -> int:
        """Note a number."""
        calls.append(number)
        return number

    flow = Flow.somatize(Agent(tools=[note]) >> LLM() >> IO.write(tmp_path / "out.txt"))
    flow.model = ScriptedModel([calling(("note", {"number": 1})), told, told])
    result = flow.run("x", root=tmp_path)
    (tmp_path / "out.txt").unlink()
    before = (result.run_dir / "events.jsonl").read_bytes()
    flow.model = NoModel()

    assert flow.resume(result.run_dir) == result
    assert (calls, (tmp_path / "out.txt").exists()) == ([1], False)
    assert (result.run_dir / "events.jsonl").read_bytes() == before


def test_a_failed_run_goes_on_where_it_failed(tmp_path: Path) -> None:
    """A server that was down is asked again; what came before is not."""
    model = ScriptedModel(["a", ModelUnavailable("down"), told])
    flow = Flow.somatize(LLM() >> LLM(prompt="b {input}"), model=model)
    with pytest.raises(ModelUnavailable):
        flow.run("x", root=tmp_path)
    assert RunRecord(only_run(tmp_path)).state == "failed"

    assert flow.resume(only_run(tmp_path)).output == "b a"
    assert (RunRecord(only_run(tmp_path)).state, len(model.asked)) == ("completed", 3)


def test_times_and_turns_go_on(tmp_path: Path) -> None:
    """In a run that went on, a turn that was replayed is none, and times follow each other."""
    model = ScriptedModel(["a", ModelUnavailable("down"), "b"])
    flow = Flow.somatize(LLM() >> LLM(), model=model)
    with pytest.raises(ModelUnavailable):
        flow.run("x", root=tmp_path)
    flow.resume(only_run(tmp_path))

    record = RunRecord(only_run(tmp_path))
    turns = [(one.node, one.cached, one.failed) for one in record.timings()]
    starts = [line.start for line in read_journal(record.dir)]

    assert turns == [("llm", False, False), ("llm_2", False, True), ("llm_2", False, False)]
    assert starts == sorted(starts)
    assert [point["step"] for point in record.metric_series("tokens/llm_2")] == [0]


def test_a_question_stops_the_run(tmp_path: Path) -> None:
    """The run is interrupted with the question, and the answer goes to its place."""
    flow = Flow.somatize(LLM() >> IO.ask("Is {input} good?") >> LLM(prompt="so {input}"))
    flow.model = ScriptedModel(["it", told])

    with pytest.raises(Suspended, match="Is it good") as caught:
        flow.run("x", root=tmp_path)

    record = RunRecord(only_run(tmp_path))
    assert (caught.value.question, caught.value.at) == ("Is it good?", "ask/ask")
    assert (record.state, "Is it good?" in str(record.error)) == ("interrupted", True)
    assert flow.resume(record.id, root=tmp_path, answer="yes").output == "so yes"


def test_a_run_without_an_answer_asks_again(tmp_path: Path) -> None:
    """Resumed without an answer, the question is the same and is kept once."""
    flow = Flow.somatize(IO.ask("Go on?"))
    for call in (lambda: flow.run(root=tmp_path), lambda: flow.resume(only_run(tmp_path))):
        with pytest.raises(Suspended):
            call()

    assert [type(line).__name__ for line in read_journal(only_run(tmp_path))] == [
        "ValueLine",
        "AskedLine",
    ]


def test_several_questions_want_several_answers(tmp_path: Path) -> None:
    """One answer for two questions is refused; answers by place are taken."""
    flow = Flow.somatize(IO.ask("A?") | IO.ask("B?"))
    with pytest.raises(Suspended):
        flow.run(root=tmp_path)
    run = only_run(tmp_path)

    with pytest.raises(InvalidInput, match="2 questions are open, at `ask"):
        flow.resume(run, answer="yes")

    answers = {"ask": "a", "ask_2/ask": "b"}
    assert flow.resume(run, answers=answers).output == {"ask": "a", "ask_2": "b"}


def test_an_answer_without_a_question_is_refused(tmp_path: Path) -> None:
    """Nothing happens to a run that asks nothing."""
    flow = Flow.somatize(LLM(), model=ScriptedModel([ModelUnavailable("down")]))
    with pytest.raises(ModelUnavailable):
        flow.run("x", root=tmp_path)

    with pytest.raises(InvalidInput, match="no question is open"):
        flow.resume(only_run(tmp_path), answer="yes")


def test_a_tool_that_asks_is_called_again_with_the_answer(tmp_path: Path) -> None:
    """The other call of its reply is made, and not made again."""
    calls: list[str] = []

    def remove(name: str) -> str:
        """Remove a file, if a person agrees."""
        calls.append(name)
        return "removed" if ask(f"Remove {name}?") == "yes" else "kept"

    def look(name: str) -> str:
        """Look."""
        calls.append("look")
        return name

    model = ScriptedModel(
        [
            calling(("remove", {"name": "a"}), ("look", {"name": "b"})),
            lambda messages: " ".join(one.text for one in messages[-2:]),
        ]
    )
    flow = Flow.somatize(Agent(tools=[Tool(remove, once=True), look]), model=model)
    with pytest.raises(Suspended, match="Remove a"):
        flow.run("x", root=tmp_path)

    assert flow.resume(only_run(tmp_path), answer="yes").output == "removed b"
    assert sorted(calls) == ["a", "a", "look"]


def test_the_answer_to_a_raised_question_is_what_the_tool_gives(tmp_path: Path) -> None:
    """A tool that raises `Suspend` is not called again."""
    calls: list[str] = []

    def approve(plan: str) -> str:
        """Ask a person."""
        calls.append(plan)
        raise Suspend(f"Is {plan} right?")

    model = ScriptedModel([calling(("approve", {"plan": "it"})), told])
    flow = Flow.somatize(Agent(tools=[approve]), model=model)
    with pytest.raises(Suspended, match="Is it right"):
        flow.run("x", root=tmp_path)

    assert flow.resume(only_run(tmp_path), answer="no").output == "no"
    assert calls == ["it"]


def test_a_tool_that_catches_all_does_not_swallow_a_question(tmp_path: Path) -> None:
    """The run stops for it, as it would without the tool's `except`."""

    def greedy(text: str) -> str:
        """Catch everything."""
        try:
            return str(ask("Really?"))
        except BaseException:
            return "caught"

    flow = Flow.somatize(Tool(greedy))
    with pytest.raises(Suspended, match="Really"):
        flow.run("x", root=tmp_path)

    assert flow.resume(only_run(tmp_path), answer="yes").output == "yes"


def test_asking_outside_of_a_flow_is_refused() -> None:
    """`ask` says where it works."""
    with pytest.raises(InvalidInput, match="outside of a flow"):
        ask("Who?")


def test_a_changed_flow_is_another_run(tmp_path: Path) -> None:
    """A request that differs is told with its node, before anybody is asked."""
    flow = Flow.somatize(LLM(prompt="a {input}") >> IO.ask(), model=ScriptedModel(["x"]))
    with pytest.raises(Suspended):
        flow.run("x", root=tmp_path)
    changed = Flow.somatize(LLM(prompt="b {input}") >> IO.ask(), model=NoModel())

    with pytest.raises(JournalMismatch, match=r"node `llm` does not go on .* another run"):
        changed.resume(only_run(tmp_path), answer="yes")


def test_a_node_of_another_name_does_nothing_again(tmp_path: Path) -> None:
    """A flow that lacks a node which has acted does not go on, and calls nobody."""
    calls: list[str] = []

    def pay(amount: int) -> int:
        """Pay."""
        calls.append("paid")
        return amount

    def flow_of(name: str) -> Flow:
        inner = Flow.somatize(Tool(pay, name=name), name="inner")
        return Flow.somatize(inner >> IO.ask())

    with pytest.raises(Suspended):
        flow_of("pay").run(5, root=tmp_path)

    with pytest.raises(JournalMismatch, match=r"has no such node\. Did you mean `inner\.pays`"):
        flow_of("pays").resume(only_run(tmp_path), answer="yes")
    assert flow_of("pay").resume(only_run(tmp_path), answer="yes").output == "yes"
    assert calls == ["paid"]


def test_a_run_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """A flow does not take up the run of a training."""
    with pytest.raises(RuntimeError), soma.track_run("train", root=tmp_path):
        raise RuntimeError
    before = (only_run(tmp_path) / "status.json").read_bytes()

    with pytest.raises(InvalidInput, match="no run of a flow"):
        Flow.somatize(IO.ask()).resume(only_run(tmp_path))
    assert (only_run(tmp_path) / "status.json").read_bytes() == before


def test_a_longer_flow_does_not_go_on_with_a_completed_run(tmp_path: Path) -> None:
    """Nothing is added to a run that has ended."""
    done = Flow.somatize(LLM(), model=ScriptedModel(["x"])).run("x", root=tmp_path)

    with pytest.raises(JournalMismatch, match="has ended"):
        Flow.somatize(LLM() >> LLM(), model=NoModel()).resume(done.run_dir)


def test_a_run_that_goes_on_is_busy(tmp_path: Path) -> None:
    """A tool of a run cannot take up the run itself."""

    def again(number: int) -> str:
        """Resume the run that calls this."""
        flow.resume(only_run(tmp_path))
        return ""

    flow = Flow.somatize(Tool(again))

    with pytest.raises(RunBusy, match="goes on in another process"):
        flow.run(1, root=tmp_path)


def test_a_run_that_is_not_there_is_told(tmp_path: Path) -> None:
    """An id without a directory names it."""
    with pytest.raises(UnknownRun, match="no run directory at"):
        Flow.somatize(IO.ask()).resume("nothing", root=tmp_path)


def test_a_fitted_graph_is_not_fitted_again(tmp_path: Path) -> None:
    """The graph of another process gets what was learned, and arrays come back."""
    data = np.arange(6.0)

    def read(x: int) -> Any:
        """Give data."""
        return {"x": data}

    def flow_of(graph: Graph) -> Flow:
        return Flow.somatize(Tool(read) >> Computation(graph, mode="fit") >> IO.ask("Well?"))

    with pytest.raises(Suspended):
        flow_of(Graph.somatize(Shift(), cache=None)).run(1, root=tmp_path)
    other = Graph.somatize(Shift(), cache=None)

    flow_of(other).resume(only_run(tmp_path), answer="yes")

    assert other.get_node_state("shift") == 2.5


def test_a_trained_graph_is_not_trained_again(tmp_path: Path) -> None:
    """Weights come back into a graph that has not been built, and forward goes on with them."""
    torch = pytest.importorskip("torch")

    class Dense(soma.DifferentiableFilter):
        def build_module(self, input_shape: Any) -> Any:
            return torch.nn.Linear(input_shape[-1], 1)

    def data(x: int) -> Any:
        """Give data."""
        return {"x": torch.ones(8, 2), "y": torch.ones(8, 1)}

    def row(answer: str) -> Any:
        """Give a row."""
        return torch.ones(1, 2)

    def flow_of(graph: Graph) -> Flow:
        fit = Computation(graph, mode="fit", options={"epochs": 2, "progress": False})
        ask = IO.ask("Go on?") >> Tool(row)
        return Flow.somatize(Tool(data) >> fit >> ask >> graph)

    first, other = (Graph.somatize(Dense(), cache=None) for _ in range(2))
    with pytest.raises(Suspended):
        flow_of(first).run(1, root=tmp_path)
    output = flow_of(other).resume(only_run(tmp_path), answer="go").output

    assert torch.equal(output, first.forward(torch.ones(1, 2)))


def test_a_budget_of_turns_is_a_limit(tmp_path: Path) -> None:
    """The run is interrupted, and goes on with more."""
    flow = Flow.somatize(LLM() >> LLM(), model=ScriptedModel(["a", "b"]), budget=Budget(turns=1))
    with pytest.raises(BudgetSpent, match="used 1 of its 1 turns, and wants more"):
        flow.run("x", root=tmp_path)
    run = only_run(tmp_path)
    assert RunView(run).state == "interrupted"

    with pytest.raises(BudgetSpent):
        flow.resume(run)
    assert flow.resume(run, budget=Budget(turns=2)).turns == 2


def test_a_budget_of_tokens_counts_all_that_were_used(tmp_path: Path) -> None:
    """The reply that exceeds it is kept, so that more tokens go on behind it."""
    reply = calling(("gone", {}), tokens=60)
    model = ScriptedModel([reply, reply, "done"])
    flow = Flow.somatize(Agent(tools=[len_of]), model=model)
    with pytest.raises(BudgetSpent, match="used 120 of its 100 tokens"):
        flow.run("x", root=tmp_path, budget=Budget(tokens=100))

    result = flow.resume(only_run(tmp_path), budget=Budget(tokens=200))

    assert (result.output, result.usage) == ("done", Usage(output_tokens=120))


def test_a_budget_of_tokens_holds_for_a_model_that_tells_none(tmp_path: Path) -> None:
    """Then what is said is counted, and in a run that goes on it is the same."""
    flow = Flow.somatize(LLM() >> LLM(), model=ScriptedModel(["x" * 400] * 2))
    with pytest.raises(BudgetSpent, match="has used 300 of its 150 tokens"):
        flow.run("", root=tmp_path, budget=Budget(tokens=150))

    with pytest.raises(BudgetSpent, match="has used 300 of its 299 tokens"):
        flow.resume(only_run(tmp_path), budget=Budget(tokens=299))
    assert flow.resume(only_run(tmp_path), budget=Budget(tokens=300)).usage == Usage()


def len_of(text: str) -> int:
    """Return the length."""
    return len(text)


def test_a_budget_given_to_a_run_holds_when_it_goes_on(tmp_path: Path) -> None:
    """A resumption without a budget has that of the run."""
    flow = Flow.somatize(LLM() >> IO.ask() >> LLM(), model=ScriptedModel(["a", "b"]))
    with pytest.raises(Suspended):
        flow.run("x", root=tmp_path, budget=Budget(turns=1))

    with pytest.raises(BudgetSpent):
        flow.resume(only_run(tmp_path), answer="yes")


def test_a_budget_of_time_is_what_a_model_gets(tmp_path: Path) -> None:
    """Each call gets the time that is left, and no call begins after it."""
    model = ScriptedModel(["a"])
    flow = Flow.somatize(LLM() >> Tool(slow) >> LLM(), model=model, budget=Budget(seconds=0.2))

    with pytest.raises(BudgetSpent, match=r"of its 0\.2 seconds"):
        flow.run("x", root=tmp_path)

    assert 0 < (model.asked[0].options.seconds or 0) <= 0.2


def slow(text: str) -> str:
    """Take longer than the budget."""
    sleep(0.25)
    return text


@pytest.mark.parametrize("wrong", [{"turns": 0}, {"tokens": 1.5}, {"seconds": "1"}])
def test_a_budget_is_of_positive_numbers(wrong: Any) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidInput, match="a number above 0"):
        Budget(**wrong)


class Scale(Filter):
    """Multiplies."""

    def __init__(self, by: float) -> None:
        self.by = by

    def forward(self, x: Any, state: object) -> Any:
        """Return the product."""
        return [one * self.by for one in x]


def test_a_graph_with_other_parameters_is_another_graph(tmp_path: Path) -> None:
    """What a graph computed is not taken for what another one would compute."""

    def flow_of(by: float) -> Flow:
        return Flow.somatize(Graph.somatize(Scale(by), cache=None) >> IO.ask())

    with pytest.raises(Suspended):
        flow_of(2.0).run([1.0], root=tmp_path)

    with pytest.raises(JournalMismatch, match="something else was asked"):
        flow_of(3.0).resume(only_run(tmp_path), answer="yes")
    assert flow_of(2.0).resume(only_run(tmp_path), answer="yes").output == "yes"
