"""What `cache=` takes, and which sizes there are."""

import sys
from pathlib import Path

import pytest

from soma.cache._file_store import FileStore
from soma.cache._memory_store import MemoryStore
from soma.cache._open import DEFAULT, default_folder, open_store
from soma.cache._store import Store
from soma.cache._upkeep import parse_size
from soma.errors import InvalidCache


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the user's own cache out of this."""
    monkeypatch.setenv("SOMA_CACHE_DIR", str(tmp_path / "default"))
    monkeypatch.delenv("SOMA_CACHE_MAX", raising=False)


def test_each_argument_has_its_store(tmp_path: Path) -> None:
    """None, a word, a path as text or `Path`, and a store are taken."""
    mine = MemoryStore()

    assert open_store(None) is None
    assert isinstance(open_store("memory"), MemoryStore)
    assert open_store(mine) is mine
    for place in (tmp_path / "x", str(tmp_path / "x")):
        store = open_store(place)
        assert isinstance(store, FileStore)
        assert store.root == str(tmp_path / "x")


@pytest.mark.parametrize("cache", [True, 3, "", "  ", b"memory", object, ["memory"]], ids=repr)
def test_what_is_no_cache_is_an_error(cache: object) -> None:
    """The message says what came and what is taken."""
    with pytest.raises(InvalidCache, match="'memory', a folder, a URL") as raised:
        open_store(cache)
    assert repr(cache) in str(raised.value)


@pytest.mark.parametrize("url", ["http://x/y", "ftp://x", "file:///tmp/x", "redis://x"])
def test_other_urls_are_an_error(url: str) -> None:
    """A URL that is no bucket does not become a folder named `http:`."""
    with pytest.raises(InvalidCache, match="s3://, gs:// or az://"):
        open_store(url)


def test_the_default_is_read_when_called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`$SOMA_CACHE_DIR` and `$SOMA_CACHE_MAX` count at the call, not at import."""
    monkeypatch.setenv("SOMA_CACHE_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("SOMA_CACHE_MAX", "3M")
    store = open_store(DEFAULT)

    assert isinstance(store, FileStore)
    assert (store.root, store.max_size) == (str(tmp_path / "elsewhere"), 3_000_000)


def test_the_cap_is_20_gb() -> None:
    """Without a wish, a folder is kept below 20 GB."""
    store = open_store()
    assert isinstance(store, FileStore)
    assert store.max_size == 20_000_000_000


def test_a_wrong_cap_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A size that is none is an error that says where it stands and what is taken."""
    monkeypatch.setenv("SOMA_CACHE_MAX", "lots")
    with pytest.raises(InvalidCache, match=r"\$SOMA_CACHE_MAX: 'lots' is no size.*'20G'"):
        open_store()


@pytest.mark.skipif(sys.platform != "linux", reason="other platforms have other folders")
def test_the_platform_has_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a variable, the cache is where the platform keeps caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "soma"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == Path.home() / ".cache" / "soma"


def test_one_folder_is_one_store(tmp_path: Path) -> None:
    """Graphs of a process share what it has checked and said."""
    store = open_store(tmp_path / "x")
    assert open_store(str(tmp_path / "x")) is store
    assert open_store(tmp_path / "y") is not store
    assert isinstance(store, FileStore)

    store.writable = False  # as after a full disk
    again = open_store(tmp_path / "x")
    assert again is not store
    assert again is not None
    assert again.writable


def test_a_relative_folder_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changing the directory does not move the cache."""
    monkeypatch.chdir(tmp_path)
    store = open_store("here")
    monkeypatch.chdir("/")

    assert isinstance(store, FileStore)
    assert store.root == str(tmp_path / "here")


@pytest.mark.parametrize("store", [MemoryStore(), FileStore("x")], ids=["memory", "file"])
def test_stores_are_stores(store: object) -> None:
    """What comes with soma keeps to the protocol."""
    assert isinstance(store, Store)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("20G", 20 * 10**9),
        ("500M", 500 * 10**6),
        ("1K", 1000),
        ("1.5 kb", 1500),
        ("2GiB", 2 * 2**30),
        ("1ki", 1024),
        ("3T", 3 * 10**12),
        ("12", 12),
        ("0", 0),
        ("7 B", 7),
    ],
)
def test_sizes(text: str, size: int) -> None:
    """A size is a number, with or without a unit."""
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1X", "1e9", "20 G B", "nan", "٣G"])
def test_what_is_no_size_is_an_error(text: str) -> None:
    """The message shows what came and an example."""
    with pytest.raises(InvalidCache, match="is no size") as raised:
        parse_size(text)
    assert repr(text) in str(raised.value)
