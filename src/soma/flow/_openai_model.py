"""`OpenAIModel`: a language model behind any server that speaks OpenAI's chat completions."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from soma.core import Message, Reply, ToolSpec
from soma.errors import InvalidInput, ModelError
from soma.flow._apart import apart
from soma.flow._model import Options
from soma.flow._openai_call import ServerCall
from soma.flow._openai_errors import Server
from soma.flow._openai_request import (
    is_wrapped,
    response_format,
    unwrapped,
    wire_messages,
    wire_tools,
)

_OPENAI = "https://api.openai.com/v1"
_NO_KEY = "none"  # for servers that ask for none; the client wants a text


class OpenAIModel:
    """A model of OpenAI, or of any server with the same API: vLLM, llama.cpp, Ollama, LM Studio.

    Nothing is opened before the first call, and nothing stays open after one; so a model may be
    asked from many threads.

    >>> OpenAIModel("qwen3", base_url="http://localhost:8000/v1")
    OpenAIModel('qwen3', base_url='http://localhost:8000/v1')

    Args:
        name: as the server calls it.
        base_url: the address of the API; by default the variable `OPENAI_BASE_URL`, else OpenAI's.
        api_key: by default the variable `OPENAI_API_KEY`; a server of your own may need none.
        stream: get replies piece by piece, which `Options.on_text` sees as they come.
        tries: how often a call is made where the server is busy, fails or is not reached. Between
            them the client waits as long as a header `Retry-After` says.

    Raises:
        InvalidInput: `base_url` is no address, or `tries` no number from 1.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        stream: bool = False,
        tries: int = 3,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"{name!r:.80} came as the name of a model. Give the server's own.")
        if base_url is not None and not _is_address(base_url):
            raise InvalidInput(
                "`base_url` is no address of a server. Give one such as `http://localhost:8000/v1`."
            )
        if not isinstance(tries, int) or tries < 1:
            raise InvalidInput(f"`tries` is {tries!r:.80}. Give a whole number from 1.")
        self.name = name
        self.base_url = base_url
        self.stream = stream
        self.tries = tries
        self._api_key = api_key

    @property
    def secrets(self) -> tuple[str, ...]:
        """What nobody may read: the key, and a password in the address."""
        return tuple(one for one in (self._key, urlsplit(self._address).password) if one)

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, object] | None = None,
        options: Options = Options(),  # noqa: B008 - it is frozen
    ) -> Reply:
        """Return the server's reply; a schema of no object is put into one on the way.

        Usage is zero where the server tells none.

        Raises:
            ModelError: there is no reply; a `ModelTimeout` where it took longer than
                `options.seconds`, and a `ModelUnavailable` where asking again later may help.
            MissingExtra: the library `openai` is not installed.
        """
        server = Server(options.name or self.name, self._address, self.secrets)
        if options.seconds is not None and options.seconds <= 0:
            raise server.late(options.seconds)
        if not server.secrets and server.is_openai:
            raise ModelError(
                f"there is no API key for `{server.model}`. Give one as `api_key=`, or in the "
                "variable `OPENAI_API_KEY`; for a server of your own, give `base_url=`."
            )
        request = self._request(server, messages, tools, schema, options)
        call = ServerCall(
            server,
            request,
            key=self._key or _NO_KEY,
            tries=self.tries,
            seconds=options.seconds,
        )
        reply = apart(call.reply, options.on_text)
        if schema is not None and is_wrapped(schema) and reply.stop == "end":
            return replace(reply, text=unwrapped(reply.text))
        return reply

    @property
    def _key(self) -> str | None:
        return self._api_key or os.environ.get("OPENAI_API_KEY") or None

    @property
    def _address(self) -> str:
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI

    def _request(
        self,
        server: Server,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        schema: Mapping[str, object] | None,
        options: Options,
    ) -> dict[str, Any]:
        request: dict[str, Any] = {"model": server.model, "messages": wire_messages(messages)}
        if tools:
            request["tools"] = wire_tools(tools)
        if schema is not None:
            request["response_format"] = response_format(schema)
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.most_tokens is not None:  # OpenAI has renamed it; the others know the old name
            name = "max_completion_tokens" if server.is_openai else "max_tokens"
            request[name] = options.most_tokens
        if self.stream:
            request |= {"stream": True, "stream_options": {"include_usage": True}}
        return request

    def __repr__(self) -> str:
        place = Server("", self.base_url, ()).place if self.base_url else None
        return f"OpenAIModel({self.name!r}{f', base_url={place!r}' if place else ''})"


def _is_address(url: object) -> bool:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        return parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False
