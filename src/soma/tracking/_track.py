"""`soma.track_run`: makes the directory of a run. `Graph.track_run` also listens to its graph."""

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from secrets import token_hex

from msgspec import to_builtins

from soma.errors import InvalidInput
from soma.files import make_folder
from soma.tracking._environment import environment
from soma.tracking._layout import FORMAT, MANIFEST, runs_folder
from soma.tracking._plain import plain, plain_tags, shown, text_out
from soma.tracking._points import Manifest
from soma.tracking._process import ProcessMark
from soma.tracking._run import Run, not_written, write_json
from soma.tracking._secrets import Secrets
from soma.tracking._sink import Sink
from soma.tracking._status import Standing, write_status

_LONGEST_TITLE = 10_000  # characters of a run's name or kind


def track_run(
    name: str,
    *,
    kind: str = "train",
    tags: Iterable[str] = (),
    params: Mapping[str, object] | None = None,
    root: str | PathLike[str] = ".soma",
    durable: bool = False,
    sinks: Iterable[Sink] = (),
    secrets: Iterable[str] = (),
) -> Run:
    """Keep what is logged inside a `with` in a directory below `<root>/runs`.

    The run notes how it ended; an error or Ctrl-C is raised on. The directory is made at once:
    without a `with`, `run.finish()` ends the run.

    >>> from tempfile import mkdtemp
    >>> with track_run("by hand", root=mkdtemp(), params={"lr": 0.1}) as run:
    ...     for loss in (0.5, 0.25):
    ...         run.log("loss", loss)

    Args:
        name: for people; several runs may have the same.
        kind: what is done in it, such as `train`; for people too.
        params: what the run was started with; a value that is not JSON is kept as its `repr`.
        durable: bring each line to the disk before `log` returns, so that it survives a power cut.
        sinks: take the run to other tools while it goes on; one that fails is left with a warning.
        secrets: texts that no file of the directory may hold; `***` stands there in their place.

    Raises:
        RunNotWritten: the directory cannot be made.
    """
    for what, given in (("name", name), ("kind", kind)):
        if not isinstance(given, str):
            raise InvalidInput(f"the `{what}` of a run is {shown(given)}; a string is wanted.")
    if not isinstance(params, Mapping | None):
        raise InvalidInput(
            f"the `params` of a run are a {type(params).__name__}; a mapping from names is wanted, "
            "such as `vars(arguments)`."
        )
    to_feed = _checked_sinks(sinks)
    hidden = Secrets(secrets)
    plain_params = hidden.hide(plain(hidden.hide({} if params is None else params)))
    kept_tags = hidden.hide(plain_tags(tags))
    folder = runs_folder(os.fspath(root)).absolute()
    try:
        directory = _new_directory(folder)
        process, now = ProcessMark.own(), time.time()
        surroundings = {**environment(), "host": process.host, "pid": process.pid}
        manifest = Manifest(
            id=directory.name,
            name=hidden.text(text_out(name))[:_LONGEST_TITLE],
            kind=hidden.text(text_out(kind))[:_LONGEST_TITLE],
            tags=kept_tags,
            params=plain_params if isinstance(plain_params, dict) else {"params": plain_params},
            created_at=now,
            environment=hidden.hide(surroundings),
        )
        write_status(directory, process, now, Standing("running"))
        write_json(directory / MANIFEST, {"format": FORMAT, **to_builtins(manifest)})
        return Run(directory, manifest, process, durable=durable, sinks=to_feed, secrets=hidden)
    except OSError as error:
        raise not_written(folder, error) from error


def _checked_sinks(given: Iterable[Sink]) -> list[Sink]:
    sinks = list(given) if isinstance(given, Iterable) else [given]
    for one in sinks:
        if not isinstance(one, Sink):
            raise InvalidInput(
                f"{shown(one)} came among the `sinks` of a run; a list of sinks is wanted, such as "
                "`[soma.integrations.sinks.CsvSink()]`."
            )
    return sinks


def _new_directory(folder: Path) -> Path:
    """Make a directory whose name, the run's id, no other process has taken."""
    make_folder(str(folder))
    while True:
        directory = folder / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{token_hex(4)}"
        with suppress(FileExistsError):
            directory.mkdir(0o700)
            return directory
