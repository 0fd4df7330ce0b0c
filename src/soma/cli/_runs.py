"""`soma runs`, `soma graph RUN` and `soma check RUN`: what was run, and what was left of it."""

from collections.abc import Callable
from pathlib import Path

import click

from soma.cli._places import ROOT, root_option, run_folder, write
from soma.cli._show import Form, Refused, Row, form_options, show
from soma.errors import SomaError

_FOUND = 1  # the exit code of `check` that found something wrong
_FORMATS = ("text", "svg", "mermaid", "dot")
_SUFFIXES = {
    "": "text",
    ".txt": "text",
    ".svg": "svg",
    ".mmd": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
}

_NAMES = ("state", "name", "kind", "started", "took", "params", "id")


@click.command()
@root_option
@form_options
def runs(root: str, form: Form) -> None:
    """List the runs, the newest first."""
    from soma.files import is_folder
    from soma.tracking import run_records
    from soma.viz import run_row

    if not is_folder(root) and root != ROOT:
        raise Refused(f"there is no folder {root}.")
    records = run_records(root)
    rows: list[Row] = [run_row(record) for record in records]
    data = [
        {
            "id": record.id,
            "name": record.manifest.name,
            "kind": record.manifest.kind,
            "state": row[0],
            "tags": list(record.manifest.tags),
            "params": record.manifest.params,
            "created_at": record.manifest.created_at,
            "dir": str(record.dir),
        }
        for record, row in zip(records, rows, strict=True)
    ]
    spare = ("kind", "started")  # an id begins with the time
    show(form, data, rows, names=_NAMES, spare=spare, otherwise=f"no runs below {root}")


@click.command()
@click.argument("run")
@click.option("--node", metavar="NODE", help="Draw the inside of this node.")
@click.option("--format", "wanted", type=click.Choice(_FORMATS),
              help="By default that of FILE's suffix, else text.")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", help="Write to a file.")
@root_option
def graph(run: str, node: str | None, wanted: str | None, output: str | None, root: str) -> None:
    """Draw the graph of RUN with what happened to each node.

    RUN is an id, the beginning of one, a name, `last`, or the path of a directory.
    """
    from soma.viz import RunView

    view = RunView(run_folder(run, root))
    form = wanted or _SUFFIXES.get(Path(output or "").suffix.lower())
    if form is None:
        known = ", ".join(filter(None, _SUFFIXES))
        raise Refused(f"the suffix of {output} names no format; use one of {known}, or --format.")
    draw: Callable[[str | None], str] = {
        "text": view.to_text,
        "svg": view.to_svg,
        "mermaid": view.to_mermaid,
        "dot": view.to_graphviz,
    }[form]
    try:
        drawing = draw(node)
    except SomaError as error:
        raise Refused(error) from None
    if output is None:
        click.echo(drawing if form == "text" else drawing.encode())
    else:
        write(output, drawing)


@click.command()
@click.argument("run")
@root_option
@form_options
def check(run: str, root: str, form: Form) -> None:
    """Look for damage in the directory of RUN.

    It is listed, and the command exits with 1 if there is any.

    RUN is an id, the beginning of one, a name, `last`, or the path of a directory.
    """
    from soma.tracking import check_run

    folder = run_folder(run, root)
    problems = check_run(folder)
    rows: list[Row] = [(problem,) for problem in problems]
    show(form, {"run": folder.name, "problems": problems}, rows, otherwise="nothing is wrong")
    if problems:
        raise SystemExit(_FOUND)
