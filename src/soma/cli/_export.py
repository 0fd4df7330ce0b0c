"""`soma export RUN --to TOOL`: runs to other tools, from their directories alone."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import catch_warnings, simplefilter

import click

from soma.cli._places import root_option, run_folder
from soma.cli._show import Form, Refused, Row, form_options, show
from soma.draw import printable

if TYPE_CHECKING:
    from soma.tracking import Sink

_TOOLS = ("tensorboard", "mlflow", "wandb", "csv", "parquet")
_FAILED = 1  # the exit code where a run could not be exported
_NAMES = ("run", "points", "to")


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--to", "tool", type=click.Choice(_TOOLS), required=True, help="The tool.")
@click.option("--all", "every", is_flag=True, help="Export every run.")
@click.option("--out", metavar="DIR", help="Where files go; by default a folder named like the "
              "tool, for wandb `./wandb`.")  # fmt: skip
@click.option("--uri", metavar="URI", help="Where MLflow keeps runs, such as sqlite:///mlflow.db.")
@root_option
@form_options
def export(
    runs: tuple[str, ...],
    tool: str,
    every: bool,
    out: str | None,
    uri: str | None,
    root: str,
    form: Form,
) -> None:
    """Hand RUN, or several, to another tool, and say what went where.

    Exporting a run again replaces what was exported before, and adds nothing twice. A run that was
    killed goes as far as it got. Exits with 1 if a run could not be exported.
    """
    from soma.errors import SomaError
    from soma.integrations.sinks import export_run
    from soma.tracking import run_records

    if every == bool(runs):
        raise Refused("name the runs to export, or say --all; `soma runs` lists them.")
    if (uri and tool != "mlflow") or (out and tool == "mlflow"):
        raise Refused("--uri is for mlflow, and --out for the tools that write files.")
    folders = [run_folder(run, root) for run in runs] or [one.dir for one in run_records(root)]
    done = []
    failed = []
    with catch_warnings():
        simplefilter("ignore")  # what the tools say to their own developers
        try:
            sink = _sink(tool, out, uri)
        except SomaError as error:
            raise Refused(error) from None
        for folder in folders:
            try:
                points = export_run(folder, sink)
            except Exception as error:  # each tool has errors of its own
                failed.append({"run": folder.name, "error": f"{type(error).__name__}: {error}"})
            else:
                done.append({"run": folder.name, "points": points, "to": sink.where})
    rows: list[Row] = [(str(one["run"]), str(one["points"]), str(one["to"])) for one in done]
    otherwise = "nothing was exported" if failed else f"no runs below {root}"
    show(form, {"exported": done, "failed": failed}, rows, names=_NAMES, otherwise=otherwise)
    for one in failed:
        click.echo(f"Error: {printable(one['run'])}: {printable(one['error'])}", err=True)
    if failed:
        raise SystemExit(_FAILED)


def _sink(tool: str, out: str | None, uri: str | None) -> "Sink":
    from soma.integrations import sinks

    if tool == "mlflow":
        return sinks.MLflowSink(uri)
    makers: dict[str, Callable[[Path], Sink]] = {
        "tensorboard": sinks.TensorBoardSink,
        "wandb": sinks.WandbSink,
        "csv": sinks.CsvSink,
        "parquet": sinks.ParquetSink,
    }
    return makers[tool](Path(out or ("." if tool == "wandb" else tool)))
