"""Lets threads that want the same key at the same time compute it once."""

from collections.abc import Callable
from threading import Event, Lock

_ABSENT = object()


class _Flight:
    """A key that some thread is computing."""

    __slots__ = ("answer", "landed")

    def __init__(self) -> None:
        self.landed = Event()
        self.answer: object = _ABSENT


class Flights:
    """The keys that are being computed in one run."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight] = {}
        self._lock = Lock()

    def once(self, key: str, compute: Callable[[], object]) -> object:
        """Return what `compute` gives, or what another thread's gives for the same key.

        Where that one fails, its error is its own: this thread computes for itself.
        """
        with self._lock:
            flight = self._flights.get(key)
            mine = flight is None
            if flight is None:
                flight = self._flights[key] = _Flight()
        if not mine:
            flight.landed.wait()
            return compute() if flight.answer is _ABSENT else flight.answer
        try:
            flight.answer = compute()
            return flight.answer
        finally:
            with self._lock:
                del self._flights[key]
            flight.landed.set()
