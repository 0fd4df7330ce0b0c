"""The real client asks a real server, and what comes back is a reply."""

import json
from typing import Any, Literal

import pytest

from soma.core import Message, Reply, ToolCall, Usage
from soma.errors import InvalidInput, ModelError
from soma.flow import Model, OpenAIModel, Options, Schema, Tool
from tests.flow.server import USAGE, ChatServer, call, chunk, completion, streamed, whole

HELLO = (Message(role="user", text="hello"),)
SPENT = Usage(input_tokens=19, output_tokens=10)


def test_a_text_comes_back(server: ChatServer) -> None:
    """Text, usage and the name that the model gives itself make a reply."""
    server.answers = [whole(completion("Hi there."))]
    reply = OpenAIModel("small", base_url=server.url).complete(HELLO)

    assert reply == Reply(text="Hi there.", usage=SPENT, model="small-2026-01-01")
    assert server.asked[0].path == "/v1/chat/completions"
    assert isinstance(OpenAIModel("small"), Model)


def test_a_conversation_is_sent_whole(server: ChatServer) -> None:
    """Roles, calls of tools and their answers have the names that the API gives them."""
    server.answers = [whole(completion("Done."))]
    asked = ToolCall(id="c1", name="add", arguments='{"a": 1}')
    OpenAIModel("small", base_url=server.url, api_key="sk-1").complete(
        [
            Message(role="system", text="Be brief."),
            Message(role="user", text="Add, \ud800."),
            Message(role="assistant", calls=(asked,)),
            Message(role="tool", text="3", call_id="c1"),
        ]
    )
    function = {"name": "add", "arguments": '{"a": 1}'}

    assert server.asked[0].body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add, ?."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "3", "tool_call_id": "c1"},
    ]
    assert server.asked[0].headers["Authorization"] == "Bearer sk-1"


def test_options_are_sent_where_they_are_given(server: ChatServer) -> None:
    """What is None is left to the server; a name takes the place of the model's own."""
    server.answers = [whole(completion("a")), whole(completion("b"))]
    model = OpenAIModel("small", base_url=server.url)
    model.complete(HELLO, [], None, Options(name="large", temperature=0.0, most_tokens=7))
    model.complete(HELLO)
    told, bare = (asked.body for asked in server.asked)

    assert (told["model"], told["temperature"], told["max_tokens"]) == ("large", 0.0, 7)
    assert sorted(bare) == ["messages", "model"]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize("stream", [False, True])
def test_calls_of_tools_come_back_in_order(server: ChatServer, stream: bool) -> None:
    """Several calls side by side keep their ids, names and arguments, also in pieces."""
    first, second = call("c1", "add", '{"a": 1, "b": 2}'), call("c2", "add", '{"a": 3}')
    pieces = [
        chunk(
            {"role": "assistant", "content": None, "tool_calls": [call("c1", "add", "", index=0)]}
        ),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a": 1, '}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"b": 2}'}}]}),
        chunk({"tool_calls": [call("c2", "add", '{"a":', index=1)]}),
        chunk({"tool_calls": [{"index": 1, "function": {"arguments": " 3}"}}]}),
        chunk({}, "tool_calls"),
        USAGE,
    ]
    server.answers = [
        streamed(*pieces)
        if stream
        else whole(completion(calls=[first, second], finish="tool_calls"))
    ]
    reply = OpenAIModel("s", base_url=server.url, stream=stream).complete(HELLO, [Tool(add).spec])

    assert (reply.stop, reply.text, reply.usage) == ("calls", "", SPENT)
    assert [(one.id, one.arguments) for one in reply.calls] == [
        ("c1", '{"a": 1, "b": 2}'),
        ("c2", '{"a": 3}'),
    ]
    sent = server.asked[0].body["tools"][0]["function"]
    assert (sent["name"], sent["description"]) == ("add", "Add two numbers.")
    assert sent["parameters"] == Tool(add).spec.schema


