"""Agents: what they call, what they are told of it, how they end."""

from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from soma import Filter, Flow, Graph
from soma.core import Reply
from soma.errors import BudgetSpent, InvalidInput, NoAnswer
from soma.flow import LLM, Agent, Tool
from soma.testing import ScriptedModel
from tests.flow.talking import calling, only_run


def told(messages: Any) -> str:
    """Answer with what came of the calls."""
    return " | ".join(one.text for one in messages if one.role == "tool")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fail(a: int) -> int:
    """Fail."""
    raise RuntimeError(f"no {a}")


@dataclass
class Score:
    """A judgement."""

    value: int


def run(agent: object, folder: Path, *replies: Any) -> Any:
    """Run an agent on a text."""
    return Flow.somatize(agent, model=ScriptedModel(replies)).run("task", root=folder).output


def test_an_agent_hears_what_came_of_its_calls(tmp_path: Path) -> None:
    """Observations come in the order of the calls, whoever is first."""
    both = Barrier(2)

    def meet(name: str) -> str:
        """Wait for the other call."""
        both.wait(timeout=20)
        return name

    replies = [calling(("meet", {"name": "a"}), ("meet", {"name": "b"})), told]

    assert run(Agent(tools=[meet]), tmp_path, *replies) == "a | b"


@pytest.mark.parametrize(
    ("call", "observation"),
    [
        (("add", {"a": 1, "b": 2}), "3"),
        (("fail", {"a": 1}), "RuntimeError: no 1"),
        (("gone", {}), "There is no tool `gone`. Call one of those that you were told of."),
    ],
)
def test_whatever_a_call_comes_to_is_an_observation(
    tmp_path: Path, call: Any, observation: str
) -> None:
    """A result, an exception and an unknown tool are told to the model."""
    assert run(Agent(tools=[add, fail]), tmp_path, calling(call), told) == observation


def test_arguments_that_do_not_fit_are_not_passed_on(tmp_path: Path) -> None:
    """The model is told which one, and may call again."""
    replies = [calling(("add", {"a": "x"})), calling(("add", {"a": 2, "b": 3})), told]

    refused, added = run(Agent(tools=[add]), tmp_path, *replies).split(" | ")

    assert refused.startswith("`add` was not called.")
    assert added == "5"


def test_a_reply_may_have_thirty_two_calls(tmp_path: Path) -> None:
    """Those above are told of and not made."""
    made: list[int] = []

    def note(number: int) -> int:
        """Note a number."""
        made.append(number)
        return number

    calls = [("note", {"number": number}) for number in range(40)]
    heard = run(Agent(tools=[note]), tmp_path, calling(*calls), told).split(" | ")

    assert sorted(made) == list(range(32))
    assert "a reply may have 32 calls" in heard[32]


def test_turns_are_a_limit(tmp_path: Path) -> None:
    """An agent that only calls is stopped, and told how to go on."""
    call = calling(("add", {"a": 1, "b": 2}))

    with pytest.raises(BudgetSpent, match=r"used its 2 turns .* give it more `turns`"):
        run(Agent(tools=[add], turns=2), tmp_path, call, call)


def test_an_agent_with_more_turns_goes_on(tmp_path: Path) -> None:
    """What it heard is not asked for again."""
    call = calling(("add", {"a": 1, "b": 2}))
    model = ScriptedModel([call, call, told])
    with pytest.raises(BudgetSpent):
        Flow.somatize(Agent(model, tools=[add], turns=2)).run("x", root=tmp_path)

    result = Flow.somatize(Agent(model, tools=[add], turns=3)).resume(only_run(tmp_path))

    assert (result.output, result.turns, len(model.asked)) == ("3 | 3", 3, 3)


def test_an_answer_becomes_what_its_schema_says(tmp_path: Path) -> None:
    """An answer of JSON is the value that it stands for."""
    assert run(LLM(schema=Score), tmp_path, '{"value": 3}') == Score(3)


