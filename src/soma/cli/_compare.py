"""`soma compare RUN_A RUN_B`: whose health got worse, and where."""

import click

from soma.cli._judge import threshold_option, thresholds
from soma.cli._places import root_option, run_folder
from soma.cli._show import Form, Refused, Row, form_options, show

_WORSE = 1  # the exit code where something is new or worse
_NAMES = ("", "module", "in RUN_A", "in RUN_B", "since step", "why")


@click.command()
@click.argument("run_a")
@click.argument("run_b")
@threshold_option
@root_option
@form_options
def compare(run_a: str, run_b: str, given: tuple[str, ...], root: str, form: Form) -> None:
    """Say what became in RUN_B of the findings of RUN_A.

    Each is new, worse, the same, better or gone, or `not seen` where RUN_B did not look at its
    module. Exits with 1 if a finding is new or worse. Both runs are judged by the same lines:
    those of `--threshold`, else those that RUN_B was audited with.
    """
    from soma.errors import SomaError
    from soma.viz import RunView, health_changes

    views = [RunView(run_folder(run, root)) for run in (run_a, run_b)]
    try:
        after = views[1].verdict(thresholds(given))
        before = views[0].verdict(after.verdict.thresholds)
    except SomaError as error:
        raise Refused(error) from None
    changes = health_changes(before, after)
    rows: list[Row] = [
        (one.kind, one.unit, one.before, one.after, str(one.since), one.why) for one in changes
    ]
    data = {
        "before": views[0].id,
        "after": views[1].id,
        "changes": [one._asdict() for one in changes],
    }
    spare = ("why",)  # `soma judge` tells it
    show(form, data, rows, names=_NAMES, spare=spare, otherwise="no findings in either run")
    if any(one.kind in ("new", "worse") for one in changes):
        raise SystemExit(_WORSE)
