"""The command `soma`."""

import io
import sys

import click

from soma import __version__
from soma._extras import DIST
from soma.cli._cache import cache
from soma.cli._compare import compare
from soma.cli._explain import explain
from soma.cli._export import export
from soma.cli._judge import judge
from soma.cli._report import report
from soma.cli._runs import check, graph, runs
from soma.cli._worker import worker


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Read next: README.md, and `make demo` in a checkout.",
)
@click.version_option(__version__, "-V", "--version", package_name=DIST, prog_name="soma")
def main() -> None:
    """Compose preprocessing and PyTorch modules into one graph; fit it, cache it, train it."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Into a pipe Windows writes its old code pages, which lack most signs of a drawing.
        sys.stdout.reconfigure(errors="backslashreplace")


main.add_command(cache)
main.add_command(explain)
main.add_command(runs)
main.add_command(graph)
main.add_command(report)
main.add_command(judge)
main.add_command(compare)
main.add_command(check)
main.add_command(worker)
main.add_command(export)
