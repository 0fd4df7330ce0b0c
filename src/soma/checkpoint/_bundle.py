"""`Writer` gathers what a bundle holds and writes it in one go; `Reader` reads it back.

Everything is in memory before the first byte is written, so a graph that cannot be saved
leaves the file as it was.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from soma.cache import Unencodable, decode_blob, decode_inline, encode
from soma.checkpoint._archive import JSON, MEMBERS, Archive
from soma.checkpoint._manifest import NAME, Manifest, StoredValue, read_manifest
from soma.checkpoint._pack import Buffer, pack
from soma.draw import printable
from soma.errors import CheckpointError, MissingExtra
from soma.files import Before, write_atomically


class Writer:
    """Gathers the members of a bundle."""

    def __init__(self) -> None:
        self._members: dict[str, list[Buffer]] = {}

    def value(self, member: str, value: object, told: str) -> StoredValue:
        """Store a value, in a member of that name if it is large.

        Args:
            told: what it is, for the error.

        Raises:
            CheckpointError: it cannot be stored.
        """
        try:
            encoded = encode(value)
        except Unencodable as error:
            raise CheckpointError(f"{told} cannot be saved: {error}.") from error
        if encoded.inline is not None:
            return StoredValue(inline=encoded.inline.decode())
        self.member(member, encoded.blob or ())
        return StoredValue(member=member)

    def member(self, name: str, buffers: Iterable[Buffer]) -> None:
        """Add a member as it is."""
        self._members[name] = list(buffers)

    def write(self, path: str | Path, manifest: Manifest, *, before: Before | None = None) -> None:
        """Put a bundle in the place of what stood at `path`, whole or not at all.

        Raises:
            OSError: the system does not take it; the old file is as it was.
        """
        try:
            text = msgspec.json.encode(manifest)
        except (ValueError, OverflowError) as error:
            raise CheckpointError(f"its manifest cannot be written: {error}.") from error
        if len(text) > JSON:
            raise CheckpointError(
                f"its manifest has {len(text):,} bytes, and {JSON:,} are the most that are read "
                "back. Hold large values in fewer parts, such as arrays."
            )
        if len(self._members) >= MEMBERS:
            raise CheckpointError(
                f"this graph takes {len(self._members):,} members, and {MEMBERS:,} are the most "
                "that are read back. Put several layers into one module."
            )
        buffers = pack({NAME: [text], **self._members})
        # Through a link to what it points to; and a bare name has no folder of its own.
        write_atomically(os.path.realpath(path), buffers, durable=True, before=before)


class Reader:
    """The parts of a bundle that was opened."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.manifest = read_manifest(archive.read(NAME, most=JSON))

    def value(self, stored: StoredValue) -> object:
        """Return a stored value."""
        if stored.inline is not None:
            return decode_inline(stored.inline)
        if stored.member is None:
            raise ValueError("a value stands nowhere")
        return decode_blob(memoryview(self._archive.read(stored.member)), copy=True)

    def member(self, name: str) -> bytearray:
        """Return what a member holds."""
        return self._archive.read(name)


@contextmanager
def reading(path: str | Path) -> Iterator[Reader]:
    """Open a bundle; whatever is wrong with it inside the `with` becomes a `CheckpointError`.

    Raises:
        OSError: the file cannot be opened.
        MissingExtra: a library that it needs is not installed.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise CheckpointError(f"`{path}` is no file, so it holds no bundle.")  # nor does a pipe
    with path.open("rb") as file:
        try:
            yield Reader(Archive(file))
        except MissingExtra:
            raise
        except Exception as error:  # parsers of hostile bytes raise anything
            cause = error.__cause__ if isinstance(error, CheckpointError) else error
            reason = printable(reason_of(error)).rstrip(".")
            raise CheckpointError(f"`{path}` cannot be loaded: {reason}.") from cause


def reason_of(error: Exception) -> str:
    """Return what an error says, with its kind where the text alone says little."""
    told = isinstance(error, ValueError) and str(error)
    return str(error) if told else f"{type(error).__name__}: {error}"
