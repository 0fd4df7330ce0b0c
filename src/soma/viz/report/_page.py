"""A report of one run."""

from soma.health import HealthRecord
from soma.tracking import RunRecord
from soma.viz.report._data import report_data
from soma.viz.report._facts import facts_of
from soma.viz.report._head import head
from soma.viz.report._sheet import refuse_both, sheet
from soma.viz.report.sections import CHARTS, SECTIONS


def report_html(
    record: RunRecord, health: HealthRecord, *, plotly: bool = False, static: bool = False
) -> str:
    """Return a run as one page of HTML.

    Args:
        health: of the same run.
        plotly: put the installed Plotly into the page, and draw its figures with it.
        static: write no script; what opens and closes does so without one.

    Raises:
        InvalidInput: `plotly` and `static` exclude each other.
        MissingExtra: Plotly is not installed.
    """
    refuse_both(plotly=plotly, static=static)
    facts = facts_of(record, health)
    sections = [part for part in (make(facts) for make in SECTIONS) if part is not None]
    left_out = [sentence for part in sections for sentence in part.left_out]
    return sheet(
        facts.manifest.name,
        head=head(facts),
        sections=sections,
        left_out=left_out,
        data=report_data(facts, left_out),
        charts={key: chart for make in CHARTS for key, chart in make(facts).items()},
        made_at=facts.made_at,
        ids=[facts.id],
        plotly=plotly,
        static=static,
    )
