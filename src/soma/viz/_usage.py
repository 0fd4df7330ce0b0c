"""What each node of a flow cost and did: turns, tokens, calls of tools, routes."""

from collections.abc import Iterable
from dataclasses import dataclass

from soma.core import NodeId, Usage
from soma.tracking import RunRecord
from soma.viz._conversation import ConversationEntry, Outcome, conversation

LOGGED = ("tokens", "turns")  # what a flow logs of each node, as `tokens/tune`
_ENDS = ("input", "output")  # of the whole flow, which no node does


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """What one node did in all its turns; times are seconds."""

    node: NodeId
    turns: int  # replies of its model
    usage: Usage  # tokens, of all of them
    seconds: float  # of waiting for the model, tools and files
    calls: dict[str, dict[Outcome, int]]  # by the tool's name: `{"train": {"ok": 3, "error": 1}}`
    routes: dict[str, int]  # how often each label was chosen, also those that never were
    not_taken: int  # replies that were refused, cut off, or did not fit
    questions: int  # to people
    open_questions: int  # those of them that nobody has answered


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowUsage:
    """What all nodes of a flow did together; fields as of one node."""

    turns: int
    usage: Usage
    seconds: float
    calls: int
    open_questions: int

    def told(self) -> dict[str, str]:
        """Return the numbers by name that are not zero, for people."""
        found = {
            "turns": self.turns,
            "tokens": self.usage.tokens,
            "tool calls": self.calls,
            "open questions": self.open_questions,
        }
        return {name: f"{count:,}" for name, count in found.items() if count}


def flow_usage(usage: Iterable[NodeUsage]) -> FlowUsage | None:
    """Return the sums over nodes; None where there is no node, as in a run of no flow."""
    found = [*usage]
    if not found:
        return None
    return FlowUsage(
        turns=sum(one.turns for one in found),
        usage=sum((one.usage for one in found), Usage()),
        seconds=sum(one.seconds for one in found),
        calls=sum(sum(by.values()) for one in found for by in one.calls.values()),
        open_questions=sum(one.open_questions for one in found),
    )


def recorded_usage(record: RunRecord) -> FlowUsage | None:
    """Return what a run of a flow has cost so far; None of another run."""
    return flow_usage(node_usage(conversation(record.journal())))


def node_usage(entries: Iterable[ConversationEntry]) -> list[NodeUsage]:
    """Return what each node did, in the order of their first effects."""
    found: dict[NodeId, list[ConversationEntry]] = {}
    for entry in entries:
        if entry.who not in _ENDS or entry.kind != "value":
            found.setdefault(entry.node, []).append(entry)
    return [_summed(node, ones) for node, ones in found.items()]


def _summed(node: NodeId, entries: list[ConversationEntry]) -> NodeUsage:
    replies = [one for one in entries if one.kind == "reply"]
    calls: dict[str, dict[Outcome, int]] = {}
    routes: dict[str, int] = {}
    for one in entries:
        if one.kind == "call":
            by_outcome = calls.setdefault(one.who, {})
            by_outcome[one.outcome] = by_outcome.get(one.outcome, 0) + 1
        elif one.kind == "route":
            routes |= {label: routes.get(label, 0) for label in one.labels}
            routes[one.text] = routes.get(one.text, 0) + 1
    return NodeUsage(
        node=node,
        turns=len(replies),
        usage=sum((one.usage for one in replies), Usage()),
        seconds=sum(one.seconds or 0.0 for one in entries),
        calls=calls,
        routes=routes,
        not_taken=sum(one.outcome != "ok" for one in replies),
        questions=sum(one.kind == "question" for one in entries),
        open_questions=sum(one.outcome == "open" for one in entries),
    )