def test_an_answer_that_does_not_fit_is_repaired(tmp_path: Path) -> None:
    """The model is told what is wrong, and asked once more."""
    model = ScriptedModel(["three", '{"value": 3}'])
    flow = Flow.somatize(Agent(schema=Score, tools=[add]), model=model)

    assert flow.run("x", root=tmp_path).output == Score(3)
    assert "does not fit what is wanted" in model.asked[1].messages[-1].text


@pytest.mark.parametrize(
    ("reply", "match"),
    [
        ("three", "gave no answer that fits, in 1 turn. .*more `repairs`"),
        (Reply(text="I must not.", stop="refusal"), "refused: 'I must not.'"),
        (Reply(text='{"val', stop="length"), "was cut after 0 tokens: .*more `most_tokens`"),
        (calling(("add", {})), "You called tools, and there are none here"),
    ],
)
def test_no_answer_is_told_with_what_to_do(tmp_path: Path, reply: Any, match: str) -> None:
    """A misfit, a refusal, a cut reply and calls of nothing end the flow."""
    with pytest.raises(NoAnswer, match=match):
        run(LLM(schema=Score, repairs=0), tmp_path, reply)


def test_a_long_prompt_is_whole_and_a_longer_one_refused(tmp_path: Path) -> None:
    """Nothing is cut off silently, and no model is asked what cannot be kept."""
    model = ScriptedModel([lambda messages: str(len(messages[-1].text))])
    flow = Flow.somatize(LLM(), model=model)

    assert flow.run("x" * 300_000, root=tmp_path).output == "300000"
    with pytest.raises(InvalidInput, match="would say 600,002 bytes"):
        flow.run("x" * 600_000, root=tmp_path)
    assert len(model.asked) == 1


def test_a_graph_is_a_tool(tmp_path: Path) -> None:
    """An agent computes with a graph."""

    class Halve(Filter):
        """Halves."""

        def forward(self, x: Any, state: object) -> Any:
            """Return the half."""
            return x / 2

    g = Graph.somatize(Halve(), name="halve", cache=None)

    assert run(Agent(tools=[g]), tmp_path, calling(("halve", {"x": [4, 6]})), told) == "[2.0, 3.0]"


def test_a_flow_is_a_tool(tmp_path: Path) -> None:
    """It runs within the run of its agent, and its nodes are named after both."""
    inner = Flow.somatize(LLM(prompt="Search {input}"), name="search")
    replies = [calling(("search", {"input": "cats"})), lambda messages: "none", told]
    flow = Flow.somatize(Agent(tools=[inner]), model=ScriptedModel(replies))

    result = flow.run("x", root=tmp_path)

    assert (result.output, result.turns) == ("none", 3)
    assert '"at":"agent/1/call_1/llm/1/model"' in (result.run_dir / "journal.jsonl").read_text()
    assert flow.filter("agent.search.llm").prompt == "Search {input}"
    assert flow.resume(result.id, root=tmp_path) == result


def test_a_flow_that_fails_as_a_tool_is_an_observation(tmp_path: Path) -> None:
    """Its error is told to the agent, which goes on."""
    inner = Flow.somatize(Tool(fail), name="inner")

    heard = run(Agent(tools=[inner]), tmp_path, calling(("inner", {"input": 1})), told)

    assert heard == "RuntimeError: no 1"


def test_a_method_is_a_tool(tmp_path: Path) -> None:
    """Tools may share what they work on."""

    class Notes:
        def __init__(self) -> None:
            self.texts: list[str] = []

        def note(self, text: str) -> str:
            """Note a text."""
            self.texts.append(text)
            return "noted"

    notes = Notes()
    run(Agent(tools=[notes.note]), tmp_path, calling(("note", {"text": "a"})), told)

    assert notes.texts == ["a"]


@pytest.mark.parametrize(
    "arguments",
    [{"turns": 0}, {"tools": add}, {"repairs": -1}, {"model": 3}, {"prompt": "{"}, {"prompt": 3}],
)
def test_wrong_arguments_are_found_where_they_are_written(arguments: Any) -> None:
    """An agent that cannot work is refused by its constructor."""
    with pytest.raises(InvalidInput):
        Agent(**arguments)
