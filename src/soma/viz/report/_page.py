"""Puts the parts of a report together into one page that asks nobody for anything."""

from secrets import token_urlsafe

from soma._extras import DIST
from soma.errors import InvalidInput
from soma.health import HealthRecord
from soma.tracking import RunRecord
from soma.viz._when import moment
from soma.viz.report._data import inert_json, report_data
from soma.viz.report._facts import facts_of
from soma.viz.report._fill import fill
from soma.viz.report._head import head
from soma.viz.report._plotly import figures_json, packed_plotly
from soma.viz.report.sections import CHARTS, SECTIONS

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'"


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
    if plotly and static:
        raise InvalidInput("`plotly` and `static` came together; Plotly is a script: leave one.")
    facts = facts_of(record, health)
    sections = [part for part in (make(facts) for make in SECTIONS) if part is not None]
    left_out = [sentence for part in sections for sentence in part.left_out]
    drawn = [drawing for make in CHARTS for drawing in make(facts).items()]
    charts = {key: chart for key, chart in drawn if chart.panels}
    nonce = token_urlsafe(16)
    return fill(
        "page.jinja",
        title=f"{facts.manifest.name} · soma report",
        policy=_POLICY if static else f"{_POLICY}; script-src 'nonce-{nonce}'",
        nonce=nonce,
        static=static,
        head=head(facts),
        sections=sections,
        left_out=left_out,
        data=inert_json(report_data(facts, left_out)),
        plotly=packed_plotly() if plotly and charts else "",
        figures=figures_json(charts) if plotly else "",
        dist=DIST,
        made=moment(facts.made_at),
        id=facts.id,
    )
