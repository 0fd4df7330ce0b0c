"""From the signature of a function to a schema of its arguments, and from those to a call."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Union

import msgspec

from soma.errors import InvalidSchema
from soma.flow._docstring import argument_texts
from soma.flow._schema import Schema

_NAMED = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a function takes: `json` for a model, `parse` for what the model wrote."""

    json: Mapping[str, Any]
    parse: Callable[[str], dict[str, Any]]  # raises SchemaMismatch


def parameters_by(schema: Mapping[str, Any], name: str) -> Parameters:
    """Return parameters that a JSON schema tells.

    Raises:
        InvalidSchema: it is none, or none of an object.
    """
    checked = Schema(schema)
    if checked.json.get("type") != "object":
        raise InvalidSchema(
            f"the schema of the arguments of `{name}` has the type {checked.json.get('type')!r}. "
            'Arguments have names, so give one with `"type": "object"` and `"properties"`.'
        )
    return Parameters(checked.json, checked.parse)


def parameters_of(function: Callable[..., object], name: str) -> Parameters:
    """Return the parameters of a function, with what its docstring says of them.

    Raises:
        InvalidSchema: one has no type, or one that JSON cannot be checked by, or cannot be given by
            name.
    """
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, TypeError, ValueError, SyntaxError) as error:
        raise InvalidSchema(
            f"the parameters of `{name}` cannot be read: {error}. Give a function whose types can "
            "be seen from its module, or `schema=`."
        ) from error
    if isinstance(function, partial):  # what is bound already is not for a model to read or change
        left = [one for one in signature.parameters.values() if one.name not in function.keywords]
        signature = signature.replace(parameters=left)
    texts = argument_texts(inspect.getdoc(function))
    fields = [_field(one, texts.get(one.name), name) for one in signature.parameters.values()]
    try:
        arguments = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
        schema = Schema(arguments)
    except (InvalidSchema, TypeError, ValueError) as error:
        raise InvalidSchema(f"the parameters of `{name}` make no schema: {error}") from error

    def parse(text: str) -> dict[str, Any]:
        given = schema.parse(text)
        values = {one: getattr(given, one) for one in signature.parameters}
        # The function's own defaults are for what was left out.
        return {one: value for one, value in values.items() if value is not msgspec.UNSET}

    return Parameters(_with_defaults(schema.json, signature), parse)


def _field(
    parameter: inspect.Parameter, text: str | None, name: str
) -> tuple[str, Any] | tuple[str, Any, Any]:
    kind: Any = parameter.annotation
    if parameter.kind not in _NAMED:
        raise InvalidSchema(
            f"`{name}` takes `{parameter}` without a name for each, and a model gives arguments by "
            "name. Write a function that names them."
        )
    if kind is parameter.empty:
        raise InvalidSchema(
            f"the parameter `{parameter.name}` of `{name}` has no type, so nobody can check what a "
            f"model gives for it. Write one, such as `{parameter.name}: int`."
        )
    if text:
        kind = Annotated[kind, msgspec.Meta(description=text)]
    if parameter.default is parameter.empty:
        return parameter.name, kind
    return parameter.name, Union[kind, msgspec.UnsetType], msgspec.UNSET  # noqa: UP007 - `|` fails for `"Later"`


def _with_defaults(schema: Mapping[str, Any], signature: inspect.Signature) -> dict[str, Any]:
    """Return a schema that tells defaults too, where JSON can say them."""
    told = {key: dict(part) for key, part in schema["properties"].items()}
    for parameter in signature.parameters.values():
        if parameter.default is not parameter.empty and parameter.default is not None:
            with suppress(TypeError, ValueError):
                told[parameter.name]["default"] = msgspec.to_builtins(parameter.default)
    return {**schema, "properties": told}
