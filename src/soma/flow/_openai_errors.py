"""What goes wrong between us and a server, in our words: what came, what was wanted, what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from soma._extras import require
from soma.draw import one_line, shortened
from soma.errors import ModelError, ModelTimeout, ModelUnavailable

_BROKEN = {"ReadError", "RemoteProtocolError", "EndOfStream", "WriteError"}
_LONGEST = 20_000  # characters of an answer that are looked at
_WIRE = {"anyio", "httpcore", "httpcore2", "httpx", "httpx2", "ssl"}


@dataclass(frozen=True, slots=True)
class Server:
    """Whom a call went to, and what its errors must not tell."""

    model: str
    address: str
    secrets: Sequence[str]

    def late(self, seconds: float) -> ModelTimeout:
        """Return the error of a call whose time is over."""
        return ModelTimeout(
            f"`{self.model}` at {self.place} gave no whole reply within {seconds:.3g} s, all tries "
            "together. Give it more time, ask for less, or see whether the server is well."
        )

    def no_completion(self, came: bytes | str, reason: object) -> ModelError:
        """Return the error of an answer that cannot be understood."""
        text = came.decode("utf-8", "replace") if isinstance(came, bytes) else came
        return ModelError(
            f"{self.place} answered {self.clean(text, 120)!r}, which is no chat completion: "
            f"{self.clean(str(reason).rstrip('.'))}. See whether `base_url` is that of an API "
            "compatible with OpenAI's; it often ends in `/v1`."
        )

    def unreadable(self, what: str) -> ModelError:
        """Return the error of an answer that is not read."""
        return ModelError(
            f"an answer of {self.place} {what}, and is not read. See whether `base_url` is right, "
            "and what stands before the server."
        )

    def cut(self) -> ModelUnavailable:
        """Return the error of a connection that broke in the middle of a reply."""
        return ModelUnavailable(
            f"the connection to {self.place} broke before the reply of `{self.model}` was whole. "
            "Ask again; if it happens often, see the log of the server, or of the proxy before it."
        )

    def reported(self, error: object) -> ModelUnavailable:
        """Return the error of a server that tells of one in place of a reply."""
        return ModelUnavailable(
            f"{self.place} told of an error in place of the reply of `{self.model}`: "
            f"{self.clean(_words(error))}. Ask again later, or see the log of the server."
        )

    def error(self, error: Exception) -> ModelError | None:
        """Return our error for one of the client's; None for what has not to do with the wire."""
        openai = require("openai", extra="flow")
        match error:
            case openai.APITimeoutError():
                return ModelTimeout(
                    f"`{self.model}` at {self.place} said nothing for too long, in "
                    f"{_tries(error)}. Give it more time, or see whether the server is well."
                )
            case openai.APIConnectionError() if _is_broken(error.__cause__):
                return self.cut()
            case openai.APIConnectionError():
                return self._unreachable(error.__cause__ or error, _tries(error))
            case openai.APIStatusError():
                return self._refused(error)
            case openai.APIError():
                return self.reported(error.body or error.message)
            case openai.OpenAIError():
                return ModelError(
                    f"the client for `{self.model}` cannot be made: {self.clean(str(error))}"
                )
        if type(error).__module__.partition(".")[0] in _WIRE:
            return self.cut() if _is_broken(error) else self._unreachable(error, "1 try")
        return None

    @property
    def place(self) -> str:
        """The address without what may be secret in it."""
        parts = urlsplit(self.address)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))

    @property
    def is_openai(self) -> bool:
        """Whether this is OpenAI's own."""
        host = urlsplit(self.address).hostname or ""
        return host == "openai.com" or host.endswith(".openai.com")

    def tells_secrets(self, error: BaseException | None) -> bool:
        """Whether an exception, or one behind it, holds what nobody may read."""
        while error is not None:
            if any(secret in str(error) for secret in self.secrets):
                return True
            error = error.__cause__ or error.__context__
        return False

    def clean(self, text: str, most: int = 300) -> str:
        """Return a text on one line, shortened, and without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return shortened(one_line(text[:_LONGEST]), most)

    def _unreachable(self, cause: BaseException, tries: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"{self.place} cannot be reached: {self.clean(str(cause)) or type(cause).__name__}, in "
            f"{tries}. See whether the server runs and `base_url` is right."
        )

    def _refused(self, error: Any) -> ModelError:
        status, words = error.status_code, self.clean(_words(error.body or error.message))
        if status in (401, 403):
            return ModelError(
                f"{self.place} refused the API key ({status}: {words}). Give one that may use "
                f"`{self.model}`, as `api_key=` or in the variable `OPENAI_API_KEY`."
            )
        if status == 404:
            return ModelError(
                f"{self.place} does not know `{self.model}`, or is no address of an API ({status}: "
                f"{words}). See the names that the server lists; `base_url` often ends in `/v1`."
            )
        if status == 429:
            after = error.response.headers.get("retry-after")
            wait = f" (`Retry-After: {self.clean(after, 40)}`)" if after else ""
            return ModelUnavailable(
                f"{self.place} takes no more requests for now, after {_tries(error)}: {words}. "
                f"Go on later{wait}, or with fewer calls side by side."
            )
        if status >= 500 or status in (408, 409):
            return ModelUnavailable(
                f"{self.place} failed with {status} in {_tries(error)}: {words}. Ask again later, "
                "or see the log of the server."
            )
        return ModelError(
            f"{self.place} refused the request for `{self.model}` ({status}: {words}). Change what "
            "it names, such as the length, a tool or the schema."
        )


def _tries(error: Any) -> str:
    retries = error.request.headers.get("x-stainless-retry-count", "0")
    count = int(retries) + 1 if retries.isdigit() else 1
    return f"{count} {'try' if count == 1 else 'tries'}"


def _is_broken(cause: BaseException | None) -> bool:
    return type(cause).__name__ in _BROKEN


def _words(body: object) -> str:
    """Return what a body says, without its brackets where it has a message."""
    inside = body.get("error", body) if isinstance(body, dict) else body
    said = inside.get("message", inside) if isinstance(inside, dict) else inside
    return str(said).strip().rstrip(".")
