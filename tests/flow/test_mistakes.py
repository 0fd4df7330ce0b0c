"""Mistakes that are natural to make: each is told with what to write instead."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from soma import Flow, RunView
from soma.errors import (
    InvalidInput,
    InvalidOutput,
    InvalidSchema,
    ModelError,
    NoAnswer,
    NotAFilter,
    Suspended,
)
from soma.flow import IO, LLM, Agent, Condition, Tool
from soma.testing import ScriptedModel
from tests.flow.talking import only_run
from tests.flow.test_conditions import grow


class Careless:
    """A model that gives something else than a reply."""

    def complete(self, messages: Any, tools: Any, schema: Any, options: Any) -> Any:
        """Return a mapping."""
        return {"text": "hi"}


@pytest.mark.parametrize(
    ("declare", "kind", "told"),
    [
        (lambda: LLM("Say {input}"), InvalidInput, "no name of one. Write a prompt as `prompt="),
        (lambda: Flow(model="gpt-5"), InvalidInput, r"such as `OpenAIModel\('gpt-5'\)`"),  # type: ignore[arg-type]
        (lambda: Flow(budget=5), InvalidInput, r"5 came for a budget; `Budget\(turns="),  # type: ignore[arg-type]
        (lambda: LLM() >> grow, NotAFilter, r"in a flow write `soma.flow.Tool\(...\)`"),
        (lambda: Condition(bool, {"yes": grow}), NotAFilter, r"`soma.flow.Tool\(...\)`"),
        (lambda: Condition("Good?", {"yes": None}), InvalidInput, r"`LLM\(prompt='Good\?'\)`"),  # type: ignore[arg-type]
        (lambda: Flow.somatize([LLM(), LLM()]), NotAFilter, "Chain its parts with `>>`"),
        (lambda: LLM(temperature="hot"), InvalidInput, "`temperature` is 'hot'; a number from 0"),  # type: ignore[arg-type]
        (lambda: LLM(most_tokens=0), InvalidInput, "`most_tokens` is 0; a number from 1"),
        (lambda: ScriptedModel("yes"), InvalidInput, "one reply came, 'yes'; a list"),
        (lambda: Tool(lambda x: x), InvalidSchema, "a lambda came for a tool. .*`def half"),
        (lambda: Agent(tools=[Agent()]), InvalidSchema, r"`Flow.somatize\(...\)` of this node"),
    ],
)
def test_a_declaration_says_what_is_wanted(
    declare: Callable[[], object], kind: type[Exception], told: str
) -> None:
    """It is refused where it is written, before anything runs."""
    with pytest.raises(kind, match=told):
        declare()


@pytest.mark.parametrize(
    ("node", "kind", "told"),
    [
        (Condition(lambda x: None, {"yes": None}), InvalidOutput, "True stands for `yes`"),
        (LLM(Careless()), ModelError, "`llm` gave a `dict`; .* return a `soma.core.Reply`"),
        (IO.write("nowhere/at.txt"), FileNotFoundError, "there is no folder .* Make it first"),
    ],
)
def test_a_run_says_what_is_wanted(
    tmp_path: Path, node: Any, kind: type[Exception], told: str
) -> None:
    """What can only be seen in a run is told with its reason."""
    with pytest.raises(kind, match=told):
        Flow.somatize(node).run("x", root=tmp_path)


@pytest.mark.parametrize("reply", ["good", " good.", '"good"', '{"label": "good"}'])
def test_a_label_may_come_bare(tmp_path: Path, reply: str) -> None:
    """A model behind a server that keeps to no schema answers with the label alone."""
    flow = Flow.somatize(
        Condition(LLM(prompt="Judge {input}"), {"good": None, "bad": LLM()}),
        model=ScriptedModel([reply]),
    )

    assert flow.run("it", root=tmp_path).output == "it"


def test_a_model_hears_which_json_is_wanted(tmp_path: Path) -> None:
    """What is no JSON is told with the schema, which not all servers pass on."""
    model = ScriptedModel(["four", "4"])

    assert Flow.somatize(LLM(schema=int), model=model).run("x", root=tmp_path).output == 4
    assert 'nothing around it: {"type": "integer"}' in model.asked[1].messages[-1].text


def test_more_repairs_go_on_with_a_run(tmp_path: Path) -> None:
    """Where no answer fits the message says what to change before the run is resumed."""
    model = ScriptedModel(["four", "five", "6"])
    with pytest.raises(NoAnswer, match=r"The last one: 'five' is .*`repairs` and call `flow\.res"):
        Flow.somatize(LLM(schema=int), model=model).run("x", root=tmp_path)
    run = only_run(tmp_path)

    assert Flow.somatize(LLM(schema=int, repairs=2), model=model).resume(run).output == 6


def test_several_questions_stand_in_one_message(tmp_path: Path) -> None:
    """It shows how all of them are answered, and a view of the run stands for the run."""
    flow = Flow.somatize(IO.ask("A?") | IO.ask("B?"))
    with pytest.raises(Suspended, match=r"answers={'ask/ask': ..., 'ask_2/ask': ...}") as waits:
        flow.run(root=tmp_path)
    view = RunView(only_run(tmp_path))

    assert str(waits.value).startswith("`ask/ask` asks: A?\n`ask_2/ask` asks: B?\n")
    assert flow.resume(view, answers={"ask": 1, "ask_2": 2}).output == {"ask": 1, "ask_2": 2}
