"""Values in a journal: JSON in its line, all else as a file beside it, and back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import json

from soma.cache import Undigestible, combine, decode_blob, decode_inline, encode
from soma.cache import digest as digest_of
from soma.errors import InvalidOutput, RunNotWritten
from soma.files import below, make_folder, parse_json, write_atomically
from soma.flow._shown import sendable
from soma.tracking import VALUES, Secrets

_MOST_INLINE = 64 << 10  # bytes of JSON in a line
_MOST_DEPTH = 50
_EXACT = 2**53  # integers beyond are not exact in every reader of JSON


@dataclass(frozen=True, slots=True)
class Kept:
    """A value as a line holds it: as JSON, or as the name of a file of the run's directory."""

    value: Any
    blob: str | None


def keep(value: object, folder: Path, at: str, secrets: Secrets) -> Kept:
    """Return a value as a line of a journal holds it; a large one, or an array, is written.

    Args:
        folder: of the run.
        at: where in the run the value comes from, which no other value does.
        secrets: are hidden already in texts, dicts, lists and tuples, and may stand in the rest.

    Raises:
        InvalidOutput: it is of a class that cannot be written, or a secret stands in it.
    """
    if is_json(value):
        text = json.encode(value)
        if len(text) <= _MOST_INLINE:
            return Kept(value, None)
        return Kept(None, _written(folder, at, "json", [text]))
    try:
        encoded = encode(value)
    except ValueError as error:  # it has no codec, or texts and numbers that none can write
        raise InvalidOutput(
            f"`{at}` gave a value that cannot be kept: {error}. Plain data, arrays and tensors "
            "need none."
        ) from error
    texts = encoded.inline if encoded.blob is None else encoded.blob[0]
    if secrets.stand_in(bytes(texts or b"")):
        raise InvalidOutput(
            f"`{at}` gave a `{type(value).__name__}` with a secret in it, where it cannot be "
            "hidden. Give it in a text, a dict or a list, or leave it out."
        )
    if encoded.inline is not None:
        return Kept(None, _written(folder, at, "soma.json", [encoded.inline]))
    assert encoded.blob is not None
    return Kept(None, _written(folder, at, "safetensors", encoded.blob))


def restore(kept: Kept, folder: Path) -> object:
    """Return the value that `keep` was given.

    Raises:
        OSError: its file cannot be read.
        ValueError: its file is no value.
    """
    if kept.blob is None:
        return kept.value
    data = below(folder, kept.blob).read_bytes()
    if kept.blob.endswith(".soma.json"):
        return decode_inline(data)
    if kept.blob.endswith(".json"):
        return parse_json(data)
    return decode_blob(memoryview(bytearray(data)), copy=False)


def file_for(folder: Path, at: str, ending: str) -> str:
    """Return the name of a file of a run's directory for a value; its folder is there then.

    Raises:
        RunNotWritten: its folder is a link out of the run's directory.
    """
    make_folder(str(folder / VALUES))
    name = f"{VALUES}/{combine(at)[:24]}.{ending}"
    try:
        below(folder, name)
    except ValueError as error:
        raise RunNotWritten(f"what `{at}` gave cannot be kept: {error}") from error
    return name


def digest(value: object, depth: int = 3) -> str:
    """Return what stands for a request in the journal; one word for a part that has no digest."""
    try:
        return digest_of(value, unordered_dicts=True)
    except Undigestible:
        if depth and type(value) is list:
            return combine(*(digest(one, depth - 1) for one in value))
        if depth and type(value) is dict:
            return digest_of(
                {name: digest(one, depth - 1) for name, one in value.items()}, unordered_dicts=True
            )
        return "unknown"


def _written(folder: Path, at: str, ending: str, buffers: object) -> str:
    name = file_for(folder, at, ending)
    write_atomically(str(folder / name), buffers, durable=True)  # type: ignore[arg-type]
    return name


def is_json(value: object, depth: int = _MOST_DEPTH) -> bool:
    """Whether JSON gives exactly this value back."""
    if value is None or type(value) is bool:
        return True
    if type(value) is str:
        return sendable(value) == value
    if type(value) is int:
        return -_EXACT <= value <= _EXACT
    if type(value) is float:
        return value - value == 0  # neither NaN nor infinite
    if not depth:
        return False
    if type(value) is list:
        return all(is_json(one, depth - 1) for one in value)
    if type(value) is dict:
        return all(
            type(name) is str and is_json(name) and is_json(one, depth - 1)
            for name, one in value.items()
        )
    return False
