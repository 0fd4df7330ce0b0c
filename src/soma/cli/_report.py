"""`soma report RUN...`: a run, or several beside each other, as one HTML file."""

import webbrowser
from pathlib import Path

import click

from soma.cli._places import root_option, run_folder, write
from soma.cli._show import Refused

_SEVERAL = "runs.html"


@click.command()
@click.argument("names", nargs=-1, metavar="RUN...")
@click.option("--tag", help="All runs with this tag, such as the name of a study.")
@click.option("-o", "--output", metavar="FILE",
              help=f"By default the run's id, with `.html`; of several {_SEVERAL}.")  # fmt: skip
@click.option("--plotly", is_flag=True, help="Put Plotly into the file: figures that zoom, 2 MB.")
@click.option("--static", is_flag=True, help="Write no script at all.")
@click.option("--inline", is_flag=True, help="Changes nothing: the file always holds all it needs.")
@click.option("--open", "show", is_flag=True, help="Open the file in a browser.")
@root_option
def report(
    names: tuple[str, ...],
    tag: str | None,
    output: str | None,
    plotly: bool,
    static: bool,
    inline: bool,
    show: bool,
    root: str,
) -> None:
    """Write RUN as one HTML file that asks nothing of the network.

    Several runs come beside each other: a table to sort, curves over each other, and what became of
    each. RUN is an id, the beginning of one, a name, `last`, or the path of a directory. The file
    comes into the current folder and replaces an earlier one of its name.
    """
    from soma.errors import SomaError
    from soma.viz import RunList, RunView, runs

    if bool(names) == (tag is not None):
        raise Refused("type one RUN or several, or --tag for all runs that have it.")
    views = list(dict.fromkeys(run_folder(name, root) for name in names))
    several = runs(root).tagged(tag) if tag is not None else RunList(map(RunView, views))
    if not several:
        raise Refused(f"no run below {root} has the tag {tag}; `soma runs --json` lists tags.")
    only = several[0] if len(several) == 1 and tag is None else None
    target = output or (_SEVERAL if only is None else f"{only.id}.html")
    try:
        page = (only or several).to_html(plotly=plotly, static=static)
    except SomaError as error:
        raise Refused(error) from None
    write(target, page)
    if show:
        webbrowser.open(Path(target).absolute().as_uri())
