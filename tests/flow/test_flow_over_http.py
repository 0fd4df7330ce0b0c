"""Whole flows with the real client and a real server on loopback."""

from pathlib import Path
from typing import Literal

import pytest

from soma import Flow
from soma.errors import BudgetSpent, ModelUnavailable, NoAnswer
from soma.flow import LLM, Agent, Budget, OpenAIModel
from tests.flow.server import (
    AT_ONCE,
    ChatServer,
    call,
    chunk,
    completion,
    failing,
    silent,
    streamed,
    whole,
)
from tests.flow.talking import only_run


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def model(server: ChatServer, **more: object) -> OpenAIModel:
    """Return a model behind the server."""
    return OpenAIModel("m", base_url=server.url, api_key="key-of-mine", **more)  # type: ignore[arg-type]


def test_an_agent_calls_tools_over_http(server: ChatServer, tmp_path: Path) -> None:
    """Parallel calls go out and their results come back, after a 429 and a 500."""
    wanted = [call("1", "add", '{"a": 1, "b": 2}'), call("2", "add", '{"a": "x"}')]
    server.answers += [
        failing(429, **AT_ONCE),
        whole(completion(None, calls=wanted, finish="tool_calls")),
        failing(500, **AT_ONCE),
        whole(completion("It is 3.")),
    ]
    flow = Flow.somatize(Agent(tools=[add]), model=model(server))

    result = flow.run("1 + 2", root=tmp_path)

    said = [one["content"] for one in server.asked[-1].body["messages"] if one["role"] == "tool"]
    assert (result.output, result.turns) == ("It is 3.", 2)
    assert said[0] == "3"
    assert said[1].startswith("`add` was not called.")


def test_a_stream_is_heard_by_node_and_a_replay_says_nothing(
    server: ChatServer, tmp_path: Path
) -> None:
    """`on_text` gets each piece with the node that asked, when it comes and not again."""
    server.answers += [
        streamed(chunk({"content": "Hi"}), chunk({"content": " you."}), chunk({}, "stop")),
        streamed(chunk({"content": "Bye."}), chunk({}, "stop")),
    ]
    heard: list[tuple[str, str]] = []
    flow = Flow.somatize(
        LLM() >> LLM(),
        model=model(server, stream=True),
        on_text=lambda node, piece: heard.append((node, piece)),
    )
    result = flow.run("hello", root=tmp_path)
    flow.resume(result.run_dir)

    assert result.output == "Bye."
    assert heard == [("llm", "Hi"), ("llm", " you."), ("llm_2", "Bye.")]


def test_a_label_is_repaired_over_http(server: ChatServer, tmp_path: Path) -> None:
    """The schema goes out, and a reply that does not fit comes back to the server."""
    server.answers += [whole(completion("perhaps")), whole(completion('"yes"'))]
    flow = Flow.somatize(LLM(schema=Literal["yes", "no"]), model=model(server))

    assert flow.run("well?", root=tmp_path).output == "yes"
    assert "does not fit" in server.asked[1].body["messages"][-1]["content"]


def test_a_server_that_is_gone_is_asked_again_by_a_resumption(
    server: ChatServer, tmp_path: Path
) -> None:
    """The first reply is not asked for again."""
    server.answers += [whole(completion("a")), failing(503, **AT_ONCE), whole(completion("b"))]
    flow = Flow.somatize(LLM() >> LLM(), model=model(server, tries=1))
    with pytest.raises(ModelUnavailable):
        flow.run("x", root=tmp_path)

    assert flow.resume(only_run(tmp_path)).output == "b"
    assert len(server.asked) == 3


def test_a_slow_server_meets_the_budget_of_time(server: ChatServer, tmp_path: Path) -> None:
    """The call ends with the flow's time, and the error names the budget."""
    server.answers += [silent]
    flow = Flow.somatize(LLM(), model=model(server), budget=Budget(seconds=0.5))

    with pytest.raises(BudgetSpent, match=r"of its 0\.5 seconds"):
        flow.run("x", root=tmp_path)


def test_a_reply_that_is_cut_says_so(server: ChatServer, tmp_path: Path) -> None:
    """A truncated reply is no answer, whatever it begins with."""
    server.answers += [whole(completion("It is", finish="length"))]

    with pytest.raises(NoAnswer, match=r"was cut after .* more `most_tokens`"):
        Flow.somatize(LLM(), model=model(server)).run("x", root=tmp_path)
