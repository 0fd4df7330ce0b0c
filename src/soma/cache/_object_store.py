"""A store in a bucket: S3, Google Cloud Storage or Azure, through obstore.

A service that does not answer, or does not let us in, costs one short wait and one warning;
from then on the process works without the cache.
"""

import os
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, cast

from soma._extras import require
from soma.cache._base_store import BaseStore
from soma.cache._layout import kind_and_name
from soma.cache._store import Entry, Lost

__all__ = ["ObjectStore"]

_PATIENCE = timedelta(seconds=5)
_TIMEOUTS = {"connect_timeout": _PATIENCE, "read_timeout": 2 * _PATIENCE, "timeout": 60 * _PATIENCE}
_RETRY = {"max_retries": 1, "retry_timeout": _PATIENCE}
_PARTS_FROM = 1 << 30  # bytes; a larger object is sent in parts


class ObjectStore(BaseStore):
    """Keeps records and blobs as objects below a URL such as `s3://bucket/prefix`.

    Credentials and endpoint come from where the service's own tools look: the environment,
    or the machine.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._pid = os.getpid()
        self._obstore: Any = require("obstore", extra="s3")
        stores: Any = require("obstore.store", extra="s3")
        options = _TIMEOUTS | {"allow_http": _allows_http()}
        self._bucket = stores.from_url(url, client_options=options, retry_config=_RETRY)

    def __reduce__(self) -> tuple[object, ...]:
        return ObjectStore, (self._url,)

    @property
    def place(self) -> str:
        """Where the store is, as its user would say; without what only its user may know."""
        return re.sub(r"//[^/@]*@", "//", self._url).partition("?")[0]

    def entries(self) -> Iterator[Entry]:
        """List the objects of the store."""
        self._same_process()
        try:
            for batch in self._obstore.list(self._bucket):
                for found in batch:
                    if named := kind_and_name(found["path"]):
                        used = found["last_modified"].timestamp()
                        yield Entry(*named, found["size"], used)
        except Exception as error:
            raise _lost(error) from error

    def _read(self, path: str) -> bytes | None:
        self._same_process()
        try:
            return bytes(self._obstore.get(self._bucket, path).bytes())
        except FileNotFoundError:
            return None
        except Exception as error:
            raise _lost(error) from error

    def _write(self, path: str, parts: Sequence[bytes | memoryview]) -> None:
        self._same_process()
        # Equal bytes may be there already; bytes that are damaged have to go.
        fresh = path.startswith("blobs/") and path not in self._damaged
        data = b"".join(parts)
        whole = len(data) < _PARTS_FROM
        mode = "create" if fresh and whole else "overwrite"
        try:
            self._obstore.put(self._bucket, path, data, mode=mode, use_multipart=not whole)
        except self._obstore.exceptions.AlreadyExistsError:
            pass
        except Exception as error:
            raise _lost(error) from error

    def _size(self, path: str) -> int | None:
        try:
            self._same_process()
            return cast(int, self._obstore.head(self._bucket, path)["size"])
        except FileNotFoundError:
            return None
        except Exception as error:
            self._switch_off(_lost(error))
            return None

    def _remove(self, path: str) -> None:
        self._same_process()
        try:
            self._obstore.delete(self._bucket, path)
        except FileNotFoundError:
            pass
        except Exception as error:
            raise _lost(error) from error

    def _same_process(self) -> None:
        """Raise in a forked child: the threads that talk to the service stayed behind."""
        if os.getpid() != self._pid:
            raise Lost("it was opened before a fork; open it in the child")


def _allows_http() -> bool:
    """May the service be spoken to without encryption? Options hide the variable's answer."""
    asked = (os.environ.get(f"{service}_ALLOW_HTTP", "") for service in ("AWS", "AZURE", "GOOGLE"))
    return any(answer.lower() in ("1", "true") for answer in asked)


def _lost(error: Exception) -> Lost:
    """Return what went wrong in a line: the rest of such texts may hold what is secret."""
    if isinstance(error, Lost):
        return error
    line = (str(error).strip().splitlines() or [""])[0]
    return Lost(f"{type(error).__name__}, {line.rpartition(' - ')[2][:160]}")
