"""Carries flags from inside a node up to the node, for the graph that people see first."""

from typing import Any

from soma.health._finding import Finding, Verdict


def rollup(verdict: Verdict) -> list[dict[str, Any]]:
    """Return one mapping per node and flag, by node and then by name of the flag.

    Each has `node_id, flag, detail, step, certainty, count, filters, why, help`: `detail` says
    where inside the node (`in: post, ctx`), or is the reason where it is the node's own flag;
    `step` is the first step that shows it.
    """
    order = [row.filter_id for row in verdict.filters]
    groups: dict[tuple[str, str], list[Finding]] = {}
    for one in verdict.findings:
        groups.setdefault((_node(verdict, one), one.name), []).append(one)
    rows = [_row(verdict, node, flag, found, order) for (node, flag), found in groups.items()]
    nodes = list(dict.fromkeys(_node_of(verdict, id) for id in order))
    return sorted(rows, key=lambda row: (nodes.index(row["node_id"]), row["flag"]))


def _row(
    verdict: Verdict, node: str, flag: str, found: list[Finding], order: list[str]
) -> dict[str, Any]:
    inside = _innermost(found)
    ids = sorted({one.unit for one in inside}, key=order.index)
    head = found[0]
    names = [id.removeprefix(f"{node}/") for id in ids if id != node]
    return {
        "node_id": node,
        "flag": flag,
        "detail": f"in: {', '.join(names)}" if names else head.why,
        "step": min(one.since for one in found),
        "certainty": head.certainty,
        "count": sum(len(one.channels) for one in inside),
        "filters": ids,
        "why": head.why,
        "help": head.help,
    }


def _innermost(found: list[Finding]) -> list[Finding]:
    """Leave out the units that only tell again what one inside or around them tells."""
    units = {one.unit for one in found}
    own = [one for one in found if one.cause not in units or not _nested(one.unit, one.cause)]
    return [
        one for one in own if not any(_nested(other.unit, one.unit, inner=True) for other in own)
    ]


def _nested(one: str, other: str | None, *, inner: bool = False) -> bool:
    """Is a unit inside another one, or the other way round if not only `inner` counts?"""
    if other is None or one == other:
        return False
    inside = one.startswith((f"{other}/", f"{other}."))
    return inside or (not inner and other.startswith((f"{one}/", f"{one}.")))


def _node(verdict: Verdict, one: Finding) -> str:
    return _node_of(verdict, one.unit)


def _node_of(verdict: Verdict, id: str) -> str:
    places = verdict.facts.get("places", {})
    return str(places[id][2]) if id in places else id.partition("/")[0]
