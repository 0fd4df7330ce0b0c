"""`view.conversation()` and `view.node_usage()`: what took place in a flow, and what it cost."""

from pathlib import Path

from soma import track_run
from soma.core import Message, ToolCall
from soma.tracking import BegunLine, RunRecord
from soma.viz._conversation import conversation
from soma.viz.figures import metrics_info
from tests.viz.flows_made import asked, called, flown, judging, tuning


def test_what_was_said_is_told_once() -> None:
    """A model hears its own words and what tools gave again; the conversation has them once."""
    told = [(one.who, one.text[:20]) for one in conversation(tuning())]

    assert told == [
        ("system", "You tune a graph. Re"),
        ("user", "Make it better than "),
        ("small-1", "I train once, and lo"),
        ("train", "accuracy 0.61"),
        ("health", "DEAD: layer `trunk.0"),
        ("small-1", ""),
        ("delete", "no tool `delete`; th"),
        ("train", "FloatingPointError: "),
        ("small-1", "**lr 0.1** it is; th"),
    ]


def test_how_it_went_stands_in_words() -> None:
    """Replies, calls and questions say what became of them."""
    outcomes = {(one.kind, one.node): one.outcome for one in conversation([*tuning(), *judging()])}

    assert outcomes["question", "approve"] == "ok"
    assert outcomes["reply", "long"] == "truncated"
    assert outcomes["reply", "never"] == "refused"
    assert outcomes["call", "mail"] == "unknown"
    assert [one.outcome for one in conversation(tuning()) if one.kind == "call"] == [
        "ok",
        "ok",
        "refused",
        "error",
    ]


def test_a_repair_turn_says_why() -> None:
    """A reply that was not taken carries the reason, and the next one is taken."""
    replies = [one for one in conversation(judging()) if (one.kind, one.node) == ("reply", "grade")]

    assert [one.outcome for one in replies] == ["not taken", "ok"]
    assert replies[0].problem == "`score` is a string; a number is wanted."


def test_a_question_without_an_answer_is_open() -> None:
    """A run that waits for a person shows what it waits for."""
    waiting = [line for line in judging() if line.at == "approve/ask"][:1]

    assert [(one.kind, one.outcome) for one in conversation(waiting)] == [("question", "open")]


def test_a_call_that_ended_is_not_told_as_begun() -> None:
    """The line before a call that may happen once adds nothing when the call has ended."""
    one = ToolCall(id="1", name="mail", arguments="{}")
    begun = BegunLine(at="tune/1/call_1", node="tune")
    ended = called("tune/1/call_1", "tune", 1, one, "sent", start=1.0)

    assert [entry.text for entry in conversation([begun, ended])] == ["sent"]


def test_a_history_that_was_handed_in_is_told() -> None:
    """Words of an assistant and of tools that this run did not hear itself are shown."""
    said = Message(role="assistant", text="earlier"), Message(role="tool", text="x", call_id="9")
    told = conversation([asked("a/1/model", "a", 1, *said, start=0.0, text="now")])

    assert [(one.who, one.text) for one in told] == [
        ("assistant", "earlier"),
        ("tool", "x"),
        ("small-1", "now"),
    ]


def test_usage_is_counted_by_node(tmp_path: Path) -> None:
    """Turns, tokens, calls by name and outcome, and routes are sums over all turns of a node."""
    usage = {one.node: one for one in flown(tmp_path).node_usage()}
    tune = usage["tune"]

    assert (tune.turns, tune.usage.input_tokens, tune.usage.output_tokens) == (3, 5400, 180)
    assert tune.calls["train"] == {"ok": 1, "error": 1}
    assert tune.calls["delete"] == {"refused": 1}
    assert usage["judge"].routes == {"again": 2, "done": 1}
    assert (usage["grade"].not_taken, usage["approve"].questions) == (1, 1)


def test_a_run_of_another_kind_has_no_conversation(tmp_path: Path) -> None:
    """Without a journal both are empty."""
    view = flown(tmp_path)
    (view.dir / "journal.jsonl").unlink()

    assert (view.conversation(), view.node_usage()) == ([], [])


def test_tokens_of_nodes_share_axes(tmp_path: Path) -> None:
    """What a flow logs of each node stands in one figure."""
    with track_run("flow", root=tmp_path) as run:
        run.log("tokens/tune", 900)
        run.log("tokens/judge", 300)
    groups = metrics_info(RunRecord(run.dir), (), None).groups

    assert [(one.title, len(one.curves)) for one in groups] == [("tokens", 2)]


def test_the_reason_for_a_repair_is_told_once() -> None:
    """What a model hears of its reply that was not taken stands with that reply alone."""
    said = [one.text for one in conversation(judging()) if one.node == "grade"]

    assert said == ["Grade it.", '{"score": "high"}', '{"score": 0.97}']
