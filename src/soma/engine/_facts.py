"""Why a node ran: what differs from the last time that this class ran at this node.

The facts are kept in every record, so the answer can be given again from the store alone.
"""

from collections.abc import Mapping
from typing import Any

from soma.cache import Identity, Record
from soma.core import Filter, NodeId
from soma.engine._keys import Part

Facts = Mapping[str, Any]

UNKEYED = "cannot be part of a cache key"


def facts_of(
    node: NodeId,
    what: Identity,
    inputs: Mapping[str, str],
    seed: int | None,
    settings: str | None,
    call: tuple[Part, ...],
    *,
    targets: str | None,
    state: str | None,
    why: str | None,
) -> dict[str, object]:
    """Return what is compared, as plain data."""
    return {
        "node": node,
        "class": what.class_name,
        "config": {name: list(pair) for name, pair in what.config.items()},
        "code": dict(what.code),
        "libraries": dict(what.libraries),
        "inputs": dict(inputs),
        "targets": targets,
        "state": state,
        "seed": seed,
        "settings": settings,
        "call": list(call),
        "why": why,
    }


def refusal_of(filter: Filter, seed: int | None) -> str | None:
    """Return why the answers of a filter are never stored, if its own attributes say so."""
    if not filter._cacheable:
        return "it says `_cacheable = False`; without that, its answers are stored"
    if not filter._deterministic and seed is None:
        return (
            "it says `_deterministic = False` and there is no seed; `Graph(seed=...)` makes its "
            "answers repeatable, and has them stored"
        )
    return None


def explained(node: NodeId, facts: Facts, last: Record | None, *, first: bool) -> str:
    """Return in one line why a node has to run.

    Args:
        last: the record that it wrote last, if that is still there.
        first: nothing was ever stored.
    """
    if first:
        return f"`{node}` ran: first time, nothing of it is stored"
    if last is None:
        return f"`{node}` ran: its last record is gone, so what changed since is not known"
    return f"`{node}` ran: {_difference(facts, last.facts)}"


def not_run(node: NodeId) -> str:
    """Return in one line that a node did not have to run."""
    return f"`{node}` did not run: its answer was stored"


def lost(node: NodeId, kind: str, became: str) -> str:
    """Return in one line that a node had to run because what it once stored is gone."""
    what = "answer" if kind == "output" else kind
    return f"`{node}` ran: its stored {what} was {became}"


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
    pins = [name for name in changed if name.endswith("._cache_version")]
    if pins:
        return f"`{pins[0]}` changed"
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"the code of `{changed[0]}`{more} changed"


def _of_libraries(now: Mapping[str, str], then: Mapping[str, str]) -> str | None:
    for name in sorted({*now, *then}):
        if now.get(name) != then.get(name):
            return f"{name} changed from {then.get(name, 'none')} to {now.get(name, 'none')}"
    return None


def _of_inputs(now: Mapping[str, str], then: Mapping[str, str]) -> str | None:
    if [*now] != [*then]:
        return "it reads other nodes than before"
    changed = [name for name in now if now[name] != then[name]]
    if not changed:
        return None
    return f"its input from `{changed[0]}` changed" if changed[0] else "its input changed"


def _of_rest(now: Facts, then: Facts) -> str:
    if now["targets"] != then["targets"] and None not in (now["targets"], then["targets"]):
        return "its labels changed"
    if now["seed"] != then["seed"]:
        return f"the seed changed from {then['seed']} to {now['seed']}"
    if now["settings"] != then["settings"]:
        usual = "the usual ones"
        before, after = then["settings"] or usual, now["settings"] or usual
        return f"settings of torch changed from {before} to {after}"
    if now["call"][:1] != then["call"][:1]:
        return "its weights changed"
    if now["call"] != then["call"]:
        return "it gives values of another kind"
    if now["state"] != then["state"]:
        return "what it learned changed"
    return "something that it depends on changed"
