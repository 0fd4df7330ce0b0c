"""Record files: what was written comes back, and anything else is a miss."""

import json
import pickle  # noqa: TID251 - what a stranger would write

import msgspec
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from soma.cache._record import (
    FORMAT,
    LARGEST,
    SORTS,
    Last,
    OtherFormat,
    Record,
    check_hash,
    latest_lines,
    parse,
    parse_lasts,
    read_lasts,
    write_last,
    write_record,
)

KEY, DIGEST = "0a" * 32, "1b" * 32
RECORD = Record(key=KEY, digest=DIGEST, size=3, kind="state", facts={"a": [1]}, created=1.5)
WHOLE = write_record(RECORD)

texts = st.text(st.characters(exclude_categories=["Cs"]))
plain = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(-1e9, 1e9) | texts
values = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(texts, inner))


def read_record(data: bytes) -> Record | None:
    """Return the record in a file's bytes, or None if it is refused."""
    try:
        return parse(data)
    except ValueError:
        return None


def sealed(**changes: object) -> bytes:
    """Return the file of a record with other fields, and a seal that fits."""
    body = msgspec.json.encode(msgspec.to_builtins(RECORD) | changes)[1:]
    return b'{"check":"%s",%s' % (blake3(body).hexdigest(length=16).encode(), body)


@given(facts=st.dictionaries(texts, values), inline=st.none() | texts, created=st.floats(-1e9, 1e9))
def test_a_record_comes_back(facts: dict[str, object], inline: str | None, created: float) -> None:
    """Reading what was written gives an equal record."""
    record = msgspec.structs.replace(RECORD, facts=facts, inline=inline, created=created)

    assert read_record(write_record(record)) == record


def test_a_record_is_strict_json() -> None:
    """Anyone can read the file, and its first field is the seal."""
    found = json.loads(WHOLE)

    assert next(iter(found)) == "check"
    assert (found["key"], found["facts"]) == (KEY, {"a": [1]})


@pytest.mark.parametrize("at", range(0, len(WHOLE) * 8, 7))
def test_a_flipped_bit_is_a_miss(at: int) -> None:
    """No bit of a record can change unnoticed."""
    data = bytearray(WHOLE)
    data[at // 8] ^= 1 << at % 8

    assert read_record(bytes(data)) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 400,
        WHOLE[:-1],
        WHOLE[:40],
        WHOLE + b"\n",
        b"\xff\xfe" + WHOLE,
        b"null",
        b"[]",
        b"[" * 50_000,
        b'{"a":' * 50_000,
        pickle.dumps(RECORD.facts),
        msgspec.json.encode(RECORD),
        b" " * (LARGEST + 1),
    ],
    ids=range(13),
)
def test_what_is_no_record_is_a_miss(data: bytes) -> None:
    """Torn, empty, foreign and hostile bytes give None."""
    assert read_record(data) is None
    assert [*read_lasts(data)] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "../../../etc/passwd"},
        {"key": KEY.upper()},
        {"digest": DIGEST + "\n"},
        {"digest": 3},
        {"blob_hash": "/dev/zero"},
        {"size": -1},
        {"size": "3"},
        {"kind": "model"},
        {"facts": []},
        {"created": "today"},
        {"inline": 3},
        {"format": 0},
        {"format": None},
    ],
    ids=str,
)
def test_wrong_fields_are_a_miss(changes: dict[str, object]) -> None:
    """A whole file with a wrong field is no record, however well it is sealed."""
    assert read_record(sealed()) == RECORD
    assert read_record(sealed(**changes)) is None


def test_nesting_does_not_end_the_process() -> None:
    """Deep brackets under a good seal are a miss."""
    body = WHOLE[44:].replace(b'"facts":{"a":[1]}', b'"facts":' + b'{"a":' * 50_000)
    data = b'{"check":"%s",%s' % (blake3(body).hexdigest(length=16).encode(), body)

    assert read_record(data) is None


@pytest.mark.parametrize("number", [FORMAT - 1, FORMAT + 1])
@pytest.mark.parametrize("changes", [{}, {"key": 3, "kind": "adapter"}])
def test_another_format_is_a_miss_but_no_damage(number: int, changes: dict[str, object]) -> None:
    """What another version wrote is told from what is broken."""
    data = sealed(format=number, **changes)

    assert read_record(data) is None
    with pytest.raises(OtherFormat, match=f"format {number}"):
        parse(data)


def test_a_field_of_a_later_version_is_skipped() -> None:
    """One field more is no reason to forget a value."""
    assert read_record(sealed(weather="fine")) == RECORD


@pytest.mark.parametrize(
    "facts", [{"a": 1j}, {"a": "\udc80"}, {"a": "x" * LARGEST}, {"a": object()}], ids=range(4)
)
def test_what_could_not_be_read_is_not_written(facts: dict[str, object]) -> None:
    """Facts that are no JSON, or too many, are an error at once."""
    with pytest.raises(ValueError, match=r"no JSON|surrogates|bytes"):
        write_record(msgspec.structs.replace(RECORD, facts=facts))


def test_pointers_come_back() -> None:
    """The latest key of a name comes first, and no pointer is a record."""
    first, second = (Last(name=DIGEST, sort=sort, key=KEY) for sort in "ab")
    data = write_last(first) + write_last(second)

    assert [*read_lasts(data)] == parse_lasts(data)[::-1] == [second, first]
    assert read_record(write_last(first)) is None
    assert [*read_lasts(WHOLE)] == []


def test_a_torn_line_costs_no_other() -> None:
    """Of half a line, nothing is read; the lines around it are."""
    first, second = (write_last(Last(name=DIGEST, sort=sort, key=KEY)) for sort in "ab")

    assert [last.sort for last in read_lasts(first + first[:99] + b"\n" + second)] == ["b", "a"]


def test_the_latest_line_of_each_sort_is_kept() -> None:
    """Sorts beyond a few, lines that were followed by others, and other names go."""
    data = b"".join(
        write_last(Last(name=DIGEST, sort=str(number % (SORTS + 1)), key=KEY))
        for number in range(3 * SORTS)
    )
    data += write_last(Last(name=KEY, sort="0", key=KEY))
    kept = [last.sort for last in parse_lasts(b"".join(latest_lines(data, DIGEST)))]

    assert kept == [str(number % (SORTS + 1)) for number in range(2 * SORTS, 3 * SORTS)]


@given(st.text("0123456789abcdefABCDEF\n/.", min_size=60, max_size=66))
def test_a_hash_is_64_lower_hex_characters(text: str) -> None:
    """Nothing else can become a path."""
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        assert check_hash(text) == text
    else:
        with pytest.raises(ValueError, match="no key or digest"):
            check_hash(text)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(noise: bytes) -> None:
    """Bytes from a stranger give a record or None, with or without a good seal."""
    assert read_record(noise) is None
    assert read_record(WHOLE[:44] + noise) is None
    good = b'{"check":"%s",%s' % (blake3(noise).hexdigest(length=16).encode(), noise)
    assert read_record(good) is None
