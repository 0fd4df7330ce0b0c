"""`Held`: a value between two nodes of a cached run, in memory or known by its digest alone."""

from collections.abc import Callable

from soma.cache import Undigestible, digest
from soma.core import NodeId
from soma.engine._keys import Unkeyed

_ABSENT = object()


class Held:
    """A value with a digest, fetched only when somebody needs the value itself."""

    __slots__ = ("_digest", "_fetch", "_value", "cached", "unkeyed")

    def __init__(
        self,
        value: object = _ABSENT,
        *,
        digest: str | None = None,
        fetch: Callable[[], object] | None = None,
        unkeyed: str | None = None,
    ) -> None:
        self._value = value
        self._digest = digest
        self._fetch = fetch
        self.cached = fetch is not None
        self.unkeyed = unkeyed  # why it has no digest

    def value(self) -> object:
        """Return the value, and fetch it first if it is not in memory."""
        if self._value is _ABSENT:
            assert self._fetch is not None
            self._value, self._fetch = self._fetch(), None
        return self._value

    def peek(self) -> object:
        """Return the value if it is in memory, else None."""
        return None if self._value is _ABSENT else self._value

    def digest(self) -> str:
        """Return the digest of the value.

        Raises:
            Unkeyed: it has none.
        """
        if self._digest is None:
            if self.unkeyed is None:
                try:
                    self._digest = digest(self._value)
                    return self._digest
                except Undigestible as refusal:
                    self.unkeyed = str(refusal)
            raise Unkeyed(self.unkeyed)
        return self._digest


Given = Held | dict[NodeId, Held]


def values_of(given: object) -> object:
    """Return what a node's function gets: the value, or a dict of them at a fan-in."""
    if isinstance(given, Held):
        return given.value()
    if isinstance(given, dict):
        return {name: values_of(one) for name, one in given.items()}
    return given


def seen(given: object) -> object:
    """Return what is in memory of a node's input; None stands for the rest."""
    if isinstance(given, Held):
        return given.peek()
    return {name: seen(one) for name, one in given.items()} if isinstance(given, dict) else given
