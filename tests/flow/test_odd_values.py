"""What tools, models and people may give that is no plain text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soma import Flow
from soma.core import Reply, ToolCall, Usage
from soma.errors import InvalidInput, InvalidOutput, ModelError, Suspended
from soma.flow import IO, LLM, Agent, Condition
from soma.testing import ScriptedModel
from tests.flow.talking import calling


class Unspeakable(Exception):
    """An exception that cannot say what is wrong."""

    def __str__(self) -> str:
        raise ValueError


class Unshowable:
    """A value that fails when it is looked at."""

    def __repr__(self) -> str:
        raise ValueError


def nested() -> object:
    """Return lists in each other, too deep to be written."""
    found: list[object] = []
    for _ in range(10_000):
        found = [found]
    return found


def unspeakable() -> object:
    """Fail without words."""
    raise Unspeakable


ODD: dict[str, Callable[[], object]] = {
    "Unspeakable: it cannot say what is wrong": unspeakable,
    "<Unshowable>": Unshowable,
    "<list>": nested,
    "<int>": lambda: 10**5000,
}


@pytest.mark.parametrize("told", ODD)
def test_what_cannot_be_put_into_words_is_told_by_its_class(tmp_path: Path, told: str) -> None:
    """No value or exception of a tool ends a run."""

    def odd() -> object:
        """Give something odd."""
        return ODD[told]()

    model = ScriptedModel([calling(("odd", {})), lambda messages: messages[-1].text])

    assert Flow.somatize(Agent(model, tools=[odd])).run(root=tmp_path).output == told


def test_half_a_character_in_a_reply_is_replaced_at_once(tmp_path: Path) -> None:
    """The run sees what its journal holds, and so goes on."""
    flow = Flow.somatize(
        LLM(prompt="\ud800{input}") >> Condition(lambda text: text, {"a?": None}) >> IO.ask(),
        model=ScriptedModel(["a\udfff"]),
    )
    with pytest.raises(Suspended, match=r"a\?") as asked:
        flow.run("x", root=tmp_path)
    (run,) = (tmp_path / "runs").iterdir()

    assert asked.value.question == "a?"
    assert flow.resume(run, answer="yes").output == "yes"


def test_a_text_that_is_no_unicode_is_kept_as_it_is(tmp_path: Path) -> None:
    """A value of the flow's own comes back with the half characters it had."""
    flow = Flow.somatize(Condition(lambda value: "on", {"on": None}))
    result = flow.run({"\ud800": "\udfff"}, root=tmp_path)

    assert flow.resume(result.run_dir).output == result.output == {"\ud800": "\udfff"}


def test_long_results_of_many_calls_are_shortened_together(tmp_path: Path) -> None:
    """A model that calls much at once still hears of all of it."""

    def long() -> str:
        """Say much."""
        return "é" * 20_000

    model = ScriptedModel([calling(*[("long", {})] * 40), "done"])

    assert Flow.somatize(Agent(model, tools=[long])).run(root=tmp_path).output == "done"
    heard = [one.text for one in model.asked[1].messages if one.role == "tool"]
    assert heard[0] == heard[31] == f"{'é' * 2083}… (2,083 of 20,000 characters)"


def test_a_call_that_was_cut_off_before_its_arguments_is_not_made(tmp_path: Path) -> None:
    """No arguments mean none only in a reply that is whole."""

    def wipe(everything: bool = True) -> str:
        """Wipe."""
        raise AssertionError

    call = ToolCall(id="1", name="wipe", arguments="")
    model = ScriptedModel([Reply(calls=(call,), stop="length"), lambda said: said[-1].text])

    output = Flow.somatize(Agent(model, tools=[wipe])).run(root=tmp_path).output

    assert (
        output == "It was not called: your reply was cut off before its arguments. Call it again."
    )


class Careless:
    """A model that returns no reply."""

    def complete(self, messages: Any, tools: Any, schema: Any, options: Any) -> Reply:
        """Return a text."""
        return "hello"  # type: ignore[return-value]


def test_a_model_that_gives_no_reply_is_told(tmp_path: Path) -> None:
    """Its class is named, and what is wanted."""
    with pytest.raises(ModelError, match="gave a `str`; its `complete` has to return"):
        Flow.somatize(LLM(Careless())).run(root=tmp_path)


def test_a_choice_that_is_no_label_is_told(tmp_path: Path) -> None:
    """Also where it cannot be compared with one."""
    flow = Flow.somatize(Condition(lambda value: np.array([1, 2]), {"a": None}))

    with pytest.raises(InvalidOutput, match="none of its labels"):
        flow.run(root=tmp_path)


@pytest.mark.parametrize("label", ["a\x1b[31m", "a\nb", "a\u202eb", ""])
def test_a_label_is_a_part_of_an_id(label: str) -> None:
    """What cannot stand in the id of a node is refused where it is written."""
    with pytest.raises(InvalidInput, match="control characters"):
        Condition(bool, {label: LLM()})


@pytest.mark.parametrize("answer", [(1, 2), float("nan"), object(), 2**60, "\ud800"])
def test_an_answer_that_would_not_come_back_is_refused(tmp_path: Path, answer: Any) -> None:
    """A run that goes on has exactly the answer that was given, so it has to be plain."""
    with pytest.raises(InvalidInput, match="other plain data"):
        Flow.somatize(IO.ask("How?")).run(root=tmp_path, answers={"ask": answer})


def test_a_reply_that_no_journal_holds_is_refused(tmp_path: Path) -> None:
    """Nothing is taken for kept that a run which goes on would not find."""
    model = ScriptedModel([Reply(text="a", usage=Usage(output_tokens=10**400))])

    with pytest.raises(InvalidInput, match="cannot be read back"):
        Flow.somatize(LLM(model)).run(root=tmp_path)
