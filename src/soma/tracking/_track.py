"""`soma.track_run`: a run without a graph. `Graph.track_run`, far above, adds a listener."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from soma.tracking._run import Run, start_run


@contextmanager
def track_run(
    name: str,
    *,
    kind: str = "train",
    tags: Iterable[str] = (),
    params: Mapping[str, object] | None = None,
    root: str | os.PathLike[str] = ".soma",
    durable: bool = False,
) -> Iterator[Run]:
    """Keep what is logged inside a `with` in a directory below `<root>/runs`.

    An error or Ctrl-C goes on its way, and the run says that it ended so. `start_run` says
    what the arguments are.

    >>> from tempfile import mkdtemp
    >>> with track_run("by hand", root=mkdtemp(), params={"lr": 0.1}) as run:
    ...     for loss in (0.5, 0.25):
    ...         run.log("loss", loss)
    """
    with start_run(name, kind=kind, tags=tags, params=params, root=root, durable=durable) as run:
        yield run
