"""The conversation that took place in a flow, from top to bottom: a block for each turn."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import json

from soma.core import NodeId, ToolCall
from soma.draw import Badge, counted
from soma.viz._conversation import ConversationEntry
from soma.viz._durations import duration
from soma.viz.report._facts import Facts
from soma.viz.report._fill import fill
from soma.viz.report._section import Section
from soma.viz.report._told import Told

_SHOWN = 900  # characters of a text that stand there unasked
_SHOWN_LINES = 16
_LINE = 72  # characters of arguments that need no indent
_TAB = 4
_WHO = {"reply": "model", "question": "asks", "call": "tool"}
_SAID = {
    ("reply", "refused"): Badge(text="✕ the model refused", ink="bad"),
    ("reply", "truncated"): Badge(text="▲ cut off before its end", ink="warning"),
    ("reply", "not taken"): Badge(text="▲ not taken", ink="warning"),
    ("call", "error"): Badge(text="✕ error", ink="bad"),
    ("call", "refused"): Badge(text="▲ call refused", ink="warning"),
    ("call", "unknown"): Badge(text="? outcome unknown", ink="warning"),
    ("question", "open"): Badge(text="■ waits for an answer", ink="warning"),
}


class Words(NamedTuple):
    """A text: what is seen of it, and what a reader opens."""

    seen: str
    folded: str
    more: str  # `19,100 more characters`


class Call(NamedTuple):
    """A call of a tool, and what the model was given for it."""

    name: str
    arguments: Words
    badge: Badge | None
    time: str
    observation: Words | None  # None: none came


class Item(NamedTuple):
    """One thing in a turn."""

    kind: str
    who: str
    words: Words
    badge: Badge | None = None
    note: str = ""
    calls: tuple[Call, ...] = ()


class Turn(NamedTuple):
    """What belongs together under one heading, or a single line without one."""

    node: NodeId
    which: str  # `round 2 · turn 1`
    side: str
    items: tuple[Item, ...]
    after: str = ""  # a sentence before it: what is left out


def conversation_section(facts: Facts) -> Section | None:
    """Return what was said and done; None where the run is of no flow."""
    if not facts.told.count:
        return None
    return Section(
        key="conversation",
        title="Conversation",
        count=counted(sum(one.turns for one in facts.usage), "turn"),
        body=fill("conversation.jinja", turns=[*_turns(facts)]),
        left_out=facts.told.left_out,
    )


def _turns(facts: Facts) -> Iterator[Turn]:
    routes: Counter[tuple[NodeId, str]] = Counter()
    for number, entries in enumerate(_grouped(facts.told)):
        items = [*_items(entries, routes)]
        first = entries[0]
        reply = next((one for one in reversed(entries) if one.kind == "reply"), None)
        yield Turn(
            node=first.node,
            which=_which(first, has_turns=reply is not None),
            side="" if reply is None else _side(reply),
            items=tuple(items),
            after=_gap(facts, entries, number),
        )


def _which(entry: ConversationEntry, *, has_turns: bool) -> str:
    """Return which turn an entry is of; in a loop, also of which round."""
    rounds = [f"round {step}" for step in _rounds(entry)]
    return " · ".join([*rounds, *([f"turn {entry.turn}"] if has_turns else [])])


def _rounds(entry: ConversationEntry) -> list[str]:
    """Return the rounds of the loops around a node, the outermost first."""
    steps, known = entry.at.split("/")[:-2], entry.node.split(".")
    inside = len(known) - 1
    own = next((at for at, step in enumerate(steps) if at >= inside and step == known[-1]), None)
    return [step for step in steps[:own] if step.isdecimal() and step not in known]


def _gap(facts: Facts, entries: list[ConversationEntry], number: int) -> str:
    told = facts.told
    if told.gap is None or not number or told.entries[told.gap] is not entries[0]:
        return ""
    return f"{told.missing:,} entries are left out here"


def _grouped(told: Told) -> list[list[ConversationEntry]]:
    """Put what a node said in one turn together, where branches spoke side by side too."""
    found: list[list[ConversationEntry]] = []
    open_turns: dict[NodeId, list[ConversationEntry]] = {}
    for number, entry in enumerate(told.entries):
        if number == told.gap:
            open_turns.clear()
        last = open_turns.get(entry.node)
        if last is not None and _continues(last, entry):
            last.append(entry)
            continue
        found.append([entry])
        open_turns[entry.node] = found[-1]
    return found


def _continues(turn: list[ConversationEntry], entry: ConversationEntry) -> bool:
    if entry.kind in ("message", "reply"):
        return entry.at == turn[-1].at
    if turn[0].turn is None:
        return entry.kind == "answer"
    same = entry.turn in (None, turn[0].turn) and _rounds(entry) == _rounds(turn[0])
    return entry.kind != "value" and same


def _items(entries: list[ConversationEntry], routes: Counter[tuple[NodeId, str]]) -> Iterator[Item]:
    answers: dict[str, list[ConversationEntry]] = {}
    for entry in entries:
        if entry.call is not None:
            answers.setdefault(entry.call.id, []).append(entry)
    for entry in entries:
        if entry.kind == "route":
            routes[entry.node, entry.text] += 1
            yield _route(entry, routes[entry.node, entry.text])
        elif entry.kind == "call" and entry.call is not None:
            left = answers.get(entry.call.id, [])
            if any(one is entry for one in left):  # no reply has asked for it
                left.remove(entry)
                yield Item("call", "tool", _words(""), calls=(_call(entry.call, entry),))
        else:
            yield _item(entry, answers)


def _item(entry: ConversationEntry, answers: dict[str, list[ConversationEntry]]) -> Item:
    calls = []
    for call in entry.calls:
        found = answers.get(call.id)
        calls.append(_call(call, found.pop(0) if found else None))
    return Item(
        kind=entry.kind,
        who=_WHO.get(entry.kind, entry.who),
        words=_words(entry.text),
        badge=_SAID.get((entry.kind, entry.outcome)),
        note=entry.problem or (entry.where or ""),
        calls=tuple(calls),
    )


def _route(entry: ConversationEntry, times: int) -> Item:
    said = [f"out of {', '.join(entry.labels)}"] if len(entry.labels) > 1 else []
    said += [f"{times:,} times so far"] if times > 1 else []
    return Item("route", entry.node, _words(entry.text), note=" · ".join(said))


def _call(call: ToolCall, answer: ConversationEntry | None) -> Call:
    return Call(
        name=call.name,
        arguments=_words(_indented(call.arguments)),
        badge=None if answer is None else _SAID.get(("call", answer.outcome)),
        time="" if answer is None or answer.seconds is None else duration(answer.seconds),
        observation=None if answer is None else _words(answer.text),
    )


def _indented(arguments: str) -> str:
    """Return JSON in one line or with an indent, as it was written otherwise; other text as it is.

    No arguments are no text.
    """
    try:
        short = json.format(arguments.encode(), indent=0).decode()
        indented = json.format(arguments.encode(), indent=2).decode()
    except (ValueError, RecursionError):
        return arguments
    if len(short) > _LINE:
        return indented
    return "" if short == "{}" else short


def _side(reply: ConversationEntry) -> str:
    used = reply.usage
    tokens = f"{used.input_tokens:,} → {used.output_tokens:,} tokens" if used.tokens else ""
    time = "" if reply.seconds is None else duration(reply.seconds)
    return " · ".join(filter(None, [reply.who, tokens, time]))


def _words(text: str) -> Words:
    whole = text.expandtabs(_TAB).strip("\r\n")
    lines = whole.splitlines(keepends=True)
    seen = "".join(lines[:_SHOWN_LINES])[:_SHOWN]
    rest = whole[len(seen) :]
    if len(rest) < _SHOWN // 3 and len(lines) <= _SHOWN_LINES * 4 // 3:
        return Words(whole, "", "")
    if not rest.startswith("\n") and not seen.endswith("\n"):
        seen = seen[: max(seen.rfind(" ") + 1, seen.rfind("\n") + 1, len(seen) * 2 // 3)]
    rest = whole[len(seen) :]
    return Words(seen.rstrip("\n"), rest, f"{len(rest):,} more characters")