def test_a_stream_is_handed_on_as_it_comes(server: ChatServer) -> None:
    """Each piece of text arrives on the thread that asked, and usage at the end."""
    server.answers = [
        streamed(
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "Hi"}),
            chunk({"content": " you."}),
            chunk({}, "stop"),
            USAGE,
        )
    ]
    pieces: list[str] = []
    model = OpenAIModel("small", base_url=server.url, stream=True)
    reply = model.complete(HELLO, [], None, Options(on_text=pieces.append))

    assert pieces == ["Hi", " you."]
    assert reply == Reply(text="Hi you.", usage=SPENT, model="small-2026-01-01")
    assert server.asked[0].body["stream_options"] == {"include_usage": True}


def test_an_error_of_the_listener_is_its_own(server: ChatServer) -> None:
    """What `on_text` raises comes out as it is, and the call is over."""
    server.answers = [streamed(chunk({"content": "Hi"}), chunk({"content": " you."}, "stop"))]

    def listen(piece: str) -> None:
        raise ZeroDivisionError(piece)

    with pytest.raises(ZeroDivisionError, match="Hi"):
        OpenAIModel("s", base_url=server.url, stream=True).complete(
            HELLO, [], None, Options(on_text=listen)
        )


def test_a_server_that_does_not_stream_is_understood(server: ChatServer) -> None:
    """A whole completion in place of a stream is taken, and handed on in one piece."""
    server.answers = [whole(completion("Hi."))]
    pieces: list[str] = []
    model = OpenAIModel("small", base_url=server.url, stream=True)

    assert model.complete(HELLO, [], None, Options(on_text=pieces.append)).text == "Hi."
    assert pieces == ["Hi."]


@pytest.mark.parametrize(
    ("body", "stop", "text"),
    [
        (completion("Once upon", finish="length"), "length", "Once upon"),
        (completion(None, refusal="I cannot help."), "refusal", "I cannot help."),
        (completion("", finish="content_filter"), "refusal", "The server's content filter"),
        (completion("done", finish="eos"), "end", "done"),
    ],
)
def test_a_reply_says_why_it_ended(
    server: ChatServer, body: dict[str, Any], stop: str, text: str
) -> None:
    """Truncated replies and refusals are told apart from whole ones."""
    server.answers = [whole(body)]
    reply = OpenAIModel("small", base_url=server.url).complete(HELLO)

    assert reply.stop == stop
    assert reply.text.startswith(text)


def test_a_streamed_refusal_is_one(server: ChatServer) -> None:
    """The pieces of a refusal make its text."""
    server.answers = [
        streamed(chunk({"refusal": "I "}), chunk({"refusal": "won't."}), chunk({}, "stop"))
    ]
    reply = OpenAIModel("small", base_url=server.url, stream=True).complete(HELLO)

    assert (reply.stop, reply.text) == ("refusal", "I won't.")


