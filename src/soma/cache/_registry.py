"""Which functions take a type apart: those of users first, then ours.

A stored form names a kind, and only what is registered here in this process is ever called
for it. Nothing is looked for, imported or run because a file names it.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from soma.cache import adapters
from soma.cache._parts import Parts, Refused, Stored, TakeApart

REGISTERED = "registered"

T = TypeVar("T")


class _Codec(NamedTuple):
    """What a user gave for a class."""

    cls: type
    name: str
    encode: Callable[[Any], object]
    decode: Callable[[Any], object]

    def take_apart(self, value: object) -> Parts:
        """Let the user's function give a value that is known here."""
        return Parts(REGISTERED, (self.encode(value),), (self.name,))


_by_name: dict[str, _Codec] = {}


def register_codec(
    cls: type[T], *, name: str, encode: Callable[[T], object], decode: Callable[[Any], T]
) -> None:
    """Let values of a class be keyed and stored.

    Args:
        cls: the class itself; subclasses need a codec of their own.
        name: what the stored form holds. It has to stay the same for as long as the store.
        encode: gives any value that can be stored, such as a dict of arrays.
        decode: makes the object again from that value.

    Raises:
        ValueError: the name is taken by another class.
    """
    known = _by_name.get(name)
    if known is not None and _full_name(known.cls) != _full_name(cls):
        raise ValueError(
            f"the name {name!r} is taken by `{_full_name(known.cls)}`; "
            f"give `{_full_name(cls)}` another one"
        )
    for other in [codec for codec in _by_name.values() if codec.cls is cls]:
        del _by_name[other.name]
    _by_name[name] = _Codec(cls, name, encode, decode)
    _taker.cache_clear()


def take_apart(value: object) -> Parts:
    """Take a value apart by the exact class it is of.

    Raises:
        Refused: nobody knows the class, or its adapter refuses this value.
    """
    cls: Any = type(value)
    return _taker(cls)(value)


def put_together(kind: str, stored: Stored) -> object:
    """Make a value again from its checked parts.

    Raises:
        LookupError: nobody in this process knows the kind.
        Exception: whatever comes of parts that make no value.
    """
    if kind != REGISTERED:
        return adapters.BUILDERS[kind](stored)
    (name,), (item,) = stored.facts, stored.items
    return _by_name[name].decode(item)


@lru_cache(maxsize=1_024)
def _taker(cls: Any) -> TakeApart:
    """Return the function that takes a class apart."""
    for codec in _by_name.values():
        if codec.cls is cls:
            return codec.take_apart
    for find in adapters.FINDERS:
        taker = find(cls)
        if taker is not None:
            return taker
    return _unknown


def _unknown(value: object) -> Parts:
    """Refuse a class, and say what would help."""
    cls = type(value)
    bases = [base.__name__ for base in cls.__mro__[1:-1] if base.__module__ == "builtins"]
    what = f", a kind of {bases[0]}," if bases else ""
    raise Refused(
        f"`{_full_name(cls)}`{what} has no codec; soma.cache.register_codec can give it one"
    )


def _full_name(cls: type) -> str:
    return (
        cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    )
