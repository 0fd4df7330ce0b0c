"""Why a node ran: what differs from the last time that this class ran at this node.

The facts are kept in every record, so the answer can be given again from the store alone.
"""

from collections.abc import Mapping
from typing import Any

from soma.cache import Identity, Record
from soma.core import NodeId

Facts = Mapping[str, Any]


def facts_of(
    node: NodeId, what: Identity, inputs: Mapping[str, str], seed: int | None
) -> dict[str, object]:
    """Return what is compared, as plain data."""
    return {
        "node": node,
        "class": what.class_name,
        "config": {name: list(pair) for name, pair in what.config.items()},
        "code": dict(what.code),
        "libraries": dict(what.libraries),
        "inputs": dict(inputs),
        "targets": None,
        "state": None,
        "seed": seed,
    }


def explained(node: NodeId, facts: Facts, last: Record | None, key: str) -> str:
    """Return in one line why a node has to run."""
    if last is None:
        return f"`{node}` ran: first time, nothing of it is stored"
    if last.key == key:
        return f"`{node}` ran: its stored answer is gone, evicted or damaged"
    return f"`{node}` ran: {_difference(facts, last.facts)}"


def _difference(now: Facts, then: Facts) -> str:
    try:
        return (
            _of_config(now["config"], then["config"])
            or _of_code(now["code"], then["code"])
            or _of_libraries(now["libraries"], then["libraries"])
            or _of_inputs(now["inputs"], then["inputs"])
            or _of_rest(now, then)
        )
    except (KeyError, TypeError, AttributeError, ValueError):  # facts of another version
        return "what is stored was made by another version"


def _of_config(now: Mapping[str, Any], then: Mapping[str, Any]) -> str | None:
    for name in sorted({*now, *then}):
        new, old = now.get(name), then.get(name)
        if new is None or old is None:
            return f"`{name}` is {'gone' if new is None else 'new'} in its configuration"
        if new[0] != old[0]:
            return f"`{name}` changed from {old[1]} to {new[1]}"
    return None


def _of_code(now: Mapping[str, str], then: Mapping[str, str]) -> str | None:
    changed = sorted(name for name in {*now, *then} if now.get(name) != then.get(name))
    if not changed:
        return None
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"the code of `{changed[0]}`{more} changed"


def _of_libraries(now: Mapping[str, str], then: Mapping[str, str]) -> str | None:
    for name in sorted({*now, *then}):
        if now.get(name) != then.get(name):
            return f"{name} changed from {then.get(name, 'none')} to {now.get(name, 'none')}"
    return None


def _of_inputs(now: Mapping[str, str], then: Mapping[str, str]) -> str | None:
    if [*now] != [*then]:
        return "it reads other nodes"
    changed = [name for name in now if now[name] != then[name]]
    if not changed:
        return None
    return f"its input from `{changed[0]}` changed" if changed[0] else "its input changed"


def _of_rest(now: Facts, then: Facts) -> str:
    if now["targets"] != then["targets"] and None not in (now["targets"], then["targets"]):
        return "its targets changed"
    if now["seed"] != then["seed"]:
        return f"the seed changed from {then['seed']} to {now['seed']}"
    if now["state"] != then["state"]:
        return "what it learned changed"
    return "settings of torch changed"
