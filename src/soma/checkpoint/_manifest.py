"""`manifest.json`: what a bundle holds, and in which members.

The wing that knows modules puts its own entries in `weights` and `training`, which nothing
here looks into.
"""

from typing import Any

import msgspec

from soma.files import parse_json

FORMAT = 1
NAME = "manifest.json"


class StoredValue(msgspec.Struct, omit_defaults=True):
    """A value in the form of the cache: its text, or the member that holds it."""

    inline: str | None = None
    member: str | None = None


class NodeEntry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One node: what its filter is made of, and what it has learned."""

    id: str
    class_module: str
    class_name: str
    class_version: int
    arguments: StoredValue  # positional, named, attributes
    state: StoredValue | None = None
    weights: dict[str, Any] = {}  # of its module under "", of modules it holds under their names


class Manifest(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A whole bundle."""

    format: int
    soma: str
    name: str
    seed: int | None
    nodes: list[NodeEntry]
    links: list[tuple[str, str]]
    groups: dict[str, tuple[list[str], list[str]]] = {}  # what names of inlined graphs stand for
    training: Any = None
    random: StoredValue | None = None
    extra: StoredValue | None = None


def read_manifest(data: bytes | bytearray) -> Manifest:
    """Return what a text holds.

    Raises:
        ValueError: it is no manifest, or one of a later format.
    """
    found = parse_json(bytes(data))
    number = found.get("format") if isinstance(found, dict) else None
    if type(number) is not int or number < 1:
        raise ValueError("its manifest has no format number, so it is no bundle of soma")
    if number > FORMAT:
        raise ValueError(
            f"it is of format {number}, and this soma reads up to {FORMAT}; install a newer one"
        )
    return msgspec.convert(found, Manifest)
