"""`Schema`: what a text of a model has to be, and the value that it stands for."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from soma._extras import require
from soma.draw import shortened
from soma.errors import InvalidSchema, SchemaMismatch, did_you_mean, listing
from soma.files import parse_json
from soma.flow._json_schema import alternatives, part_at, schema_of, undeclared, value_at

_MOST_BYTES = 1 << 20  # of a text that a model wrote
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL)
_MISSING = re.compile(r"missing required field `(.+?)`")


class Schema:
    """A shape that a text of JSON should have, from a Python type or a JSON schema.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Plan:
    ...     layers: int
    ...     why: str = ""
    >>> plan = Schema(Plan)
    >>> plan.parse('{"layers": 3}')
    Plan(layers=3, why='')
    >>> plan.parse('{"hue": 3}')
    Traceback (most recent call last):
    soma.errors.SchemaMismatch: `$` has no field `hue`, only `layers` and `why`.

    Args:
        kind: a dataclass, a msgspec `Struct`, a `TypedDict`, an enum, `Literal[...]`,
            `list[...]` and the like; or a mapping that is a JSON schema, which is checked by the
            library `jsonschema`.

    Raises:
        InvalidSchema: no text can be checked by `kind`.
        MissingExtra: `kind` is a JSON schema, and `jsonschema` is not installed.
    """

    json: Mapping[str, Any]  # the JSON schema

    def __init__(self, kind: object) -> None:
        self._kind = kind
        self._checked: Callable[[bytes, object], Any]
        if isinstance(kind, Mapping):
            self.json = json.loads(json.dumps(_plain(kind)))
            self._checked = _by_schema(self.json)
        else:
            self.json = schema_of(kind)
            self._checked = self._by_type

    def parse(self, text: str) -> Any:
        """Return the value that a text of JSON stands for.

        One block fenced with "```" counts as its inside.

        Raises:
            SchemaMismatch: it is no JSON, is over 1 MiB, is nested over 100 deep, or does not fit;
                its text says where, what came and what is wanted, for the model to repair.
        """
        fenced = _FENCED.fullmatch(text)
        data = (fenced[1] if fenced else text).encode("utf-8", "replace")
        if len(data) > _MOST_BYTES:
            raise SchemaMismatch(f"{len(data):,} bytes came. Write at most {_MOST_BYTES:,}.")
        try:
            value = parse_json(data)
        except ValueError as error:
            raise SchemaMismatch(
                f"{shortened(text, 80)!r} is no JSON that can be read: {str(error).rstrip('.')}. "
                f"Write one value of JSON, and nothing around it: {_shown(self.json, 400)}."
            ) from error
        return self._checked(data, value)

    def _by_type(self, data: bytes, value: object) -> Any:
        unknown = [
            f"`{path}` has no field `{name}`, only {listing(known) or 'none at all'}."
            f"{did_you_mean(name, known)}"
            for path, name, known in undeclared(self.json, value)
        ]
        if unknown:
            raise SchemaMismatch(_joined(unknown))
        try:
            return msgspec.json.decode(data, type=self._kind)
        except msgspec.ValidationError as error:
            reason, _, path = str(error).partition(" - at ")
            raise SchemaMismatch(self._told(reason, path.strip("`") or "$", value)) from error
        except Exception as error:  # of a check that the type makes itself
            raise SchemaMismatch(f"`$` does not fit: {type(error).__name__}: {error}.") from error

    def _told(self, reason: str, path: str, value: object) -> str:
        missing = _MISSING.search(reason)
        part = part_at(self.json, f"{path}.{missing[1]}" if missing else path)
        wanted = list(alternatives(self.json, part)) if part else []
        need = " or ".join(_shown(one, 400) for one in wanted[:4])
        came = _shown(value_at(value, path), 120)
        return f"`{path}` is {came}: {reason}.{f' What is wanted there: {need}.' if need else ''}"

    def __repr__(self) -> str:
        name = self._kind.__name__ if isinstance(self._kind, type) else f"{self._kind!r:.80}"
        return f"Schema({name})"


def _plain(kind: Mapping[Any, Any]) -> object:
    try:
        return msgspec.to_builtins(kind, str_keys=True)
    except (TypeError, RecursionError) as error:
        raise InvalidSchema(
            f"{kind!r:.200} is no JSON schema: {error}. Give strings, numbers, lists and mappings."
        ) from error


def _by_schema(schema: Mapping[str, Any]) -> Callable[[bytes, object], Any]:
    jsonschema = require("jsonschema", extra="flow")
    referencing = require("referencing", extra="flow")
    kind = jsonschema.validators.validator_for(
        schema, default=jsonschema.validators.Draft202012Validator
    )
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise InvalidSchema(
            f"{_shown(schema, 200)} is no JSON schema: {error.message} at `{error.json_path}`."
        ) from error
    validator = kind(schema, registry=referencing.Registry())  # which fetches nothing

    def checked(data: bytes, value: object) -> object:
        try:
            problems = sorted(validator.iter_errors(value), key=lambda one: one.json_path)
        except referencing.exceptions.Unresolvable as error:
            raise InvalidSchema(
                f"a JSON schema refers to {error.ref!r}, which it does not hold. Put it under "
                '`"$defs"`; nothing is fetched.'
            ) from error
        if problems:
            raise SchemaMismatch(
                _joined(f"`{one.json_path}`: {shortened(one.message, 300)}." for one in problems)
            )
        return value

    return checked


def _joined(problems: Iterable[str]) -> str:
    found = list(problems)
    more = f" And {len(found) - 3} more." if len(found) > 3 else ""
    return " ".join(found[:3]) + more


def _shown(value: object, most: int) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), most)
