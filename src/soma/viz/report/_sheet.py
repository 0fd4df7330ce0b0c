"""Puts the parts of a report together into one page that asks nobody for anything."""

from collections.abc import Mapping, Sequence
from secrets import token_urlsafe
from typing import Any

from markupsafe import Markup

from soma._extras import DIST
from soma.errors import InvalidInput
from soma.viz._chart import Chart
from soma.viz._when import moment
from soma.viz.report._data import inert_json
from soma.viz.report._fill import fill
from soma.viz.report._plotly import figures_json, packed_plotly
from soma.viz.report._section import Section

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'"


def refuse_both(*, plotly: bool, static: bool) -> None:
    """Refuse what excludes each other, before anything is read.

    Raises:
        InvalidInput: both came.
    """
    if plotly and static:
        raise InvalidInput("`plotly` and `static` came together; Plotly is a script: leave one.")


def sheet(
    title: str,
    *,
    head: Markup,
    sections: Sequence[Section],
    left_out: Sequence[str],
    data: Mapping[str, Any],
    charts: Mapping[str, Chart],
    made_at: float,
    ids: Sequence[str],
    plotly: bool,
    static: bool,
) -> str:
    """Return the page.

    Args:
        left_out: sentences for the foot.
        data: what a program reads out of it.
        charts: those that Plotly draws, by the key of the figure that each replaces.
        made_at: seconds since 1970.
        ids: of the runs that it tells of.

    Raises:
        MissingExtra: Plotly is not installed.
    """
    filled = {key: chart for key, chart in charts.items() if chart.panels}
    nonce = token_urlsafe(16)
    return fill(
        "page.jinja",
        title=f"{title} · soma report",
        policy=_POLICY if static else f"{_POLICY}; script-src 'nonce-{nonce}'",
        nonce=nonce,
        static=static,
        head=head,
        sections=sections,
        left_out=left_out,
        data=inert_json(data),
        plotly=packed_plotly() if plotly and filled else "",
        figures=figures_json(filled) if plotly else "",
        dist=DIST,
        made=moment(made_at),
        ids=ids,
    )
