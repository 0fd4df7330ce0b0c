"""Members become one zip file: uncompressed and in order, the same bytes for the same members."""

from collections.abc import Iterable, Mapping
from zipfile import ZIP_STORED, ZipFile, ZipInfo

Buffer = bytes | bytearray | memoryview

_MODE = 0o600 << 16


def pack(members: Mapping[str, Iterable[Buffer]]) -> list[Buffer]:
    """Return the buffers of a zip file; those of the members are among them, not copied."""
    collected = _Collected()
    with ZipFile(collected, "w", ZIP_STORED) as archive:  # type: ignore[call-overload]
        for name, buffers in members.items():
            views = [memoryview(buffer).cast("B") for buffer in buffers]
            info = ZipInfo(name)  # of 1980, so that equal graphs make equal files
            info.external_attr = _MODE
            info.file_size = sum(map(len, views))
            with archive.open(info, "w") as member:
                for view in views:
                    member.write(view)
    return collected.buffers


class _Collected:
    """A file that keeps what is written to it as it comes."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []

    def write(self, data: Buffer) -> int:
        """Keep a buffer."""
        self.buffers.append(data)
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""
