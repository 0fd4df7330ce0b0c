"""A client of HTTP that takes no endless answer: bytes are counted as they come, before all else.

The client of OpenAI reads whole bodies, those of errors too, and unpacks packed ones, of which a
few kilobytes may be gigabytes. So an answer is asked for as it is, and refused where it is packed.
"""

from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

from soma.flow._openai_errors import Server

_MOST_BYTES = 64 << 20  # of one answer; a stream writes some 60 bytes for each byte of text


def bounded_client(openai: Any, server: Server) -> Any:
    """Return the client of HTTP that a client of OpenAI works with.

    Its answers raise a `ModelError` where they are too large, or packed.
    """
    base = openai.DefaultAsyncHttpxClient.__mro__[1]  # of the library that this version is built on
    http = import_module(base.__module__.partition(".")[0])

    class Bounded(http.AsyncByteStream):  # type: ignore[name-defined,misc]
        """Counts what comes."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self._stream:
                size += len(part)
                if size > _MOST_BYTES:
                    raise server.unreadable(f"has more than {_MOST_BYTES:,} bytes")
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound(response: Any) -> None:
        packed = response.headers.get("content-encoding", "identity")
        if packed.strip().lower() not in ("", "identity"):
            raise server.unreadable(f"is packed as {server.clean(packed, 40)!r}")
        response.stream = Bounded(response.stream)

    return openai.DefaultAsyncHttpxClient(
        headers={"Accept-Encoding": "identity"}, event_hooks={"response": [bound]}
    )
