"""How a command answers: as JSON, as plain lines, or as a table for a person at a terminal.

What every command shares is here too: the options that choose the form, and refusing.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal
from warnings import WarningMessage, catch_warnings, simplefilter

import click

from soma.draw import cells, one_line, printable

Form = Literal["json", "plain"] | None
Row = tuple[str, ...]

_WORD, _FOLDED, _FRAME = 12, 24, 3  # widths in a table: of a word, a folded text, what is around


class Refused(click.ClickException):
    """What was asked for cannot be done; the reason is printed on one line, with exit code 2."""

    exit_code = 2

    def __init__(self, reason: object) -> None:
        super().__init__(one_line(str(reason)))


def form_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--plain` and `--json`, which choose the `form` of an answer."""
    for option in (
        click.option("--plain", "form", flag_value="plain", help="Print lines without a frame."),
        click.option("--json", "form", flag_value="json", help="Print JSON."),
    ):
        command = option(command)
    return command


def show(
    form: Form,
    data: object,
    rows: Sequence[Row],
    *,
    names: Row = (),
    spare: Row = (),
    otherwise: str = "",
) -> None:
    """Print an answer.

    Args:
        form: None draws a table at a terminal, and prints plain lines into a pipe.
        data: the answer, printed as JSON.
        rows: the same answer as lines, or as the rows of a table.
        names: the titles of the table's columns.
        spare: columns that a narrow terminal goes without, the first one first.
        otherwise: what is printed when there are no rows.
    """
    if form == "json":
        click.echo(json.dumps(data, indent=2))
        return
    clean = [tuple(map(printable, row)) for row in rows] or [(printable(otherwise),)]
    if form is None and sys.stdout.isatty() and len(clean[0]) > 1:
        _draw(clean, names, spare)
    else:
        for row in clean:
            click.echo("\t".join(row))


def amounts(form: Form, data: Mapping[str, object]) -> list[Row]:
    """Return rows of a name and an amount; a person gets bytes in the units of `--max-size`."""
    return [
        (name, _size(value) if form is None and name.endswith("bytes") else str(value))
        for name, value in data.items()
    ]


def _size(value: object) -> str:
    size = float(str(value))
    units = iter(" KMGT")
    unit = next(units)
    while size >= 1000 and (larger := next(units, None)):
        size, unit = size / 1000, larger
    return f"{size:.0f}" if unit == " " else f"{size:.1f}{unit}"


@contextmanager
def warnings_told() -> Iterator[list[WarningMessage]]:
    """Print each warning as one line on stderr, without the place in the code."""
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        try:
            yield caught
        finally:
            for warning in caught:
                click.echo(f"Warning: {printable(str(warning.message))}", err=True)


def _draw(rows: Sequence[Row], names: Row, spare: Row) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    plain = bool(os.environ.get("NO_COLOR"))  # rich alone would still print bold
    console = Console(color_system=None if plain else "auto")
    longest = [max(map(cells, column)) for column in zip(*[names or rows[0], *rows], strict=True)]
    kept = _fitting(longest, names, spare, console.width)
    words = {at for at in kept if longest[at] <= _WORD}
    least = sum(longest[at] if at in words or names[at : at + 1] == ("id",) else 1 for at in kept)
    if least + _FRAME * len(kept) >= console.width:
        words = set()  # ids come first
    table = Table(show_header=bool(names))
    for at in kept:
        if names:  # an id whole, for the next command; a word whole, to be read
            whole = names[at] == "id" or at in words
            table.add_column(names[at], no_wrap=whole, overflow="fold")
        else:
            table.add_column(style="" if at else "bold", overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[at]) for at in kept))
    console.print(table)


def _fitting(longest: Sequence[int], names: Row, spare: Row, width: int) -> list[int]:
    """Return the columns to show; a long one may be folded to the width of an id."""
    kept = list(range(len(longest)))
    for name in spare:
        if sum(min(longest[at], _FOLDED) + _FRAME for at in kept) < width:
            break
        kept.remove(names.index(name))
    return kept
