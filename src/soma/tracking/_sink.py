"""`Sink`: what takes a run to another tool, while the run goes on or afterwards."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from soma.tracking._points import Manifest
from soma.tracking._status import Standing


class Point(NamedTuple):
    """A number that was logged."""

    name: str
    step: int
    value: float  # NaN and infinity too
    time: float  # seconds since the run began


class Sink:
    """Takes a run to another tool; only `points` has to be written.

    For each run, one thread calls `start`, `points` any number of times, `findings` if an audit
    flagged something, and `close`. When a method raises, the sink gets no more of that run: one
    warning says so, and the run goes on. `soma.integrations.sinks` has sinks for well-known tools.

    >>> from tempfile import mkdtemp
    >>> import soma
    >>> class Printing(Sink):
    ...     def points(self, points):
    ...         for point in points:
    ...             print(point.name, point.step, point.value)
    >>> with soma.track_run("told", root=mkdtemp(), sinks=[Printing()]) as run:
    ...     run.log("loss", 0.5)
    loss 0 0.5
    """

    where: str = ""  # the last run went there; a text for people

    def start(self, run: Manifest) -> None:
        """Begin a run: its id, its name, and what it was started with."""

    def points(self, points: Sequence[Point]) -> None:
        """Take what was logged since the last call, in order: 1 to 1000 points."""
        raise NotImplementedError(f"{type(self).__name__} has no method `points`.")

    def findings(self, flags: Sequence[Mapping[str, Any]]) -> None:
        """Take what an audit flagged: mappings with `node_id`, `flag` and `why`."""

    def close(self, standing: Standing) -> None:
        """End a run; `standing.state` and `standing.error` say how it ended."""
