"""Where a command reads a run, and where it writes a file."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from soma.cli._show import Refused
from soma.draw import one_line
from soma.errors import did_you_mean

ROOT = ".soma"
_LAST = "last"


def root_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option that says where runs are."""
    return click.option("--root", default=ROOT, metavar="DIR", show_default=True,
                        help="The folder that holds `runs`.")(command)  # fmt: skip


def run_folder(run: str, root: str) -> Path:
    """Return the directory of a run that was named on the command line, or refuse."""
    from soma.files import below, is_folder
    from soma.tracking import run_records

    if not run or "\0" in run:
        raise Refused("a run needs a name; `soma runs` lists them.")
    if "/" in run or os.sep in run or run in (".", ".."):
        if not is_folder(run):
            raise Refused(f"there is no run directory at {run}.")
        return Path(run).absolute()
    records = run_records(root)
    known = [record.id for record in records]
    if run == _LAST:
        for one in known:
            with suppress(ValueError):  # a link to elsewhere is listed, and is not the last run
                return below(Path(root) / "runs", one)
    found = [one for one in known if one == run]
    found = found or [one for one in known if one.startswith(run)]
    found = found or [record.id for record in records if record.name == run][:1]
    if len(found) > 1:
        raise Refused(f"{len(found)} runs below {root} begin with {run}; type more of it.")
    if not found:
        if is_folder(run):
            return Path(run).absolute()
        if not records:
            raise Refused(f"there are no runs below {root}; `track_run` keeps one.")
        near = did_you_mean(run, [*known, *(record.name for record in records)])
        raise Refused(f"there is no run {run} below {root}.{near} `soma runs` lists them.")
    try:
        return below(Path(root) / "runs", found[0])
    except ValueError as error:
        raise Refused(error) from None


def write(output: str, content: str) -> None:
    """Write a file whole, and say so."""
    from soma.files import write_atomically

    path = Path(output).absolute()
    try:
        write_atomically(str(path), [content.encode()])
    except OSError as error:
        raise Refused(f"{output} cannot be written: {error.strerror}.") from None
    click.echo(one_line(f"wrote {output}"), err=True)
