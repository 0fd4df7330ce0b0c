"""`audit.report()`: a verdict to read, to print, to show and to put into a table."""

import html
from collections.abc import Iterator
from typing import Any

from soma._extras import loaded, require
from soma.core import Diagnostic
from soma.errors import MissingExtra
from soma.health._finding import FilterReport, Finding, Verdict
from soma.health._rollup import rollup
from soma.health._stories import clean, faults, stories, summary

_MOST = 200  # rows that a notebook shows
_SHOWN = ("out_grad_norm", "update_ratio", "act_std")


class AuditReport:
    """The verdict of an audit.

    `print(report)` reads like a compiler's messages, worst first; a notebook shows them above a
    table of the modules.
    """

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    @property
    def filters(self) -> tuple[FilterReport, ...]:
        """A row for each audited module, in the order of the first call."""
        return self.verdict.filters

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong, worst first, each cause before what it brings about."""
        return self.verdict.findings

    @property
    def n_steps(self) -> int:
        """The optimizer steps that were seen."""
        return self.verdict.n_steps

    def by_id(self) -> dict[str, FilterReport]:
        """Return the rows by the id of their module."""
        return {row.filter_id: row for row in self.filters}

    def is_healthy(self) -> bool:
        """Is no fault known, and was something of each node measured?"""
        nodes: dict[str, bool] = {}
        for row in self.filters:
            if faults(row):
                return False
            node = self.verdict.facts["places"][row.filter_id][2]
            nodes[node] = nodes.get(node, False) or (bool(row.metrics) and not row.flags)
        return bool(nodes) and all(nodes.values())

    def rollup(self) -> list[dict[str, Any]]:
        """Return the flags of each node, with where inside it they stand."""
        return rollup(self.verdict)

    def stories(self) -> tuple[Diagnostic, ...]:
        """Return the findings as diagnostics, one a story, worst first, each with its level."""
        return tuple(stories(self.verdict))

    def pretty(self) -> str:
        """Return the findings as text of at most 100 columns, whatever the names hold."""
        notes = [f"note: {clean(one)}" for one in self.verdict.facts.get("notes", ())]
        return "\n\n".join([*map(str, self.stories()), "\n".join([*notes, summary(self.verdict)])])

    def __str__(self) -> str:
        return self.pretty()

    def __repr__(self) -> str:
        return f"<AuditReport: {summary(self.verdict)}>"

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat mapping for each module: id, flags, status, steps and all metrics."""
        return [
            {
                "filter_id": row.filter_id,
                "flags": ", ".join(row.flags),
                "status": row.status,
                "n_steps": row.n_steps,
                **row.metrics,
            }
            for row in self.filters
        ]

    def dataframe(self) -> Any:
        """Return the rows as a pandas frame, or a polars one where only polars is.

        Raises:
            MissingExtra: neither is installed.
        """
        rows = self.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [row.get(name) for row in rows] for name in names}
        if loaded("polars") is not None and loaded("pandas") is None:
            return require("polars", extra="frames").DataFrame(columns)
        try:
            return require("pandas", extra="frames").DataFrame(columns)
        except MissingExtra:
            return require("polars", extra="frames").DataFrame(columns)

    def _repr_html_(self) -> str:
        return "".join(self._html())

    def _html(self) -> Iterator[str]:
        yield f"<div><pre>{html.escape(self.pretty())}</pre>"
        yield "<table><thead><tr><th>module</th><th>flags</th><th>status</th><th>steps</th>"
        yield "".join(f"<th>{_safe(name)}</th>" for name in _SHOWN)
        yield "</tr></thead><tbody>"
        for row in self.filters[:_MOST]:
            why = " ".join(one.why for one in row.findings)
            numbers = (row.metrics.get(name) for name in _SHOWN)
            yield f'<tr title="{_safe(why)}"><td>{_safe(row.filter_id)}</td>'
            yield f"<td>{_safe(', '.join(row.flags))}</td><td>{_safe(row.status)}</td>"
            yield f"<td>{row.n_steps}</td>"
            yield "".join(f"<td>{'' if one is None else f'{one:.3g}'}</td>" for one in numbers)
            yield "</tr>"
        yield "</tbody></table>"
        if len(self.filters) > _MOST:
            yield f"<p>{len(self.filters) - _MOST} more modules are in `filters`.</p>"
        yield "</div>"


def _safe(text: object) -> str:
    """Return text that is text in HTML, too."""
    return html.escape(clean(text), quote=True)
