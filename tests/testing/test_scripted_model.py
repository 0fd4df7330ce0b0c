"""A model for tests says what it was told to, and keeps what it was asked."""

import pytest

from soma.core import Message, Reply, ToolSpec, Usage
from soma.errors import InvalidInput, ModelError, ModelUnavailable
from soma.flow import Model, Options
from soma.testing import ScriptedModel

HELLO = (Message(role="user", text="hello"),)


def test_replies_come_in_order() -> None:
    """Texts, replies and functions of the messages each make a reply."""
    whole = Reply(text="b", usage=Usage(output_tokens=3))
    model = ScriptedModel(["a", whole, lambda messages: messages[-1].text])
    replies = [model.complete(HELLO) for _ in range(3)]

    assert [reply.text for reply in replies] == ["a", "b", "hello"]
    assert replies[1] is whole
    assert isinstance(model, Model)


def test_an_exception_is_raised() -> None:
    """A scripted exception is what the asker gets, and the next reply comes after it."""
    model = ScriptedModel([ModelUnavailable("busy"), "there"])

    with pytest.raises(ModelUnavailable, match="busy"):
        model.complete(HELLO)
    assert model.complete(HELLO).text == "there"


def test_what_was_asked_is_kept() -> None:
    """Messages, tools, schema and options of each turn are there, and the text was handed on."""
    pieces: list[str] = []
    tool = ToolSpec(name="add", description="", schema={})
    options = Options(temperature=0.5, on_text=pieces.append)
    model = ScriptedModel(["hi"])
    model.complete(HELLO, [tool], {"type": "string"}, options)
    (asked,) = model.asked

    assert (asked.messages, asked.tools, asked.schema) == (HELLO, (tool,), {"type": "string"})
    assert asked.options is options
    assert pieces == ["hi"]


def test_one_question_too_many_is_told() -> None:
    """It says how often it was asked, how many replies it had, and what was asked."""
    model = ScriptedModel(["only"])
    model.complete(HELLO)

    with pytest.raises(ModelError, match=r"asked 2 times and has 1 replies.*'hello'"):
        model.complete(HELLO)


def test_what_is_no_reply_is_refused() -> None:
    """A number is no reply, also where a function gives it."""
    with pytest.raises(InvalidInput, match="a int came"):
        ScriptedModel([lambda messages: 3]).complete(HELLO)  # type: ignore[list-item,arg-type]
