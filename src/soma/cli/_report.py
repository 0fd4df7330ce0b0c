"""`soma report RUN`: a run as one HTML file."""

import webbrowser
from pathlib import Path

import click

from soma.cli._places import root_option, run_folder, write
from soma.cli._show import Refused


@click.command()
@click.argument("run")
@click.option("-o", "--output", metavar="FILE", help="By default the run's id, with `.html`.")
@click.option("--plotly", is_flag=True, help="Put Plotly into the file: figures that zoom, 2 MB.")
@click.option("--static", is_flag=True, help="Write no script at all.")
@click.option("--inline", is_flag=True, help="Changes nothing: the file always holds all it needs.")
@click.option("--open", "show", is_flag=True, help="Open the file in a browser.")
@root_option
def report(
    run: str, output: str | None, plotly: bool, static: bool, inline: bool, show: bool, root: str
) -> None:
    """Write RUN as one HTML file that asks nothing of the network.

    RUN is an id, the beginning of one, a name, `last`, or the path of a directory. The file comes
    into the current folder and replaces an earlier one of its name.
    """
    from soma.errors import SomaError
    from soma.viz import RunView

    view = RunView(run_folder(run, root))
    target = output or f"{view.id}.html"
    try:
        page = view.to_html(plotly=plotly, static=static)
    except SomaError as error:
        raise Refused(error) from None
    write(target, page)
    if show:
        webbrowser.open(Path(target).absolute().as_uri())
