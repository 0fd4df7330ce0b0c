"""A sign of life for readers on other machines, while a node works for long and says nothing."""

import os
import threading
from contextlib import suppress
from pathlib import Path

BEAT_SECONDS = 10.0
STALE_SECONDS = 120.0  # without a beat for so long, a run elsewhere counts as crashed


class Heartbeat:
    """Touches a file every ten seconds, from a thread that a forked child does not have."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="soma-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Beat no more."""
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            with suppress(OSError):  # a disk that is away for a while comes back
                os.utime(self._path)
