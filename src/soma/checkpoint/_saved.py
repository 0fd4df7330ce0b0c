"""`Saved`: a filter as data, for the bundle and for `migrate`.

A class that changed says in `class_version` that it did, and in a classmethod
`migrate(cls, saved, from_version)` how what an older one left becomes what this one needs.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Saved:
    """What a bundle has of one filter; `migrate` changes it in place.

    >>> from soma import Filter
    >>> class Scale(Filter):
    ...     class_version = 2
    ...     @classmethod
    ...     def migrate(cls, saved, from_version):
    ...         if from_version < 2:
    ...             saved.named["factor"] = saved.named.pop("by")
    ...             saved.attributes.pop("by", None)

    Args:
        positional: arguments of the constructor without a name.
        named: its other arguments.
        attributes: public ones that differ from the arguments of their name.
        state: what `fit` learned.
        weights: of the filter's module, as `state_dict` names them.
    """

    positional: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    state: Any = None
    weights: dict[str, Any] = field(default_factory=dict)


# Name, module and fields of these two stand in bundles, so they stay as they are.


@dataclass(frozen=True)
class NestedFilter:
    """A filter that is an argument of another one."""

    module: str
    name: str
    version: int
    arguments: tuple[object, ...]


@dataclass(frozen=True)
class Reference:
    """A class or a function that is an argument: its name, and nothing of what it does."""

    module: str
    name: str
