"""Reading files of unknown origin: what is bounded, and what is left out."""

import os
from pathlib import Path

import pytest

from soma.files import is_folder, parse_json, read_json, read_lines


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"torn", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\n\n\nb\nto", [b"a", b"b"]),
        (b"\xff\xfe\n\x00\x00\nb\n", [b"\xff\xfe", b"\x00\x00", b"b"]),
        (b"a\r\nb\x85c\n", [b"a\r", b"b\x85c"]),
        (b"x" * (1 << 20) + b"\n" + b"y" * (1 << 20) + b"y\nz\n", [b"x" * (1 << 20), b"z"]),
    ],
)
def test_lines_are_whole(tmp_path: Path, data: bytes, lines: list[bytes]) -> None:
    """They are split at line feeds alone; torn, empty and giant ones are left out."""
    (tmp_path / "file").write_bytes(data)

    assert read_lines(tmp_path / "file") == lines


def test_what_is_no_file_has_no_lines(tmp_path: Path) -> None:
    """A missing file, a folder, and a pipe, which would be read for ever."""
    os.mkfifo(tmp_path / "pipe")

    assert [read_lines(tmp_path / name) for name in ("missing", ".", "pipe", "a\0b")] == [[]] * 4


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("1", 1),
        ('"é"', "é"),
        ('{"a": [1.5, {"b": true}]}', {"a": [1.5, {"b": True}]}),
    ],
)
def test_json_is_read(tmp_path: Path, text: str, value: object) -> None:
    """Any value of JSON."""
    (tmp_path / "file").write_text(text, "utf-8")

    assert read_json(tmp_path / "file") == value


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"NaN", b"[Infinity]", b"'a'", b'"\xff"', b"\x00", b"1e999", b"[1] [2]"),
        *(b"[" * 101 + b"]" * 101, b'{"a":' * 101 + b"1" + b"}" * 101, b"[" * 50_000),
        b"[" * 50_000 + b"]" * 50_000,
        b"1" * 5000,
    ],
)
def test_hostile_json_is_refused(data: bytes) -> None:
    """Half, foreign, non-finite, deep: one `ValueError` each."""
    with pytest.raises(ValueError, match=r"JSON|nested|invalid|Invalid|truncated|range"):
        parse_json(data)


def test_depth_and_size_have_bounds(tmp_path: Path) -> None:
    """A hundred levels are read, and no byte more than was allowed."""
    (tmp_path / "file").write_bytes(b"[" * 100 + b"]" * 100)
    assert isinstance(read_json(tmp_path / "file"), list)
    with pytest.raises(ValueError, match="more than 199 bytes"):
        read_json(tmp_path / "file", most=199)


def test_what_is_no_file_is_no_json(tmp_path: Path) -> None:
    """A missing one is an `OSError`; a pipe is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "missing")
    with pytest.raises(ValueError, match="is no file"):
        read_json(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is no file"):
        read_json(tmp_path)


@pytest.mark.parametrize("digits", [309, 400, 4000, 5000])
def test_a_number_that_is_no_float_is_refused(digits: int) -> None:
    """However deep it stands; arithmetic with it would fail later."""
    with pytest.raises(ValueError, match=r"large|range"):
        parse_json(b'{"a": [' + b"9" * digits + b"]}")


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "x/" * 9000, ""])
def test_a_name_that_no_file_has_is_no_folder(tmp_path: Path, name: str) -> None:
    """Whatever the system says to it."""
    assert is_folder(tmp_path)
    assert not is_folder(f"{tmp_path}/none/{name}")
