"""What every store must do, as tests: a test class inherits `StoreSuite` and gives a `store`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from warnings import catch_warnings, simplefilter

from blake3 import blake3

from soma.cache._record import Record
from soma.cache._store import Entry, Store
from soma.cache._tensor_file import hash_file
from soma.cache._upkeep import gc, pin, stats, unpin, verify
from soma.errors import CacheWarning

__all__ = ["StoreSuite", "commit", "digest_of", "heard", "key_of", "look", "value_of"]


def value_of(number: int, size: int = 300) -> bytes:
    """Return bytes that are this number's, and no other's."""
    return (f"value {number}; ".encode() * (size // 8 + 1))[:size]


def key_of(number: int) -> str:
    """Return the key of a number."""
    return blake3(b"key %d" % number).hexdigest()


def digest_of(number: int) -> str:
    """Return the digest of a number's value, whatever its size."""
    return blake3(b"digest %d" % number).hexdigest()


def commit(store: Store, number: int, size: int = 300) -> None:
    """Keep a number's value as the engine does: first the blob, then the record."""
    value = value_of(number, size)
    digest = digest_of(number)
    store.put_blob(digest, [memoryview(value[:100]), memoryview(value[100:])])
    store.put_record(
        Record(
            key=key_of(number),
            digest=digest,
            size=size,
            kind="state" if number % 2 else "output",
            facts={"class": "Scale", "number": number},
            created=float(number),
            blob_hash=hash_file(memoryview(value)),
        )
    )


