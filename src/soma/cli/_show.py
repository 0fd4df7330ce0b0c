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

from soma.draw import one_line, printable

Form = Literal["json", "plain"] | None
Row = tuple[str, ...]


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
    otherwise: str = "",
) -> None:
    """Print an answer.

    Args:
        form: None draws a table at a terminal, and prints plain lines into a pipe.
        data: the answer, printed as JSON.
        rows: the same answer as lines, or as the rows of a table.
        names: the titles of the table's columns.
        otherwise: what is printed when there are no rows.
    """
    if form == "json":
        click.echo(json.dumps(data, indent=2))
        return
    clean = [tuple(map(printable, row)) for row in rows] or [(printable(otherwise),)]
    if form is None and sys.stdout.isatty() and len(clean[0]) > 1:
        _draw(clean, names)
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


def _draw(rows: Sequence[Row], names: Row) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=bool(names))
    for name in names:
        table.add_column(name, no_wrap=name == "id")  # whole, for the next command
    if not names:
        for style in ("bold", ""):
            table.add_column(style=style)
    for row in rows:
        table.add_row(*map(Text, row))
    plain = bool(os.environ.get("NO_COLOR"))  # rich alone would still print bold
    Console(color_system=None if plain else "auto").print(table)
