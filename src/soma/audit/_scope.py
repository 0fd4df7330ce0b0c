"""What an audit looks at: which submodules of a node, which axis of an output has its channels.

Plain data and names only; `_spots.py` goes on with the modules themselves.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from soma.health import UnitId


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditScope:
    """Which submodules are watched.

    >>> scope = AuditScope(patterns=("trunk.*",), depth=2)
    >>> scope.takes("trunk.0"), scope.takes("trunk.0.act"), scope.takes("head")
    (True, False, False)

    A filter may carry one as `_audit_scope`; it is used where `inside=True`.
    """

    patterns: tuple[str, ...] = ("*",)
    depth: int | None = None  # the most parts that a dotted path may have
    without: tuple[str, ...] = ()  # patterns of what is left out

    def takes(self, path: str) -> bool:
        """Whether the submodule at a dotted path is watched."""
        if self.depth is not None and path.count(".") >= self.depth:
            return False
        return _any_matches(path, self.patterns) and not _any_matches(path, self.without)


Inside = bool | int | str | Sequence[str] | AuditScope
InsideByNode = Inside | Mapping[str, Inside]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelConfig:
    """How the channels of outputs are watched.

    >>> ChannelConfig(groups={"encoder/mix": {"audio": range(2), "text": [2, 3]}}).groups
    {'encoder/mix': {'audio': (0, 1), 'text': (2, 3)}}

    Args:
        channel_dim: the axis of the channels; by default 1 of an output with four, else the last.
        snapshot_every: channels are looked at in one of so many steps.
        groups: by unit, named groups of its channels that should not say the same.
    """

    channel_dim: int | None = None
    snapshot_every: int = 1
    groups: Mapping[UnitId, Mapping[str, Iterable[int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.snapshot_every < 1:
            raise ValueError(
                f"`snapshot_every` is {self.snapshot_every}; a number of steps, 1 or more, is "
                "wanted."
            )
        plain = {
            unit: {name: tuple(int(one) for one in members) for name, members in groups.items()}
            for unit, groups in self.groups.items()
        }
        object.__setattr__(self, "groups", plain)

    def groups_of(self, unit: UnitId) -> dict[str, tuple[int, ...]]:
        """Return the groups declared for a unit."""
        return {name: tuple(members) for name, members in self.groups.get(unit, {}).items()}

    def axis_of(self, dimensions: int) -> int | None:
        """Return the channel axis of an output of so many dimensions; None: it has none."""
        axis = self.channel_dim
        if axis is None:
            axis = 1 if dimensions == 4 else dimensions - 1
        elif axis < 0:
            axis += dimensions
        # The first axis holds the samples, or there is nothing to tell channels by.
        return axis if 0 < axis < dimensions else None


def channel_config(channels: "bool | ChannelConfig") -> ChannelConfig | None:
    """Read the argument `channels`; None: they are not watched."""
    if isinstance(channels, ChannelConfig):
        return channels
    if isinstance(channels, bool):
        return ChannelConfig() if channels else None
    raise TypeError(f"`channels` is {channels!r}; True, False or a `ChannelConfig` is wanted.")


def scope_of(inside: InsideByNode, node: str, own: Inside | None) -> AuditScope | None:
    """Return what is watched inside a node; None: only the node itself.

    Args:
        inside: as the user gave it.
        node: its name.
        own: the `_audit_scope` of the node's filter, if it has one.
    """
    asked = inside.get(node, False) if isinstance(inside, Mapping) else inside
    if asked is True and own is not None:
        asked = own
    return _scope(asked)


def check_nodes(inside: InsideByNode, nodes: Iterable[str]) -> None:
    """Refuse an `inside` by node that names nodes which are not there."""
    if isinstance(inside, Mapping):
        known = list(nodes)
        for name in inside:
            if name not in known:
                raise ValueError(
                    f"`inside` names {name!r}; the audited nodes are "
                    f"{', '.join(map(repr, known)) or 'none'}."
                )


def _scope(asked: Inside) -> AuditScope | None:
    if isinstance(asked, AuditScope):
        return asked
    if isinstance(asked, bool):
        return AuditScope() if asked else None
    if isinstance(asked, int):
        return AuditScope(depth=asked) if asked > 0 else None
    if isinstance(asked, str):
        return AuditScope(patterns=(asked,))
    if isinstance(asked, Sequence) and all(isinstance(one, str) for one in asked):
        return AuditScope(patterns=tuple(asked)) if asked else None
    raise TypeError(
        f"`inside` is {asked!r}; True, False, a depth, a list of patterns, an `AuditScope`, or a "
        "dict of these by node is wanted."
    )


def _any_matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)
