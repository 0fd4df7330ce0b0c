"""The store in a bucket, against a real S3 server on this machine."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread

import pytest

from soma.cache._object_store import ObjectStore
from soma.cache._open import open_store
from soma.cache._upkeep import verify
from soma.errors import CacheWarning, InvalidCache
from soma.testing._store_suite import StoreSuite, commit, digest_of, heard, key_of, look, value_of

obstore = pytest.importorskip("obstore", reason="needs obstore: soma's extra `s3`")
server = pytest.importorskip("moto.server", reason="needs moto, an S3 server for tests")

pytestmark = [
    pytest.mark.process,
    pytest.mark.filterwarnings("default::ResourceWarning"),
    pytest.mark.filterwarnings("default::DeprecationWarning"),
]
_prefixes = count()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Run a server with one bucket, and give its address."""
    s3 = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    s3.start()
    host, port = s3.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        as_environment(patch, f"http://{host}:{port}")
        with closing(socket.create_connection((host, port))) as connection:
            connection.sendall(b"PUT /bucket HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in connection.recv(100)
        yield f"http://{host}:{port}"
    s3.stop()


def as_environment(patch: pytest.MonkeyPatch, endpoint: str) -> None:
    """Let S3 be at an address, for whoever reads the environment."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        patch.delenv(name)
    patch.setenv("AWS_ENDPOINT_URL", endpoint)
    patch.setenv("AWS_ALLOW_HTTP", "true")
    patch.setenv("AWS_REGION", "us-east-1")
    patch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")


@pytest.fixture
def store(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """Give an empty store: a new prefix of the bucket."""
    as_environment(monkeypatch, endpoint)
    store = open_store(f"s3://bucket/soma/{next(_prefixes)}")
    assert isinstance(store, ObjectStore)
    return store


class TestObjects(StoreSuite):
    """A bucket is a store."""


def test_another_process_finds_it(store: ObjectStore) -> None:
    """What one store has kept, another on the same URL reads."""
    commit(store, 1)

    assert look(ObjectStore(store.place), 1)


def test_a_blob_that_is_there_is_not_sent_again(store: ObjectStore) -> None:
    """Put-if-absent: of two that miss at once, one writes and neither fails."""
    put = ObjectStore(store.place)
    put._write(f"blobs/{digest_of(1)[:1]}/{digest_of(1)}", [value_of(1)])
    put._write(f"blobs/{digest_of(1)[:1]}/{digest_of(1)}", [b"other"])
    blob = store.open_blob(digest_of(1))

    assert blob is not None
    assert bytes(blob.buffer) == value_of(1)


@pytest.mark.parametrize("harm", [b"", b"x" * 300, value_of(2), b"[" * 50_000], ids=range(4))
@pytest.mark.parametrize("which", ["records", "blobs"])
def test_damage_is_a_miss_and_is_repaired(store: ObjectStore, which: str, harm: bytes) -> None:
    """Bytes that are not the ones that were put: a miss, then whole again."""
    commit(store, 1)
    path = next(e for e in obstore.list(store._bucket).collect() if e["path"].startswith(which))
    obstore.put(store._bucket, path["path"], harm)
    assert len(verify(store)) == 1
    with pytest.warns(CacheWarning, match="damaged"):
        assert not look(store, 1)
    commit(store, 1)

    assert look(store, 1)
    assert verify(store) == []


def test_a_larger_value_arrives(store: ObjectStore) -> None:
    """Twenty megabytes come back as they were."""
    commit(store, 1, 20_000_000)

    assert look(store, 1, 20_000_000)


@pytest.mark.parametrize("use", ["read", "write", "list"])
def test_nobody_there_costs_one_warning(monkeypatch: pytest.MonkeyPatch, use: str) -> None:
    """Without a service, the cache is off after a short wait; no call raises."""
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        as_environment(monkeypatch, f"http://127.0.0.1:{unused.getsockname()[1]}")
    store = ObjectStore("s3://bucket/prefix")
    start = time.monotonic()
    with heard() as said:
        if use == "list":
            with pytest.raises(OSError, match="Error"):
                list(store.entries())
        elif use == "write":
            commit(store, 1)
        assert not look(store, 1)
        assert not store.has_blob(digest_of(1))
        commit(store, 1)

    assert ["out of reach" in text for text in said] == [True]
    assert not store.writable
    assert time.monotonic() - start < 8


class Refusing(BaseHTTPRequestHandler):
    """A service that knows nobody."""

    def refuse(self) -> None:
        """Answer 403."""
        self.send_error(403, "InvalidAccessKeyId")

    do_GET = do_PUT = do_HEAD = refuse  # noqa: N815 - the base class wants these names

    def log_message(self, *said: object) -> None:
        """Keep quiet."""


def test_wrong_credentials_cost_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that lets nobody in switches the cache off, and no secret is told."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        as_environment(monkeypatch, f"http://127.0.0.1:{http.server_port}")
        store = ObjectStore("s3://bucket/prefix")
        with heard() as said:
            commit(store, 1)
            assert not look(store, 1)
        http.shutdown()

    assert len(said) == 1
    assert "nobody" not in said[0]


@pytest.mark.slow
def test_a_service_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without an answer is given up within half a minute, once."""
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        as_environment(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        store = ObjectStore("s3://bucket/prefix")
        start = time.monotonic()
        with pytest.warns(CacheWarning, match="out of reach"):
            assert not look(store, 1)
        commit(store, 1)

    assert time.monotonic() - start < 30


FORKED = """
import os, sys
from soma.cache._object_store import ObjectStore
from soma.testing._store_suite import commit, look
store = ObjectStore(sys.argv[1])
commit(store, 1)
pid = os.fork()
if pid == 0:
    mine = look(store, 1)
    commit(store, 2)
    os._exit(mine)
print(os.waitpid(pid, 0)[1], look(store, 1))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_works_without(store: ObjectStore) -> None:
    """A child cannot use its parent's connections: it misses, says so, and does not hang."""
    command = [sys.executable, "-c", FORKED, store.place]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)

    assert done.stdout.split() == ["0", "True"]
    assert done.stderr.count("opened before a fork") == 1


def test_a_secret_in_a_url_is_not_told(endpoint: str) -> None:
    """What a URL holds for the service alone stays out of messages."""
    assert ObjectStore("s3://bucket/prefix?sig=secret").place == "s3://bucket/prefix"
    with pytest.raises(InvalidCache, match="az://"):
        open_store("az://container/prefix")


def test_what_is_no_key_is_not_asked_for(store: ObjectStore) -> None:
    """Names are checked before they become part of a request."""
    with pytest.raises(ValueError, match="64 characters"):
        store.put_last(digest_of(1), "a", key_of(1)[:-1])
