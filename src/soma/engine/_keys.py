"""What a node's answer depends on beside its filter, its state and its inputs."""

from typing import Protocol

Part = str | int | None


class Unkeyed(Exception):
    """A node's answer has no key; the message says why."""


class Key(Protocol):
    """Tells the answers of one call from those of another, as for other weights."""

    def parts(self) -> tuple[Part, ...]:
        """Return its digests, texts and numbers.

        They stay the same for as long as all attributes of the filter are the same objects.

        Raises:
            Unkeyed: one of them has no digest.
        """


class NoKey:
    """A call whose answers are never stored."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def parts(self) -> tuple[Part, ...]:
        """Refuse, with the reason."""
        raise Unkeyed(self.reason)
