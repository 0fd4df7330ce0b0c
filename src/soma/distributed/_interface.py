"""Addresses of this machine, and the network interfaces that they are on: torch wants names."""

import fcntl
import ipaddress
import socket
import struct

from soma.errors import WorkerUnavailable

_SIOCGIFADDR = 0x8915  # Linux: the address of an interface
LOOPBACK = "lo"


def host_and_port(address: str) -> tuple[str, int]:
    """Return the two parts of `HOST:PORT`.

    Raises:
        WorkerUnavailable: it is something else.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise WorkerUnavailable(
            f"{address!r} is no address of a worker: HOST:PORT is wanted, such as 192.168.0.5:7000."
        )
    return host, int(port)


def interface_of(host: str) -> str:
    """Return the interface that has an address of this machine.

    Raises:
        WorkerUnavailable: none has it.
    """
    try:
        wanted = ipaddress.ip_address(socket.gethostbyname(host))
    except OSError as error:
        raise WorkerUnavailable(f"{host!r} leads to no address: {error}.") from error
    if wanted.is_loopback:
        return LOOPBACK
    found = _addresses()
    if wanted not in found:
        there = ", ".join(f"{one} ({name})" for one, name in found.items())
        raise WorkerUnavailable(
            f"{host} is no address of this machine, which has {there}. One of them is wanted, so "
            "that nothing listens where it was not asked to."
        )
    return found[wanted]


def _addresses() -> dict["ipaddress.IPv4Address | ipaddress.IPv6Address", str]:
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            asked = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(any_socket.fileno(), _SIOCGIFADDR, asked)
            except OSError:  # it has none
                continue
            found[ipaddress.ip_address(answer[20:24])] = name
    return found
