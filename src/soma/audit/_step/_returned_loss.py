"""Finds the outputs that a loss is made of, where the network returns its loss itself.

The gradient of a loss with respect to itself is 1, whatever the network does, so it is no measure
for the gradients inside; the gradient of what the loss is made of is.
"""

from collections.abc import Sequence

from soma.audit._step._trace import Pass, Reading

_MOST_NODES = 50_000


class ReturnedLoss:
    """Puts the outputs that a returned loss is made of in the place of the loss."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, ...], frozenset[int]] = {}

    def replace_losses(self, this_pass: Pass) -> list[Reading]:
        """Put tensors in the place of the scalars made of them; return the scalars on the way.

        An output that another one is made from, as the states of an encoder, is left out too.
        Where nothing is known of what a scalar is made of, it stays.
        """
        scalars = [one for one in this_pass.outputs if one.is_scalar and one.node is not None]
        if not scalars:
            return []
        called = (one for calls in this_pass.calls.values() for call in calls for one in call.parts)
        known = [reading for _, reading in called if reading.node is not None]
        found, passed = _made_of(scalars, known)
        others = [one for one in this_pass.outputs if not one.is_scalar]
        candidates = list(dict.fromkeys([*others, *found]))
        if candidates:
            this_pass.outputs = self._last(this_pass, candidates)
        return passed

    def _last(self, this_pass: Pass, candidates: list[Reading]) -> list[Reading]:
        """Return those that no other one is made from."""
        if len(candidates) == 1:
            return candidates
        key = (*(at for at, calls in this_pass.calls.items() for _ in calls), -len(candidates))
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) > 100:
                self._kept.clear()
            used = [upstream([one.node]) - {id(one.node)} for one in candidates]
            kept = self._kept[key] = frozenset(
                place
                for place, one in enumerate(candidates)
                if not any(id(one.node) in nodes for nodes in used)
            )
        return [one for place, one in enumerate(candidates) if place in kept]


def _made_of(
    scalars: Sequence[Reading], known: Sequence[Reading]
) -> tuple[list[Reading], list[Reading]]:
    """Return the nearest readings that scalars are made of, and the scalars on the way there."""
    at: dict[int, list[Reading]] = {}
    for one in known:
        at.setdefault(id(one.node), []).append(one)
    found: dict[Reading, None] = {}
    passed = dict.fromkeys(scalars)
    waiting = [one.node for one in scalars]
    seen: dict[int, object] = {id(one): one for one in waiting}  # alive, so that ids stay theirs
    while waiting and len(seen) < _MOST_NODES:
        node = waiting.pop()
        here = at.get(id(node), [])
        passed.update(dict.fromkeys(one for one in here if one.is_scalar))
        if tensors := [one for one in here if not one.is_scalar]:
            found.update(dict.fromkeys(tensors))
            continue
        for above, _ in node.next_functions:  # type: ignore[attr-defined]
            if above is not None and id(above) not in seen:
                seen[id(above)] = above
                waiting.append(above)
    return list(found), list(passed)


def upstream(nodes: Sequence[object]) -> set[int]:
    """Return the ids of all autograd nodes above some, themselves included."""
    waiting = [one for one in nodes if one is not None]
    seen: dict[int, object] = {id(one): one for one in waiting}
    while waiting and len(seen) < _MOST_NODES:
        for above, _ in waiting.pop().next_functions:  # type: ignore[attr-defined]
            if above is not None and id(above) not in seen:
                seen[id(above)] = above
                waiting.append(above)
    return set(seen)
