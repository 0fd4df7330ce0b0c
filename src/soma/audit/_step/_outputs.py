"""Which tensors are the network's own outputs, and which spots give them.

A graph says which nodes are its leaves. Of modules given by name, the outputs are those of
the last one called, and of others that nothing after them has used. A loss among them is not
counted: `_returned_loss.py` looks for what it is made of.
"""

from soma.audit._spots import Spot
from soma.audit._step._returned_loss import ReturnedLoss, upstream
from soma.audit._step._trace import Pass, Reading

_SHAPE_ONLY = frozenset(
    f"{name}Backward0"
    for name in (
        "Alias",
        "Permute",
        "ReshapeAlias",
        "Squeeze",
        "T",
        "Transpose",
        "UnsafeView",
        "Unsqueeze",
        "View",
    )
) | frozenset({"SqueezeBackward1", "SqueezeBackward2"})


class Outputs:
    """Finds the network's outputs in a pass, when its backward begins."""

    def __init__(self, spots: list[Spot]) -> None:
        self.are_told = False  # by a graph, rather than found
        self._spots = spots
        self._returned_loss = ReturnedLoss()
        self._used: dict[tuple[int, ...], frozenset[int]] = {}

    def find(self, this_pass: Pass) -> None:
        """Put the outputs into a pass, and mark the spots that give them."""
        if this_pass.has_backward:
            return
        if not self.are_told and this_pass.roots and not this_pass.outputs:
            this_pass.outputs = self._unused(this_pass.roots)
        scalars = self._returned_loss.replace_losses(this_pass)
        reached = {
            id(node)
            for reading in (*this_pass.outputs, *scalars)
            for node in _same_values(reading.node)
        }
        roots = [[one for one in parts if one not in scalars] for _, parts in this_pass.roots]
        shared = {
            id(node)
            for parts in roots
            if len(parts) > 1
            for reading in parts
            for node in _same_values(reading.node)
        }
        for at, calls in this_pass.calls.items():
            spot = self._spots[at]
            spot.shares_output |= any(
                len(call.parts) == 1 and id(reading.node) in shared
                for call in calls
                for _, reading in call.parts
                if reading.node is not None
            )
            if not spot.feeds_output:
                spot.feeds_output = any(
                    reading in this_pass.outputs or id(reading.node) in reached
                    for call in calls
                    for _, reading in call.parts
                    if reading.node is not None
                )

    def _unused(self, roots: list[tuple[int, list[Reading]]]) -> list[Reading]:
        """Return the readings of those roots that no later root is made from."""
        order = tuple(at for at, _ in roots)
        used = self._used.get(order)
        if used is None:
            if len(self._used) > 100:
                self._used.clear()
            used = self._used[order] = frozenset(_used_places(roots))
        return [one for place, (_, parts) in enumerate(roots) if place not in used for one in parts]


def _used_places(roots: list[tuple[int, list[Reading]]]) -> list[int]:
    used = []
    for place, (_, parts) in enumerate(roots[:-1]):
        mine = {id(one.node) for one in parts if one.node is not None}
        after = [one.node for _, others in roots[place + 1 :] for one in others]
        if not mine or mine & upstream(after):
            used.append(place)
    return used


def _same_values(node: object) -> list[object]:
    """Return an autograd node and those above it that hold the same values in other shapes."""
    found = []
    while node is not None:
        found.append(node)
        if type(node).__name__ not in _SHAPE_ONLY:
            break
        node = node.next_functions[0][0]  # type: ignore[attr-defined]
    return found
