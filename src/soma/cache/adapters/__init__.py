"""How each family of types is taken apart and put together again.

A family is one file: `find` gives the function that takes a class apart, and `BUILDERS`
the functions that put its kinds together. A new family is a file and a line here.
"""

from collections.abc import Callable, Mapping

from soma.cache._parts import PutTogether, TakeApart
from soma.cache.adapters import (
    _arrow,
    _classes,
    _containers,
    _numpy,
    _pandas,
    _plain,
    _polars,
    _scipy,
    _sklearn,
    _time,
    _torch,
)

__all__ = ["BUILDERS", "FINDERS"]

_FAMILIES = (
    _containers,
    _plain,
    _time,
    _numpy,
    _torch,
    _pandas,
    _polars,
    _arrow,
    _scipy,
    _sklearn,
    _classes,  # last: a library may know its own dataclasses better
)

FINDERS: tuple[Callable[[type], TakeApart | None], ...] = tuple(family.find for family in _FAMILIES)
BUILDERS: Mapping[str, PutTogether] = {
    kind: build for family in _FAMILIES for kind, build in family.BUILDERS.items()
}
