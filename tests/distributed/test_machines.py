"""Workers at an address: asked with a token, reached there alone, and free again when left."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
import torch
from torch.optim import SGD

from soma import Graph
from soma.distributed import Meeting, connect, disconnect, local_cluster
from soma.distributed._current import kept_settings
from soma.distributed._interface import _addresses, host_and_port, interface_of
from soma.errors import WorkerLost, WorkerUnavailable
from tests.distributed import processes
from tests.distributed.graphs import X, weights
from tests.distributed.test_faults import step
from tests.training.filters import Dense

pytestmark = [pytest.mark.process, pytest.mark.slow]

# An address of this machine that others reach, if it has one; else another one of loopback.
OWN = next((str(one) for one in _addresses() if not one.is_loopback), "127.0.0.2")


class Far:
    """A worker with a folder of its own, as on another machine."""

    def __init__(self, process: processes.Process, address: str, folder: Path) -> None:
        self.process, self.address, self.folder = process, address, folder
        self.before: set[str] = set()  # where this program had been listening

    def copy_token(self, folder: Path) -> None:
        """Bring its token to a program's folder."""
        Meeting(folder).make()
        (folder / "token").write_bytes((self.folder / "token").read_bytes())

    @property
    def host_and_port(self) -> tuple[str, int]:
        """Its address."""
        return host_and_port(self.address)


@contextmanager
def far_worker(folder: Path, host: str) -> Iterator[Far]:
    """Have a worker listen at a free port of a host."""
    with socket.create_server((host, 0)) as free:
        address = f"{host}:{free.getsockname()[1]}"
    with processes.worker(folder, "w1", "--address", address) as process:
        processes.until(lambda: process.poll() is not None or (folder / "token").exists())
        yield Far(process, address, folder)


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Far]:
    """Have a worker at an address, its token in this program's folder, and settings put back."""
    before = processes.listeners(os.getpid())  # of other tests
    with far_worker(tmp_path / "there", OWN) as found, kept_settings():
        found.before = before
        found.copy_token(tmp_path / "here")
        connect(folder=tmp_path / "here", addresses={"w1": found.address}, timeout=20)
        yield found


def trained(*names: str) -> Graph:
    """Return a graph that has taken two steps, with nodes on workers or here."""
    torch.manual_seed(0)
    at = iter(names)
    placed = [Dense(width).at(next(at)) if names else Dense(width) for width in (3, 4)]
    g = Graph.somatize(placed[0] >> placed[1] >> Dense(2)).materialize(X).train()
    g.make_optimizer(SGD, lr=0.1)
    step(g)
    step(g)
    return g


def test_it_trains_as_here_and_listens_at_its_address_only(far: Far) -> None:
    """Bit for bit, and others cannot reach either side at another address."""
    assert all(map(torch.equal, weights(trained("w1", "w1")).values(), weights(trained()).values()))
    (session,) = processes.children(far.process.pid)
    own = ip_address("127.0.0.1" if OWN.startswith("127.") else OWN).packed[::-1].hex().upper()
    door = ip_address(OWN).packed[::-1].hex().upper()
    mine = processes.addresses(processes.listeners(os.getpid()) - far.before)
    assert mine - processes.LOOPBACK == {own} - processes.LOOPBACK  # other tests may listen there
    assert processes.addresses(processes.listeners(session)) == {own}
    assert processes.addresses(processes.listeners(far.process.pid)) == {door}


def test_a_worker_here_and_one_there(far: Far, tmp_path: Path) -> None:
    """Both are of one session."""
    with processes.worker(tmp_path / "here", "near"):
        both = trained("w1", "near")
        assert all(map(torch.equal, weights(both).values(), weights(trained()).values()))
        disconnect()


def test_a_lost_worker_is_found_again_at_its_address(far: Far) -> None:
    """A new session goes on from a state."""
    g = trained("w1", "w1")
    state, (session,) = g.state(), processes.children(far.process.pid)
    os.kill(session, 9)
    with pytest.raises(WorkerLost):
        step(g)
    g.load_state(state)
    step(g)


def test_a_program_that_is_killed_leaves_it_free(far: Far, tmp_path: Path) -> None:
    """The session ends within seconds."""
    code = f"""
from tests.distributed.test_machines import *
connect(addresses={{"w1": "{far.address}"}})
trained("w1", "w1")
print("trained", flush=True)
input()
"""
    with processes.client(code, tmp_path / "here") as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "trained\n", client.communicate()
        (session,) = processes.children(far.process.pid)
        client.kill()
        processes.until(lambda: not processes.lives(session), seconds=10)


def test_another_token_is_not_let_in(far: Far, tmp_path: Path) -> None:
    """The error says what is wanted; the worker goes on."""
    (tmp_path / "here" / "token").write_text("0" * 64)
    with pytest.raises(WorkerUnavailable, match="both sides need one token"):
        connect("w1")
    far.copy_token(tmp_path / "here")
    connect("w1")


@pytest.mark.parametrize(("text", "why"), [(None, "has none"), ("secret", "has 6 characters")])
def test_no_good_token(far: Far, tmp_path: Path, text: str | None, why: str) -> None:
    """A program without a token, or with one that can be guessed, does not ask."""
    path = tmp_path / "here" / "token"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(WorkerUnavailable, match=why):
        connect("w1")


def test_strangers_do_not_hold_it_up(far: Far) -> None:
    """Those who say nothing, or anything, leave it free for who knows the token."""
    with ExitStack() as stack:
        for said in [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x04what", b"\xff" * 4096] * 20:
            stranger = stack.enter_context(socket.create_connection(far.host_and_port))
            stranger.sendall(said)
        connect("w1")


def test_another_worker_at_the_address(far: Far) -> None:
    """A program does not work with whoever happens to answer."""
    with pytest.raises(WorkerUnavailable, match="is called `w1`; `w2` was wanted"):
        connect("w2", addresses={"w2": far.address})


def test_nobody_at_the_address(tmp_path: Path) -> None:
    """The error says how to start a worker there."""
    Meeting(tmp_path / "here").make()
    (tmp_path / "here" / "token").write_text("0" * 64)
    with kept_settings(), pytest.raises(WorkerUnavailable, match="soma worker --name w1 --address"):
        connect("w1", folder=tmp_path / "here", addresses={"w1": "127.0.0.1:9"})


@pytest.mark.parametrize("address", ["host", "host:", ":7000", "host:0", "host:70000", "h:x"])
def test_no_address(address: str) -> None:
    """What is none is refused, with what one looks like."""
    with pytest.raises(WorkerUnavailable, match="HOST:PORT is wanted"):
        host_and_port(address)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.254"])
def test_no_address_of_this_machine(host: str) -> None:
    """A worker listens at an address that it has, and never at all of them."""
    with pytest.raises(WorkerUnavailable, match="no address of this machine"):
        interface_of(host)


def test_no_cluster_needs_an_address() -> None:
    """Workers of this machine are met as ever, whatever addresses there are."""
    with local_cluster(1) as names, kept_settings():
        connect(*names, addresses={"w9": "127.0.0.1:9"})
