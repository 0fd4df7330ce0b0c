"""One call to a server through the client of OpenAI, in a time that is never exceeded."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from soma._extras import require
from soma.core import Reply
from soma.errors import ModelError
from soma.files import parse_json
from soma.flow._openai_bound import bounded_client
from soma.flow._openai_errors import Server
from soma.flow._openai_reply import Heard


class ServerCall:
    """A request to a server, and how long it may take.

    Args:
        key: for the server.
        tries: how often the client asks where that may help.
        seconds: the time for all of it; None leaves it to the client.
    """

    def __init__(
        self,
        server: Server,
        request: Mapping[str, Any],
        *,
        key: str,
        tries: int,
        seconds: float | None,
    ) -> None:
        self._openai = require("openai", extra="flow")
        self._server = server
        self._request = request
        self._key = key
        self._tries = tries
        self._seconds = seconds

    async def reply(self, hand_on: Callable[[str], None]) -> Reply:
        """Return the reply; its text is handed on as it comes.

        Raises:
            ModelError: there is none.
        """
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await self._heard(hand_on)
        except ModelError:
            raise
        except Exception as error:
            # A server that sends byte by byte stays within all limits of the client, not in ours.
            late = isinstance(error, TimeoutError) and limit.expired()
            told = self._server.late(self._seconds or 0) if late else self._server.error(error)
            if told is None:
                raise
            raise told from (None if self._server.tells_secrets(error) else error)

    async def _heard(self, hand_on: Callable[[str], None]) -> Reply:
        given = {} if self._seconds is None else {"timeout": self._seconds}
        async with self._openai.AsyncOpenAI(
            api_key=self._key,
            base_url=self._server.address,
            max_retries=self._tries - 1,
            http_client=bounded_client(self._openai, self._server),
            **given,
        ) as client:
            raw = await client.chat.completions.with_raw_response.create(**self._request)
            heard = Heard()
            streams = "text/event-stream" in raw.headers.get("content-type", "")
            if streams and self._request.get("stream"):
                await self._take_stream(heard, raw.parse(), hand_on)
            else:  # also of a server that does not stream
                body = await raw.http_response.aread()
                hand_on(self._taken(heard, body, parse_json))
            return heard.reply()

    async def _take_stream(self, heard: Heard, stream: Any, hand_on: Callable[[str], None]) -> None:
        try:
            async for chunk in stream:
                hand_on(self._taken(heard, chunk, _plain))
        except ValueError as error:  # the client reads each line as JSON
            raise self._server.no_completion(getattr(error, "doc", ""), error) from error
        if heard.ended is None:
            raise self._server.cut()

    def _taken(self, heard: Heard, said: Any, plain: Callable[[Any], object]) -> str:
        try:
            body = plain(said)
            if not isinstance(body, dict):
                raise ValueError("it is no object")
            if body.get("error") and not body.get("choices"):
                raise self._server.reported(body)
            return heard.take(body)
        except ValueError as error:
            came = said if isinstance(said, bytes) else str(said)
            raise self._server.no_completion(came, error) from error


def _plain(chunk: Any) -> object:
    return chunk.to_dict(warnings=False) if hasattr(chunk, "to_dict") else chunk
