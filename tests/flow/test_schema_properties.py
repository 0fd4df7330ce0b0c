"""Schemas against an independent library, on many values."""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Literal

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soma.errors import SchemaMismatch
from soma.flow import Schema


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Part:
    name: str
    size: Annotated[int, msgspec.Meta(ge=0)] = 0
    colour: Colour | None = None


@dataclass
class Whole:
    parts: list[Part]
    kind: Literal["a", "b"] | int
    shares: dict[str, float] = field(default_factory=dict)
    pair: tuple[bool, str] = (False, "")


WHOLE = Schema(Whole)
PARTS = st.builds(Part, st.text(), st.integers(0, 9), st.none() | st.sampled_from(Colour))
WHOLES = st.builds(
    Whole,
    st.lists(PARTS, max_size=3),
    st.sampled_from(["a", "b"]) | st.integers(-9, 9),
    st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.booleans(), st.text(max_size=3)),
)
WORDS = st.sampled_from(["parts", "kind", "shares", "pair", "name", "size", "red", "a", "?"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | WORDS,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(WORDS, inside, max_size=4),
    max_leaves=12,
)


@given(WHOLES)
def test_what_fits_is_parsed_and_valid(value: Whole) -> None:
    """A value comes back from its JSON, which `jsonschema` takes too."""
    text = msgspec.json.encode(value).decode()
    jsonschema.validate(json.loads(text), WHOLE.json)

    assert WHOLE.parse(text) == value


@given(st.fixed_dictionaries({"parts": ANYTHING, "kind": ANYTHING}, optional={"?": ANYTHING}))
def test_what_is_parsed_is_valid(value: object) -> None:
    """What `jsonschema` refuses is refused, and never with another error."""
    with suppress(SchemaMismatch):
        WHOLE.parse(json.dumps(value))
        jsonschema.validate(value, WHOLE.json)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever a model writes, the only error is that it does not fit."""
    with pytest.raises(SchemaMismatch):
        WHOLE.parse(text)
