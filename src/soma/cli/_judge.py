"""`soma judge RUN`: what is wrong with what a run trained, from its record alone."""

from collections.abc import Callable

import click

from soma.cli._places import root_option, run_folder
from soma.cli._show import Form, Refused, Row, form_options, show

_FOUND = 1  # the exit code where something is wrong


def threshold_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option that moves the lines of the rules."""
    return click.option(
        "--threshold", "given", multiple=True, metavar="NAME=VALUE",
        help="Judge by another line than the audit did; may be repeated.",
    )(command)  # fmt: skip


@click.command()
@click.argument("run")
@click.option(
    "--audit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Which audit of the run, 1 is the first; by default the last.",
)
@threshold_option
@root_option
@form_options
def judge(run: str, audit: int | None, given: tuple[str, ...], root: str, form: Form) -> None:
    """Say what does not learn in RUN, worst first.

    What was measured is judged again, without torch; `soma explain FLAG` says more of a flag.
    Exits with 1 if something is wrong, or if of some node nothing was measured. RUN is an id,
    the beginning of one, `last`, or the path of a run directory.
    """
    from soma.errors import SomaError
    from soma.tracking import numbers_out
    from soma.viz import RunView, verdict_data

    view = RunView(run_folder(run, root), audit=audit)
    try:
        report = view.verdict(thresholds(given))
    except SomaError as error:
        raise Refused(error) from None
    if form is None:
        if audit is None and view.audits > 1:
            told = f"note: this is the last of {view.audits} audits; `--audit 1` shows the first"
            click.echo(told, err=True)
        click.echo(report.pretty())
    else:
        rows: list[Row] = [
            (one.unit, one.flag, str(one.since), one.certainty, one.why) for one in report.findings
        ]
        data = numbers_out({"run": view.id, **verdict_data(report)})
        show(form, data, rows, otherwise="no findings")
    if not report.is_healthy():
        raise SystemExit(_FOUND)


def thresholds(given: tuple[str, ...]) -> dict[str, float] | None:
    """Return the thresholds that were typed, or refuse; None where there are none."""
    found = {}
    for one in given:
        name, sign, value = one.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            wanted = "NAME=VALUE, as leakage=0.9," if not sign else "a number behind the `=`"
            raise Refused(f"--threshold {one}: {wanted} is wanted.") from None
    return found or None
