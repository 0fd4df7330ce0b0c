"""From what `/v1/chat/completions` says to a `Reply`, whole or in pieces.

Many servers speak this language with an accent: no usage, no ids of calls, `null` for a text,
arguments that are objects. All that can be understood is.
"""

import json
from dataclasses import dataclass
from typing import Any

from soma.core import Reply, Stop, ToolCall, Usage

_MOST_TOKENS = 2**53  # the largest whole number that every reader of JSON has exactly
_FILTERED = "The server's content filter has stopped the reply."


@dataclass(slots=True)
class _Call:
    index: object
    id: str
    name: str
    arguments: str


class Heard:
    """What a server has said so far: a whole completion, or chunks of a stream, one by one."""

    def __init__(self) -> None:
        self.ended: str | None = None  # why, in the server's word
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._calls: list[_Call] = []
        self._usage = Usage()
        self._model = ""

    def take(self, said: dict[str, Any]) -> str:
        """Add a completion or a chunk of one; return the text in it.

        Raises:
            ValueError: it is neither.
        """
        self._model = str(said.get("model") or self._model)
        if isinstance(said.get("usage"), dict):
            self._usage = _usage(said["usage"])
        choices = said.get("choices")
        if not isinstance(choices, list):
            raise ValueError("it has no list of `choices`")
        if not choices:  # the chunk with the usage has none
            return ""
        choice = choices[0]
        part = _dict(choice).get("message") or _dict(choice).get("delta") or {}
        if not isinstance(choice, dict) or not isinstance(part, dict):
            raise ValueError("its first choice holds no message")
        self.ended = choice.get("finish_reason") or self.ended
        for call in part.get("tool_calls") or []:
            self._take_call(_dict(call))
        self._refusals.append(str(part.get("refusal") or ""))
        text = _text(part.get("content"))
        self._texts.append(text)
        return text

    def reply(self) -> Reply:
        """Return all of it."""
        calls = tuple(
            ToolCall(id=one.id or f"call_{number}", name=one.name, arguments=one.arguments)
            for number, one in enumerate(self._calls, 1)
        )
        text, refusal = "".join(self._texts), "".join(self._refusals)
        stop: Stop = "calls" if calls else "end"
        if self.ended == "content_filter":
            refusal = refusal or text or _FILTERED
        if refusal:
            stop, text = "refusal", refusal
        elif self.ended == "length":
            stop = "length"
        return Reply(text=text, calls=calls, stop=stop, usage=self._usage, model=self._model)

    def _take_call(self, said: dict[str, Any]) -> None:
        function = _dict(said.get("function"))
        index, id, name = said.get("index"), str(said.get("id") or ""), function.get("name")
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        call = self._going_on(index, id, bool(name))
        if call is None:
            self._calls.append(_Call(index, id, str(name or ""), arguments))
        else:
            call.id, call.name = call.id or id, call.name or str(name or "")
            call.arguments += arguments

    def _going_on(self, index: object, id: str, named: bool) -> _Call | None:
        """Return the call that a piece belongs to; None where it begins one."""
        if index is None and named:
            return None
        known = [one for one in self._calls if index is None or one.index == index]
        # Some servers give every call the index 0, and only the ids tell them apart.
        return known[-1] if known and (not id or known[-1].id in ("", id)) else None


def _usage(said: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=_count(said.get("prompt_tokens")),
        output_tokens=_count(said.get("completion_tokens")),
    )


def _count(value: object) -> int:
    return int(min(value, _MOST_TOKENS)) if isinstance(value, int | float) and value > 0 else 0


def _text(content: object) -> str:
    """Return a text that came whole, or as a list of parts."""
    if isinstance(content, list):
        return "".join(str(_dict(part).get("text") or "") for part in content)
    return "" if content is None else str(content)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
