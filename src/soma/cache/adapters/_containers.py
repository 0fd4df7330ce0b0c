"""Lists, tuples, dicts, sets and their relatives of `collections`."""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

from soma.cache._packed import pack, unpack
from soma.cache._parts import Parts, PutTogether, Refused, Stored, TakeApart

# A factory is code. These few stand for themselves; any other is refused.
FACTORIES = {made.__name__: made for made in (bool, dict, float, int, list, set, str, tuple)}


def find(cls: type) -> TakeApart | None:
    """Return how a container is taken apart."""
    return _TAKERS.get(cls)


def _sequence(kind: str, items: Sequence[object]) -> Parts:
    packed = pack(items)
    if packed is None:
        return Parts(kind, items)
    packing, block = packed
    return Parts(kind, facts=(packing,), block=block)


def _items(stored: Stored) -> list[Any]:
    """Return the items of a sequence, packed or not."""
    if not stored.facts:
        return stored.items
    (packing,) = stored.facts
    return unpack(packing, stored.bytes())


def _list(value: list[object]) -> Parts:
    return _sequence("list", value)


def _tuple(value: tuple[object, ...]) -> Parts:
    return _sequence("tuple", value)


def _deque(value: deque[object]) -> Parts:
    return Parts("deque", tuple(value), facts=(value.maxlen,))


def _build_deque(stored: Stored) -> object:
    (longest,) = stored.facts
    return deque(stored.items, longest)


def _set(value: set[object]) -> Parts:
    return Parts("set", _steady(value))


def _frozenset(value: frozenset[object]) -> Parts:
    return Parts("frozenset", _steady(value))


def _steady(value: Collection[Any]) -> Sequence[object]:
    """Return texts in order, whatever the hash seed: equal sets then have equal files."""
    return sorted(value) if set(map(type, value)) == {str} else tuple(value)


def _pairs(value: Mapping[Any, object]) -> list[object]:
    return list(chain.from_iterable(value.items()))


def _build_pairs(stored: Stored) -> list[tuple[Any, Any]]:
    return list(zip(stored.items[::2], stored.items[1::2], strict=True))


def _dict(value: dict[object, object]) -> Parts:
    return Parts("dict", _pairs(value))


def _ordered(value: OrderedDict[object, object]) -> Parts:
    return Parts("OrderedDict", _pairs(value))


def _counter(value: Counter[object]) -> Parts:
    return Parts("Counter", _pairs(value))


def _default(value: defaultdict[object, object]) -> Parts:
    factory = value.default_factory
    if factory is None:
        return Parts("defaultdict", _pairs(value), facts=(None,))
    name = getattr(factory, "__name__", "")
    if FACTORIES.get(name) is not factory:
        raise Refused(f"the factory of this defaultdict is code; {', '.join(FACTORIES)} are known")
    return Parts("defaultdict", _pairs(value), facts=(name,))


def _build_default(stored: Stored) -> object:
    (name,) = stored.facts
    return defaultdict(None if name is None else FACTORIES[name], _build_pairs(stored))


_TAKERS: dict[type, TakeApart] = {
    list: _list,
    tuple: _tuple,
    dict: _dict,
    set: _set,
    frozenset: _frozenset,
    OrderedDict: _ordered,
    Counter: _counter,
    defaultdict: _default,
    deque: _deque,
}

BUILDERS: dict[str, PutTogether] = {
    "list": _items,
    "tuple": lambda stored: tuple(_items(stored)),
    "dict": lambda stored: dict(_build_pairs(stored)),
    "set": lambda stored: set(stored.items),
    "frozenset": lambda stored: frozenset(stored.items),
    "OrderedDict": lambda stored: OrderedDict(_build_pairs(stored)),
    "Counter": lambda stored: Counter(dict(_build_pairs(stored))),
    "defaultdict": _build_default,
    "deque": _build_deque,
}
