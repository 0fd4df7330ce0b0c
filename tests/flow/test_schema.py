"""Texts of a model become values, or a message that the model can repair them by."""

import json
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

import pytest

from soma.errors import InvalidSchema, SchemaMismatch
from soma.flow import Schema


@dataclass
class Layer:
    width: int
    kind: Literal["dense", "conv"] = "dense"
    below: "list[Layer] | None" = None


class Plan(TypedDict):
    layers: list[Layer]
    why: NotRequired[str]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Layer, '{"width": 3}', Layer(3)),
        (Layer, '{"width": 3, "below": [{"width": 4}]}', Layer(3, below=[Layer(4)])),
        (Plan, '{"layers": [{"width": 1}]}', {"layers": [Layer(1)]}),
        (Literal["yes", "no"], '"yes"', "yes"),
        (list[float], "[1, 2.5]", [1.0, 2.5]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Any, '{"a": [null]}', {"a": [None]}),
        ({"type": "array"}, "[1]", [1]),
        (int, "```json\n3\n```", 3),
        (int, " ```\n3\n``` \n", 3),
    ],
)
def test_a_text_that_fits_becomes_a_value(kind: object, text: str, value: object) -> None:
    """Types make their values, JSON schemas plain ones."""
    assert Schema(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        (Layer, "Sure! Here it is", "'Sure! Here it is' is no JSON that can be read"),
        (Layer, '{"width": NaN}', "no JSON"),
        (Plan, '{"layers": [{"width": 1}, {"width": "x"}]}', '`$.layers[1].width` is "x"'),
        (Plan, '{"layers": [{"wide": 1}]}', "`$.layers[0]` has no field `wide`, only `width`"),
        (Plan, '{"layers": [{"width": 1, "kind": "pool"}]}', '"enum": ["conv", "dense"]'),
        (Plan, "{}", '"items": {"$ref": "#/$defs/Layer"}'),
        (Layer, '{"width": 1, "below": [{"with": 1}]}', "Did you mean `width`?"),
        (Literal["yes", "no"], '"maybe"', "Invalid enum value 'maybe'"),
        (int, "true", "`$` is true: Expected `int`, got `bool`."),
        (dict[str, int], '{"a": "b"}', "Expected `int`, got `str`"),
        ({"type": "integer"}, '"a"', "`$`: 'a' is not of type 'integer'."),
        ({"items": {"const": 1}}, "[2, 3, 4, 5]", "And 1 more."),
    ],
)
def test_a_text_that_does_not_fit_says_why(kind: object, text: str, told: str) -> None:
    """Where it went wrong, what came and what is wanted are told."""
    with pytest.raises(SchemaMismatch) as refused:
        Schema(kind).parse(text)

    assert told in str(refused.value)


def test_the_schema_is_one_that_servers_take() -> None:
    """Objects are closed and stand at the root, enums have types, arrays have items."""
    schema = Schema(Layer).json

    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema["properties"]["kind"]["type"] == "string"
    assert "Layer" in schema["$defs"]  # it holds itself
    assert Schema(list).json == {"type": "array", "items": {}}
    json.dumps(schema)


@pytest.mark.parametrize(
    "kind", [complex, object, "Nowhere", {"type": "nothing"}, {"a": {1, object()}}, Layer | Plan]
)
def test_what_checks_no_text_is_no_schema(kind: object) -> None:
    """A type that JSON does not have, or a mapping that is no JSON schema, is refused at once."""
    with pytest.raises(InvalidSchema):
        Schema(kind)


def test_a_schema_fetches_nothing() -> None:
    """A reference to elsewhere is no request; it cannot be followed."""
    schema = Schema({"$ref": "http://127.0.0.1:9/schema.json"})

    with pytest.raises(InvalidSchema, match=r"127\.0\.0\.1:9"):
        schema.parse("3")