def look(store: Store, number: int, size: int = 300) -> bool:
    """Tell whether a number's value is a hit; one with other bytes is an error."""
    record = store.get_record(key_of(number))
    if record is None:
        return False
    assert record.digest == digest_of(number), "a record that was never written"
    blob = store.open_blob(record.digest, record.blob_hash)
    if blob is None:
        return False
    with blob:
        assert bytes(blob.buffer) == value_of(number, size), "bytes that were never written"
    return True


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect what stores warn of inside the `with`."""
    said: list[str] = []
    with catch_warnings(record=True) as caught:
        simplefilter("always", CacheWarning)
        try:
            yield said
        finally:
            said += [str(warning.message) for warning in caught]


def refusal(kind: type[Exception], call: Callable[[str], object], argument: str) -> str:
    """Return what an error of a kind says, or nothing if there is none."""
    try:
        call(argument)
    except kind as error:
        return str(error)
    return ""


class StoreSuite:
    """The behaviour that all stores share."""

    def test_what_was_kept_is_found(self, store: Store) -> None:
        """A committed value is a hit with the bytes that were put."""
        commit(store, 1)
        assert look(store, 1)
        assert not look(store, 2)
        assert (store.counts.hits, store.counts.misses) == (1, 1)

    def test_a_record_comes_back_as_it_was(self, store: Store) -> None:
        """All fields of a record survive."""
        facts: dict[str, object] = {"a": [1, 2.5, None, {"b": "é"}]}
        record = Record(
            key=key_of(1), digest=digest_of(1), size=2, inline="42", kind="output", facts=facts,
            created=1.5,
        )  # fmt: skip
        store.put_record(record)
        assert store.get_record(key_of(1)) == record

    def test_a_blob_without_its_record_is_no_hit(self, store: Store) -> None:
        """The record is what commits."""
        store.put_blob(digest_of(1), [memoryview(value_of(1))])
        assert not look(store, 1)

    def test_a_record_without_its_blob_is_no_hit(self, store: Store) -> None:
        """A blob that is gone is a miss, and is kept again by the next commit."""
        commit(store, 1)
        store.remove(Entry("blob", digest_of(1), 0, 0.0))
        assert not store.has_blob(digest_of(1))
        assert not look(store, 1)
        commit(store, 1)
        assert look(store, 1)

    def test_equal_bytes_are_written_once(self, store: Store) -> None:
        """A blob that is there already is not written again."""
        for _ in range(2):
            store.put_blob(digest_of(1), [memoryview(value_of(1))])
        assert store.counts.blobs_written == 1

    def test_a_distrusted_blob_is_replaced(self, store: Store) -> None:
        """A blob that does not decode is written again."""
        store.put_blob(digest_of(1), [memoryview(value_of(1))])
        with heard() as said:
            store.distrust(digest_of(1), "it does not decode")
        assert "it does not decode" in said[0]
        assert not store.has_blob(digest_of(1))
        store.put_blob(digest_of(1), [memoryview(value_of(1))])
        assert store.has_blob(digest_of(1))
        assert store.counts.damaged == 1

    def test_the_caller_may_write_to_what_it_has_put(self, store: Store) -> None:
        """A store keeps bytes, not views of the caller's."""
        value = bytearray(value_of(1))
        store.put_blob(digest_of(1), [memoryview(value)])
        value[:] = bytes(len(value))
        blob = store.open_blob(digest_of(1))
        assert blob is not None
        assert bytes(blob.buffer) == value_of(1)

    def test_an_empty_blob_is_kept(self, store: Store) -> None:
        """No bytes are bytes too."""
        store.put_blob(digest_of(1), [])
        blob = store.open_blob(digest_of(1), hash_file(memoryview(b"")))
        assert blob is not None
        assert bytes(blob.buffer) == b""

    def test_the_last_key_of_a_name_is_remembered(self, store: Store) -> None:
        """`put_last` overwrites, `get_last` of an unknown name or sort is None."""
        for number in (1, 2):
            store.put_last(digest_of(1), "a", key_of(number))
        assert store.get_last(digest_of(1)) == store.get_last(digest_of(1), "a") == key_of(2)
        assert store.get_last(digest_of(1), "b") is None
        assert store.get_last(digest_of(2)) is None

    def test_the_last_keys_of_a_few_sorts_are_remembered(self, store: Store) -> None:
        """Each sort has its own last key, the 16 sorts written last at least."""
        for number in (*range(16), 0, 16):
            store.put_last(digest_of(1), f"sort {number}", key_of(number))
        assert store.get_last(digest_of(1)) == key_of(16)
        assert store.get_last(digest_of(1), "sort 0") == key_of(0)

    def test_only_a_hash_is_a_name(self, store: Store) -> None:
        """What is no hash never becomes a path."""
        for name in ("", "../../etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n"):
            for use in (store.get_record, store.open_blob, store.has_blob, store.get_last):
                assert "64 characters" in refusal(ValueError, use, name)

    def test_stats_count_what_is_there(self, store: Store) -> None:
        """Entries, kinds, blobs and pins are told apart."""
        for number in range(3):
            commit(store, number)
        store.put_last(digest_of(9), "a", key_of(1))
        pin(store, key_of(1))
        found = stats(store)
        assert (found.entries, found.states, found.outputs) == (3, 1, 2)
        assert (found.blobs, found.pinned) == (3, 1)
        assert found.bytes == sum(entry.size for entry in store.entries())

    def test_gc_spares_what_is_pinned(self, store: Store) -> None:
        """A pinned entry and its blob stay; unpinned, they go."""
        for number in range(3):
            commit(store, number)
        pin(store, key_of(1))
        gc(store, 0)
        assert [look(store, number) for number in range(3)] == [False, True, False]
        unpin(store, key_of(1))
        assert gc(store, 0).left == 0
        assert not look(store, 1)

    def test_only_what_is_there_is_pinned(self, store: Store) -> None:
        """A pin for an unknown key is an error that names the key."""
        assert key_of(1) in refusal(LookupError, lambda key: pin(store, key), key_of(1))

    def test_a_whole_store_verifies(self, store: Store) -> None:
        """Nothing is damaged where nothing was touched."""
        for number in range(3):
            commit(store, number)
        store.put_last(digest_of(9), "a", key_of(1))
        pin(store, key_of(1))
        assert verify(store) == []
