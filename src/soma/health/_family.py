"""Which unit is a part of which, and which was called after which."""

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

from soma.health._measurements import Unit, UnitId


class Family:
    """The units of an audit by place and by order."""

    def __init__(self, units: Mapping[UnitId, Unit]) -> None:
        self.units = units
        self._by_place = {(one.node, one.path): one for one in units.values()}

    def above(self, id: UnitId) -> list[Unit]:
        """Return the units that a unit is a part of, nearest first."""
        unit = self.units[id]
        places = ((unit.node, path) for path in paths_above(unit.path))
        return [one for place in places if (one := self._by_place.get(place)) is not None]

    @cached_property
    def _inside(self) -> dict[tuple[str, str], list[Unit]]:
        """The called units at or below each place, whether a unit stands there or not."""
        found: dict[tuple[str, str], list[Unit]] = {}
        for one in self.ordered:
            for path in (one.path, *paths_above(one.path)):
                found.setdefault((one.node, path), []).append(one)
        return found

    def inside(self, node: str, path: str) -> list[Unit]:
        """Return the called units at or below a place in a node."""
        return self._inside.get((node, path), [])

    @cached_property
    def ordered(self) -> list[Unit]:
        """The units that were called, in the order of their first call."""
        return in_order(one for one in self.units.values() if one.order >= 0)

    @cached_property
    def _ranks(self) -> dict[UnitId, int]:
        return {one.id: rank for rank, one in enumerate(self.ordered)}

    def before(self, id: UnitId) -> Unit | None:
        """Return the innermost unit that was called right before a unit."""
        unit = self.units[id]
        last: Unit | None = None
        for rank in range(self._ranks.get(id, 0) - 1, -1, -1):
            one = self.ordered[rank]
            if contains(one, unit) or contains(unit, one):
                continue
            if last is not None and not contains(last, one):
                break
            last = one
        return last

    def after(self, id: UnitId) -> Iterable[Unit]:
        """Return the units called after a unit that are no part of it, nor it of them."""
        unit = self.units[id]
        for rank in range(self._ranks.get(id, len(self.ordered)) + 1, len(self.ordered)):
            one = self.ordered[rank]
            if not contains(one, unit) and not contains(unit, one):
                yield one

    @cached_property
    def holders(self) -> frozenset[UnitId]:
        """The units whose parameters are judged: none below them has trainable ones."""
        trainable = [one for one in self.units.values() if one.trainable]
        outer = {above.id for one in trainable for above in self.above(one.id)}
        return frozenset(one.id for one in trainable if one.id not in outer)

    def outward(self, ids: Collection[UnitId]) -> dict[UnitId, UnitId | None]:
        """Add to holders of parameters the units all of whose holders are among them.

        Each is mapped to the outermost such unit that it is a part of; None: it is that one.
        """
        some = {one.id for id in ids for one in self.above(id)}
        others = {one.id for id in self.holders if id not in ids for one in self.above(id)}
        whole = some - others
        found = in_order(self.units[id] for id in {*ids, *whole})
        outer = {one.id: [up.id for up in self.above(one.id) if up.id in whole] for one in found}
        return {id: above[-1] if above else None for id, above in outer.items()}


def paths_above(path: str) -> list[str]:
    """Return the paths that hold a path, nearest first, the node itself last."""
    cuts = [at for at, letter in enumerate(path) if letter in ".["]
    return [path[:at] for at in reversed(cuts) if at] + ([""] if path else [])


def contains(outer: Unit, inner: Unit) -> bool:
    """Is a unit a part of another one?"""
    if outer.node != inner.node or outer.path == inner.path:
        return False
    return not outer.path or inner.path.startswith((f"{outer.path}.", f"{outer.path}["))


def by_order(unit: Unit) -> tuple[bool, int]:
    """Sort units by their first call, those without one last."""
    return unit.order < 0, unit.order


def in_order(units: Iterable[Unit]) -> list[Unit]:
    """Return units by their first call, those without one last."""
    return sorted(units, key=by_order)
