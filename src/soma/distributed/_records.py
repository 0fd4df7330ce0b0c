"""What workers and programs write about themselves before they are in one group, as JSON."""

import sys
from importlib.metadata import PackageNotFoundError, version

import msgspec

from soma._extras import DIST

PROTOCOL = 3
MOST = 1 << 20  # bytes of a record


class Versions(msgspec.Struct, frozen=True):
    """What two processes have to agree on before they exchange objects."""

    protocol: int
    python: str
    torch: str
    soma: str

    def differing(self, other: "Versions") -> list[str]:
        """Name what differs: `torch 2.13.0 here, 2.12.0 there`."""
        return [
            f"{name} {getattr(self, name)} here, {getattr(other, name)} there"
            for name in self.__struct_fields__
            if getattr(self, name) != getattr(other, name)
        ]


class Card(msgspec.Struct, frozen=True):
    """A worker as others see it."""

    name: str
    pid: int
    host: str
    device: str
    began: float  # seconds since 1970
    versions: Versions


class Request(msgspec.Struct, frozen=True):
    """Asks a worker to join a session."""

    session: str  # where the worker is met
    group: str  # what the session is called among torch's processes
    rank: int
    size: int
    number: int  # of the session in its client, from 0
    timeout: float  # seconds
    versions: Versions
    interface: str  # of the network, on which the worker listens
    rendezvous: str  # where torch's processes find each other
    import_path: tuple[str, ...]
    main: str | None  # the script whose classes may be needed
    main_module: str | None  # the same, where `python -m` found it
    arguments: tuple[str, ...]  # the script's


class Answered(msgspec.Struct, frozen=True):
    """What a worker says to a request: why it does not join, or nothing."""

    refusal: str


def versions() -> Versions:
    """Return those of this process."""
    return Versions(
        PROTOCOL,
        f"{sys.version_info.major}.{sys.version_info.minor}",
        _installed("torch"),
        _installed(DIST),
    )


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a folder, or not there
        return "not installed"
