"""From our words to those of `/v1/chat/completions`."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from soma.core import Message, ToolSpec
from soma.flow._shown import sendable

_WRAPPED = "value"  # the only field of the object that a schema of another kind is put into

# What OpenAI's strict mode knows; a schema with anything else is sent as a wish.
_STRICT = {
    *("$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum"),
    *("exclusiveMaximum", "exclusiveMinimum", "items", "maxItems", "maximum", "minItems"),
    *("minimum", "multipleOf", "pattern", "properties", "required", "title", "type"),
}
_SAYS_WHAT = {"$ref", "anyOf", "type"}


def wire_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as the API takes them."""
    return [_message(message) for message in messages]


def wire_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Return tools as the API takes them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.schema),
            },
        }
        for tool in tools
    ]


def is_wrapped(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is put into an object: the API takes nothing else at the root."""
    return schema.get("type") != "object"


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as the API takes it: strict where that can be."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title", "")))[:64] or "reply"
    sent = _wrapping(schema) if is_wrapped(schema) else dict(schema)
    strict = all(_is_strict(part) for part in _parts(sent))
    return {
        "type": "json_schema",
        "json_schema": {"name": name, "schema": sent, "strict": strict},
    }


def unwrapped(text: str) -> str:
    """Return the text inside of a wrapping object, or a text that is none as it is."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(whole, dict) and list(whole) == [_WRAPPED]:
        return json.dumps(whole[_WRAPPED], ensure_ascii=False)
    return text


def _message(message: Message) -> dict[str, Any]:
    text = sendable(message.text)
    wire: dict[str, Any] = {"role": message.role, "content": text}
    if message.calls:
        wire["content"] = text or None
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ]
    if message.call_id is not None:
        wire["tool_call_id"] = message.call_id
    return wire


def _wrapping(schema: Mapping[str, Any]) -> dict[str, Any]:
    inside = dict(schema)
    definitions = inside.pop("$defs", None)  # references are seen from the root
    return {
        "type": "object",
        "properties": {_WRAPPED: inside},
        "required": [_WRAPPED],
        "additionalProperties": False,
        **({"$defs": definitions} if definitions else {}),
    }


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all schemas in it."""
    yield schema
    items = schema.get("items")
    inside = [
        *schema.get("properties", {}).values(),
        *schema.get("$defs", {}).values(),
        *schema.get("anyOf", []),
        *([items] if isinstance(items, Mapping) else []),
    ]
    for one in inside:
        yield from _parts(one)


def _is_strict(part: Mapping[str, Any]) -> bool:
    if not (part.keys() <= _STRICT and part.keys() & _SAYS_WHAT):
        return False
    if part.get("type") != "object":
        return True
    named = set(part.get("properties", {}))
    return part.get("additionalProperties") is False and named == set(part.get("required", []))
