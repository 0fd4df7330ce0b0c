"""`soma cache`: what is stored, what is damaged, what has to go, what has to stay, and why."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from soma.cli._show import Form, Refused, Row, amounts, form_options, show, warnings_told
from soma.errors import SomaError

if TYPE_CHECKING:
    from soma.cache import Store

_FOUND = 1  # the exit code of `verify` that found damage, and of `why` that found nothing

_HERE = ("place", "entries", "states", "outputs", "blobs", "bytes", "pinned")


def _bytes(ctx: click.Context, param: click.Parameter, value: str) -> int:
    """Return the bytes of a size, or refuse what is none."""
    from soma.cache import parse_size

    try:
        return parse_size(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.group()
def cache() -> None:
    """Look after the stored states and outputs of all graphs."""


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all commands of the cache take."""
    place = click.option("--cache", "place", metavar="DIR", help="A folder or bucket; by default, "
                         "$SOMA_CACHE_DIR or this platform's own.")  # fmt: skip
    return form_options(place(command))


@cache.command()
@_options
def stats(place: str | None, form: Form) -> None:
    """Print how much is stored."""
    from soma.cache import stats

    with _store(place) as store:
        found = asdict(stats(store))
    here = {name: found[name] for name in _HERE}
    show(form, here, amounts(form, here))


@cache.command()
@click.option("--max-size", metavar="SIZE", callback=_bytes, required=True,
              help="Bytes to leave, such as 20G.")  # fmt: skip
@_options
def gc(max_size: int, place: str | None, form: Form) -> None:
    """Remove what was not used for longest."""
    from soma.cache import gc

    with _store(place) as store:
        found = gc(store, max_size)
    done = {
        "removed_files": found.removed,
        "removed_bytes": found.freed,
        "left_bytes": found.left,
    }
    show(form, done, amounts(form, done))


@cache.command()
@_options
def verify(place: str | None, form: Form) -> None:
    """Read every file and list the damaged ones.

    Exits with 1 if there are any.
    """
    from soma.cache import verify

    with _store(place) as store:
        damages = verify(store)
    rows: list[Row] = [(one.entry.kind, one.entry.name, one.reason) for one in damages]
    names = ("kind", "name", "reason")
    data = {"damaged": [dict(zip(names, row, strict=True)) for row in rows]}
    show(form, data, rows, names=names, otherwise="nothing is damaged")
    if damages:
        raise SystemExit(_FOUND)


@cache.command()
@click.argument("key")
@_options
def pin(key: str, place: str | None, form: Form) -> None:
    """Keep the entry KEY, whatever the cap says.

    `soma cache why NODE --json` tells keys.
    """
    from soma.cache import pin

    with _store(place) as store:
        pin(store, key)
        if not store.writable:
            raise Refused(f"the cache at {store.place} cannot be written.")
    show(form, {"pinned": key}, [("pinned", key)])


@cache.command()
@click.argument("key")
@_options
def unpin(key: str, place: str | None, form: Form) -> None:
    """Let the cap decide about the entry KEY again."""
    from soma.cache import unpin

    with _store(place) as store:
        unpin(store, key)
    show(form, {"unpinned": key}, [("unpinned", key)])


@cache.command()
@click.argument("node")
@_options
def why(node: str, place: str | None, form: Form) -> None:
    """Say why NODE ran when it last stored something.

    Exits with 1 if nothing is known.
    """
    from soma.cache import last_record

    with _store(place) as store:
        record = last_record(store, node)
    reason = None if record is None else record.facts.get("why")
    key = None if record is None else record.key
    otherwise = f"nothing is stored of a node `{node}`, or it is gone"
    rows: list[Row] = [] if reason is None else [(str(reason),)]
    show(form, {"node": node, "why": reason, "key": key}, rows, otherwise=otherwise)
    if reason is None:
        raise SystemExit(_FOUND)


@contextmanager
def _store(place: str | None) -> "Iterator[Store]":
    """Open a store for a command; what keeps it from working becomes one line."""
    from soma.cache import DEFAULT, FileStore, open_store

    with warnings_told() as caught:
        try:
            store = open_store(DEFAULT if place is None else place)
            assert store is not None
            if isinstance(store, FileStore):
                _check_folder(store.root, missing=place is None)
                if not store.readable:  # and it has told why
                    raise Refused(caught.pop().message)
            yield store
        except (LookupError, OSError, SomaError, ValueError) as error:
            raise Refused(error) from None


def _check_folder(root: str, *, missing: bool) -> None:
    """Refuse a folder that cannot be listed, and one that is not there unless it may be."""
    from os import scandir

    try:
        scandir(root).close()
    except FileNotFoundError:
        if not missing:
            raise Refused(f"there is no cache at {root}.") from None
    except OSError as error:
        raise Refused(f"no cache can be opened at {root}: {error.strerror}.") from None
