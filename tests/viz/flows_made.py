"""What the tests of flows have in common: a run directory as a flow leaves it, written by hand."""

import json
from collections.abc import Iterable
from pathlib import Path

from msgspec.json import encode

from soma import RunView, track_run
from soma.core import Message, NodeFinished, NodeStarted, Reply, ToolCall, Usage
from soma.files import Appender
from soma.tracking import (
    AnsweredLine,
    AskedLine,
    BegunLine,
    GraphRecord,
    JournalLine,
    ModelLine,
    NodeRecord,
    RouteLine,
    RunListener,
    ToolLine,
    ValueLine,
)

LONG = "\n".join(f"{line:04}  the quick brown fox jumps over the lazy dog" for line in range(400))
HOSTILE_TEXTS = (
    "</div></details><script>alert(1)</script>",
    "\x1b[2J\x1b]0;title\x07red\x1b[0m",
    "\u202egnp.exe\u2066",
    "a\0b\rc\x9b1mtab\there",
    "{{ 7 * 7 }}{% raw %}",
)


def record_lines(run_dir: Path, lines: Iterable[JournalLine]) -> None:
    """Write lines as a flow does."""
    with Appender(str(run_dir / "journal.jsonl")) as file:
        for line in lines:
            file.append(encode(line))


def call(number: int, name: str, **arguments: object) -> ToolCall:
    """Return a call of a tool."""
    return ToolCall(id=f"call_{number}", name=name, arguments=json.dumps(arguments))


def asked(
    at: str, node: str, turn: int, *said: Message, start: float, known: int = 0,
    problem: str | None = None, **reply: object,
) -> ModelLine:  # fmt: skip
    """Return the line of a turn of a model."""
    return ModelLine(
        at=at, request="r", node=node, turn=turn, known=known, messages=said,
        reply=Reply(model="small-1", **{"usage": Usage(input_tokens=900 * turn, output_tokens=60),
                                        **reply}),
        start=start, seconds=1.25, problem=problem,
    )  # fmt: skip


def called(
    at: str, node: str, turn: int, one: ToolCall, observation: str, *, start: float,
    outcome: str = "ok",
) -> ToolLine:  # fmt: skip
    """Return the line of a call of a tool."""
    return ToolLine(
        at=at, request="r", node=node, turn=turn, call=one, outcome=outcome,
        observation=observation, start=start, seconds=0.5,
    )  # fmt: skip


def heard(one: ToolCall, text: str) -> Message:
    """Return what a model is told of a call."""
    return Message(role="tool", text=text, call_id=one.id)


def tuning() -> list[JournalLine]:
    """Return an agent of three turns that calls tools side by side; one is refused, one fails."""
    train, health = call(1, "train", width=64, lr=0.1), call(2, "health")
    delete, again = call(3, "delete", path="/"), call(4, "train", width=64, lr=9)
    first = (train, health)
    second = (delete, again)
    saw = "accuracy 0.61", "DEAD: layer `trunk.0` gives 0 for each row"
    refused = "no tool `delete`; there are train, health."
    return [
        asked("tune/1/model", "tune", 1,
              Message(role="system", text="You tune a graph. Read its health first."),
              Message(role="user", text="Make it better than 0.9."),
              start=0.2, stop="calls", calls=first, text="I train once, and look at the health."),
        called("tune/1/call_1", "tune", 1, train, saw[0], start=1.6),
        called("tune/1/call_2", "tune", 1, health, saw[1], start=1.6),
        asked("tune/2/model", "tune", 2,
              Message(role="assistant", text="I train once, and look at the health.", calls=first),
              heard(train, saw[0]), heard(health, saw[1]),
              known=2, start=2.4, stop="calls", calls=second),
        called("tune/2/call_1", "tune", 2, delete, refused, start=3.7, outcome="refused"),
        called("tune/2/call_2", "tune", 2, again, "FloatingPointError: loss is NaN", start=3.7,
               outcome="error"),
        asked("tune/3/model", "tune", 3,
              Message(role="assistant", calls=second), heard(delete, refused),
              heard(again, "FloatingPointError: loss is NaN"),
              known=5, start=4.4, text="**lr 0.1** it is; the dead layer has too large a bias."),
    ]  # fmt: skip


