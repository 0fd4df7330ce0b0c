"""What each node of a flow cost and did, a row for each, and all of them together."""

from typing import NamedTuple

from soma.draw import Badge, counted, shortened
from soma.viz._durations import duration
from soma.viz._usage import FlowUsage, NodeUsage, flow_usage
from soma.viz.report._facts import Facts
from soma.viz.report._fill import fill
from soma.viz.report._section import Section

_MOST = 200  # nodes
_MOST_NAME, _MOST_WORDS = 120, 200  # columns


class Row(NamedTuple):
    """What the table says of one node."""

    node: str
    turns: str
    tokens_in: str
    tokens_out: str
    time: str
    calls: str
    routes: str
    badges: tuple[Badge, ...]


def usage_section(facts: Facts) -> Section | None:
    """Return turns and tokens by node; None where the run is of no flow."""
    total = flow_usage(facts.usage)
    if total is None:
        return None
    rows = [_row(one) for one in facts.usage[:_MOST]]
    tokens = total.usage.tokens
    many = f"{_MOST} of {len(facts.usage):,} nodes stand in the table of turns and tokens."
    return Section(
        key="usage",
        title="Turns and tokens",
        count=counted(tokens, "token") if tokens else "",
        body=fill("usage.jinja", rows=[*rows, _total(total)]),
        left_out=(many,) if len(facts.usage) > _MOST else (),
    )


def _row(one: NodeUsage) -> Row:
    failed = sum(by.get("error", 0) for by in one.calls.values())
    badges = []
    if failed:
        badges.append(Badge(text=f"✕ {counted(failed, 'error')} of tools", ink="bad"))
    if one.not_taken:
        said = "reply" if one.not_taken == 1 else "replies"
        badges.append(Badge(text=f"▲ {one.not_taken:,} {said} not taken", ink="warning"))
    if one.questions:
        badges.append(
            Badge(text=f"? {counted(one.questions, 'question')} to a person", ink="muted")
        )
    calls = ", ".join(f"{name} {sum(by.values()):,}" for name, by in one.calls.items())
    routes = ", ".join(f"{label} {times:,}" for label, times in one.routes.items())
    return Row(
        node=shortened(one.node, _MOST_NAME),
        turns=_number(one.turns),
        tokens_in=_number(one.usage.input_tokens),
        tokens_out=_number(one.usage.output_tokens),
        time=duration(one.seconds) if one.seconds else "",
        calls=shortened(calls, _MOST_WORDS),
        routes=shortened(routes, _MOST_WORDS),
        badges=tuple(badges),
    )


def _total(all_nodes: FlowUsage) -> Row:
    return Row(
        node="all",
        turns=_number(all_nodes.turns),
        tokens_in=_number(all_nodes.usage.input_tokens),
        tokens_out=_number(all_nodes.usage.output_tokens),
        time=duration(all_nodes.seconds),
        calls=counted(all_nodes.calls, "call") if all_nodes.calls else "",
        routes="",
        badges=(),
    )


def _number(amount: int) -> str:
    return f"{amount:,}" if amount else ""
