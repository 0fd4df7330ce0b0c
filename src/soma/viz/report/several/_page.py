"""A report of several runs."""

from collections.abc import Sequence
from os import PathLike

from soma.viz.report._sheet import refuse_both, sheet
from soma.viz.report.several._curves import curves_charts, curves_section
from soma.viz.report.several._data import LONG, runs_data, runs_told
from soma.viz.report.several._ends import ends_section
from soma.viz.report.several._facts import runs_facts
from soma.viz.report.several._findings import findings_section
from soma.viz.report.several._head import head, title
from soma.viz.report.several._params import params_charts, params_section
from soma.viz.report.several._table import table_section

_SECTIONS = (table_section, curves_section, params_section, ends_section, findings_section)


def runs_html(
    folders: Sequence[str | PathLike[str]], *, plotly: bool = False, static: bool = False
) -> str:
    """Return the runs in some directories as one page of HTML, broken ones too.

    Args:
        folders: in the order of the page, where it is not known which run is better.
        plotly: put the installed Plotly into the page, and draw its figures with it.
        static: write no script; the table cannot be sorted then.

    Raises:
        InvalidInput: `plotly` and `static` exclude each other.
        MissingExtra: Plotly is not installed.
    """
    refuse_both(plotly=plotly, static=static)
    facts = runs_facts(folders)
    sections = [part for part in (make(facts) for make in _SECTIONS) if part is not None]
    told = [sentence for part in sections for sentence in part.left_out]
    runs = runs_told(facts)
    short = sum(not run.keys() & set(LONG) for run in runs)
    if short:
        told.append(f"The data of the last {short} runs is without what the table has of them.")
    left_out = [*facts.left_out, *told]
    return sheet(
        title(facts),
        head=head(facts),
        sections=sections,
        left_out=left_out,
        data=runs_data(facts, runs, left_out),
        charts=curves_charts(facts) | params_charts(facts),
        made_at=facts.made_at,
        ids=[run.id for run in facts.runs],
        plotly=plotly,
        static=static,
    )