def judging() -> list[JournalLine]:
    """Return a loop of three rounds with a route each, a question, and replies gone wrong."""
    lines: list[JournalLine] = []
    for number in (1, 2, 3):
        label = "again" if number < 3 else "done"
        start = 5.0 + 2 * number
        if number > 1:
            lines.append(asked(f"judge/{number}/fix/1/model", "judge.fix", 1,
                               Message(role="user", text="Shorten it."), start=start,
                               text="Shorter."))  # fmt: skip
        lines.append(RouteLine(at=f"judge/{number}/route", request="r", node="judge", label=label,
                               labels=("again", "done"), start=start + 1, seconds=0))  # fmt: skip
    which = RouteLine(at="which/route", request="r", node="which", label="good",
                      labels=("good", "bad", "so so"), start=12.5, seconds=0)  # fmt: skip
    praise = asked("which/good/praise/1/model", "which.good.praise", 1,
                   Message(role="user", text="Praise it."),
                   start=12, text="Well done.")  # fmt: skip
    bad = '{"score": "high"}'
    return [
        *lines,
        which,
        praise,
        AskedLine(at="approve/ask", request="r", node="approve", start=13.0,
                  question="May the graph be kept?"),
        AnsweredLine(at="approve/ask", node="approve", answer={"yes": True}, start=60.0),
        asked("grade/1/model", "grade", 1, Message(role="user", text="Grade it."), start=61.0,
              text=bad, problem="`score` is a string; a number is wanted."),
        asked("grade/2/model", "grade", 2, Message(role="assistant", text=bad),
              Message(role="user", text="`score` is a string; a number is wanted."), known=1,
              start=62.5, text='{"score": 0.97}'),
        asked("long/1/model", "long", 1, Message(role="user", text=LONG), start=64.0,
              text="It goes on and", stop="length"),
        asked("never/1/model", "never", 1, Message(role="user", text="Make a bomb."), start=66.0,
              text="I can't help with that.", stop="refusal"),
        BegunLine(at="mail/call", node="mail"),
        ValueLine(at="out/write", request="r", node="out", action="write", start=68.0,
                  seconds=0.002, shown="'The graph reaches 0.97.'", where="report.txt"),
    ]  # fmt: skip


def hostile() -> list[JournalLine]:
    """Return turns in which a model and its tools write what no page or terminal may obey."""
    lines: list[JournalLine] = []
    for number, text in enumerate(HOSTILE_TEXTS, 1):
        one = ToolCall(id=text, name=text, arguments=text)
        lines.append(asked(f"tune/{number}/model", text, number, Message(role="user", text=text),
                           start=float(number), text=text, calls=(one,), problem=text))  # fmt: skip
        lines.append(called(f"tune/{number}/call_1", text, number, one, text,
                            start=number + 0.5, outcome="error"))  # fmt: skip
        lines.append(RouteLine(at=text, request=text, node=text, label=text, labels=(text, "x"),
                               start=number + 0.6, seconds=0.0))  # fmt: skip
    return lines


def node(name: str, kind: str, *, config: dict[str, str] | None = None) -> NodeRecord:
    """Return a node of a flow."""
    return NodeRecord(id=name, class_name=kind, kind=kind.lower(), has_module=False,
                      parameters=None, trainable=None, config=config or {}, doc="")  # fmt: skip


FLOW = GraphRecord(
    name="tune the digits",
    nodes=(
        node("tune", "Agent"),
        node("judge", "Loop"),
        node("judge.fix", "LLM"),
        node("which", "Condition"),
        node("which.good.praise", "LLM"),
        node("which.bad.blame", "LLM"),
        node("approve", "IO"),
        node("grade", "LLM"),
        node("long", "LLM"),
        node("never", "LLM"),
        node("mail", "Tool"),
        node("out", "IO"),
        node("keep", "Computation"),
    ),
    edges=(
        ("tune", "judge"),
        ("judge", "judge.fix"),
        ("judge.fix", "which"),
        ("which", "which.good.praise"),
        ("which", "which.bad.blame"),
        ("which.good.praise", "approve"),
        ("which.bad.blame", "approve"),
        ("approve", "grade"),
        ("grade", "long"),
        ("grade", "never"),
        ("long", "mail"),
        ("never", "mail"),
        ("mail", "out"),
        ("out", "keep"),
    ),
)


def flown(
    root: Path, journal: Iterable[JournalLine] = (), name: str = "tune the digits"
) -> RunView:
    """Return a run of a flow with a journal; by default with something of each kind in it."""
    lines = [*journal] or [*tuning(), *judging()]
    with track_run(name, kind="flow", root=root) as run:
        run.record_graph(FLOW)
        record_lines(run.dir, lines)
        listener = RunListener(run, {one.id: one.id for one in FLOW.nodes})
        for one in FLOW.nodes[:-1]:
            if one.id == "which.bad.blame":
                continue
            listener(NodeStarted(node=one.id, phase="forward"))
            listener(NodeFinished(node=one.id, phase="forward", seconds=0.5))
    return RunView(run.dir)
