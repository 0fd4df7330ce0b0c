"""JSON schemas as data: made whole for servers, walked by the path of a value.

`_schema.py` makes them and checks texts by them.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from soma.errors import InvalidSchema

_MOST_DEPTH = 100  # of a path through a schema that refers to itself
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_STEP_OF_VALUE = re.compile(r"\.([^.\[\]]+)|\[([^\]]*)\]")  # also one that is not certain, `[...]`


def schema_of(kind: object) -> dict[str, Any]:
    """Return the JSON schema of a Python type, with an object at its root where it is one.

    Objects are closed: a field that is not declared is a mistake, not something to drop.

    Raises:
        InvalidSchema: no JSON can be of this type.
    """
    try:
        found = msgspec.json.schema(kind)
        msgspec.json.Decoder(kind)  # refuses some unions that have a schema
    except (TypeError, ValueError, NameError, RecursionError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise InvalidSchema(
            f"{kind!r:.200} is no type that JSON can be checked by: {reason}. Take numbers, `str`, "
            "`bool`, `list[...]`, `dict[str, ...]`, `Literal[...]`, enums or dataclasses of these."
        ) from error
    return _without_root_reference(_mapped(found, _whole))


def part_at(schema: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    """Return the schema of the value at a path such as `$.layers[0].width`, where that is one."""
    here: Mapping[str, Any] | None = schema
    for name, index in _STEP.findall(path):
        if here is None:
            return None
        inside = [_step(one, name, index) for one in alternatives(schema, here)]
        here = next((one for one in inside if one is not None), None)
    return here


def value_at(value: object, path: str) -> object:
    """Return the value at such a path, or the last before it that is certain."""
    for name, index in _STEP_OF_VALUE.findall(path):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and index.isdigit() and int(index) < len(value):
            value = value[int(index)]
        else:
            break
    return value


def alternatives(schema: Mapping[str, Any], part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a part of a schema, or all that it offers or refers to, down to those that say more."""
    todo, seen = [part], 0
    while todo and seen < _MOST_DEPTH:
        seen += 1
        one = todo.pop(0)
        if "$ref" in one:
            todo.append(_referred(schema, one["$ref"]))
        elif "anyOf" in one:
            todo.extend(one["anyOf"])
        else:
            yield one


def undeclared(schema: Mapping[str, Any], value: object) -> Iterator[tuple[str, str, list[str]]]:
    """Yield path, name and the known names of each field that a closed object does not have."""
    yield from _undeclared(schema, schema, value, "$")


def _undeclared(
    schema: Mapping[str, Any], part: Mapping[str, Any], value: object, path: str
) -> Iterator[tuple[str, str, list[str]]]:
    if not isinstance(value, dict | list):
        return
    fitting = "object" if isinstance(value, dict) else "array"
    parts = [one for one in alternatives(schema, part) if one.get("type") == fitting]
    if len(parts) != 1:  # of several it may be any; what decodes it chooses
        return
    (part,) = parts
    if isinstance(value, list):
        for index, one in enumerate(value):
            inside = _step(part, "", str(index))
            if inside:
                yield from _undeclared(schema, inside, one, f"{path}[{index}]")
        return
    known = part.get("properties", {})
    for name, one in value.items():
        if name in known:
            yield from _undeclared(schema, known[name], one, f"{path}.{name}")
        elif part.get("additionalProperties") is False:
            yield path, name, list(known)
        elif isinstance(part.get("additionalProperties"), dict):
            yield from _undeclared(schema, part["additionalProperties"], one, f"{path}[...]")


def _step(part: Mapping[str, Any], name: str, index: str) -> Mapping[str, Any] | None:
    if name:
        inside = part.get("properties", {}).get(name)
    else:
        first = part.get("prefixItems", [])
        inside = first[int(index)] if int(index) < len(first) else part.get("items")
    return inside if isinstance(inside, Mapping) else None


def _referred(schema: Mapping[str, Any], reference: object) -> Mapping[str, Any]:
    name = str(reference).removeprefix("#/$defs/")
    found = schema.get("$defs", {}).get(name, {})
    return found if isinstance(found, Mapping) else {}


def _mapped(part: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if isinstance(part, list):
        return [_mapped(one, change) for one in part]
    if isinstance(part, dict):
        return change({name: _mapped(one, change) for name, one in part.items()})
    return part


def _whole(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part that says all that servers ask for: types of enums, items of arrays."""
    match part:
        case {"type": "object", "properties": dict()}:
            return {"additionalProperties": False} | part
        case {"type": "array"} if "items" not in part:
            return part | {"items": {}}
        case {"enum": [*values]} if "type" not in part:
            types = {_TYPES.get(type(value)) for value in values}
            return {"type": types.pop()} | part if len(types) == 1 else part
    return part


def _without_root_reference(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose root says what it is: servers want to read `object` there."""
    reference = schema.pop("$ref", None)
    if reference is None:
        return schema
    definitions = schema.pop("$defs")
    name = reference.removeprefix("#/$defs/")
    root: dict[str, Any] = definitions[name]
    if json.dumps(reference) not in json.dumps(definitions):  # else it holds itself
        del definitions[name]
    return root | schema | ({"$defs": definitions} if definitions else {})