# Replies of servers that say less than the API promises.
NOTHING = {"choices": [{"message": {"content": "a"}}]}
NO_IDS = {
    "choices": [
        {
            "finish_reason": "stop",
            "message": {
                "content": None,
                "tool_calls": [
                    {"function": {"name": "f", "arguments": {"a": 1}}},
                    {"id": "", "function": {"name": "g", "arguments": None}},
                ],
            },
        }
    ],
    "usage": None,
}
PARTS = {"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}}]}
SAME_INDEX = [
    chunk({"tool_calls": [call("x", "f", "{}", index=0)]}),
    chunk({"tool_calls": [call("y", "g", "{", index=0)]}),
    chunk({"tool_calls": [call("y", "g", "}", index=0)]}, "stop"),
]
NO_INDEX = [
    chunk({"tool_calls": [call(None, "f", '{"a"')]}),
    chunk({"tool_calls": [{"function": {"arguments": ":1}"}}]}),
    chunk({"tool_calls": [call(None, "g", {"b": 2})]}, "stop"),
]


@pytest.mark.parametrize(
    ("said", "text", "calls"),
    [
        (NOTHING, "a", []),
        (PARTS, "ab", []),
        (NO_IDS, "", [("call_1", "f", '{"a": 1}'), ("call_2", "g", "")]),
        (SAME_INDEX, "", [("x", "f", "{}"), ("y", "g", "{}")]),
        (NO_INDEX, "", [("call_1", "f", '{"a":1}'), ("call_2", "g", '{"b": 2}')]),
    ],
)
def test_servers_that_say_less_are_understood(
    server: ChatServer, said: Any, text: str, calls: list[tuple[str, str, str]]
) -> None:
    """Ids, usage, a reason to stop and texts of arguments may be missing."""
    stream = isinstance(said, list)
    server.answers = [streamed(*said) if stream else whole(said)]
    reply = OpenAIModel("small", base_url=server.url, stream=stream).complete(HELLO)

    assert (reply.text, reply.usage, reply.stop) == (text, Usage(), "calls" if calls else "end")
    assert [(one.id, one.name, one.arguments) for one in reply.calls] == calls


@pytest.mark.parametrize(
    ("kind", "strict"),
    [
        ({"type": "object", "properties": {}, "additionalProperties": False}, True),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, False),
        ({"type": "object", "properties": {}, "additionalProperties": False, "not": {}}, False),
    ],
)
def test_a_schema_is_strict_where_it_can_be(
    server: ChatServer, kind: dict[str, Any], strict: bool
) -> None:
    """Objects that say all of themselves are sent as strict, others as a wish."""
    server.answers = [whole(completion("{}"))]
    OpenAIModel("small", base_url=server.url).complete(HELLO, [], kind)
    sent = server.asked[0].body["response_format"]

    assert sent["type"] == "json_schema"
    assert sent["json_schema"] == {"name": "reply", "schema": kind, "strict": strict}


def test_a_schema_of_no_object_is_put_into_one(server: ChatServer) -> None:
    """The API takes only objects, and whoever asked sees nothing of that."""
    server.answers = [whole(completion('{"value": "yes"}')), whole(completion('"no"'))]
    label = Schema(Literal["yes", "no"])
    model = OpenAIModel("small", base_url=server.url)
    texts = [model.complete(HELLO, [], label.json).text for _ in range(2)]
    sent = server.asked[0].body["response_format"]["json_schema"]

    assert [label.parse(text) for text in texts] == ["yes", "no"]
    assert (sent["schema"]["required"], sent["strict"]) == (["value"], True)


def test_a_reply_is_repaired_in_a_second_turn(server: ChatServer) -> None:
    """What does not fit is told to the model, and its next reply does."""
    schema = Schema(dict[str, int])
    server.answers = [whole(completion('{"a": "x"}')), whole(completion('{"a": 1}'))]
    model = OpenAIModel("small", base_url=server.url)
    text = model.complete(HELLO, [], schema.json).text
    with pytest.raises(ValueError, match="Expected `int`, got `str`") as refused:
        schema.parse(text)
    told = (
        *HELLO,
        Message(role="assistant", text=text),
        Message(role="user", text=str(refused.value)),
    )

    assert schema.parse(model.complete(told, [], schema.json).text) == {"a": 1}
    assert "got `str`" in json.dumps(server.asked[1].body["messages"][-1])


def test_a_model_shows_no_secrets() -> None:
    """Nothing is opened by making a model, and its repr shows no key."""
    model = OpenAIModel("small", base_url="http://me:pass@127.0.0.1:9/v1?key=k", api_key="sk-1")

    assert repr(model) == "OpenAIModel('small', base_url='http://127.0.0.1:9/v1')"
    assert model.secrets == ("sk-1", "pass")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"name": ""}, "as the name of a model"),
        ({"name": "a", "base_url": "localhost:8000"}, "`base_url` is no address"),
        ({"name": "a", "base_url": "http://[1"}, "`base_url` is no address"),
        ({"name": "a", "tries": 0}, "`tries` is 0"),
    ],
)
def test_a_model_that_cannot_be_is_refused(arguments: dict[str, Any], told: str) -> None:
    """What is wrong with it is told when it is made."""
    with pytest.raises(InvalidInput, match=told):
        OpenAIModel(**arguments)


def test_without_a_key_openai_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI's own server needs a key, and the error says how to give one."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        OpenAIModel("gpt-5").complete(HELLO)
