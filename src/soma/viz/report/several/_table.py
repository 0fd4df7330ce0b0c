"""The table of the runs: what each was started with, how it stands, how far it came."""

from collections.abc import Iterator
from math import isfinite
from typing import Any, NamedTuple

from soma.draw import shortened
from soma.health import Finding
from soma.viz._durations import duration
from soma.viz.report._fill import fill
from soma.viz.report._head import told
from soma.viz.report._section import Section
from soma.viz.report.several._facts import RunsFacts
from soma.viz.report.several._one import Health, OneRun, Word

MOST_PARAMS = 12  # columns
_MOST_METRICS = 6
_MOST_VALUE = 48  # columns of a text in a cell
_MOST_FINDING = 64
LOOKS: dict[Word, tuple[str, str]] = {  # from best to worst: sign and ink
    "healthy": ("✓", "good"),
    "not observed": ("○", "muted"),
    "suspect": ("▲", "warning"),
    "sick": ("✕", "bad"),
    "no audit": ("", "muted"),
}


class Column(NamedTuple):
    """The head of a column."""

    title: str
    below: str = ""  # which number of a metric
    words: bool = False


class Cell(NamedTuple):
    """One cell: what is read, and what it is sorted by; None: by the text; "" stands last."""

    text: str
    value: float | str | None = ""
    best: bool = False


class Row(NamedTuple):
    """One run."""

    run: OneRun
    cells: list[Cell]
    sign: str
    ink: str
    health: Cell
    finding: str  # the worst
    took: Cell


def table_section(facts: RunsFacts) -> Section:
    """Return the table."""
    params, metrics = facts.varying[:MOST_PARAMS], facts.shared[:_MOST_METRICS]
    columns = [Column(name, words=True) for name in params]
    columns += [Column(name, below) for name in metrics for below in _numbers_of(facts, name)]
    left_out = []
    if len(params) < len(facts.varying):
        left_out.append(
            f"{len(params)} of {len(facts.varying):,} params that differ are in the table; "
            "the data holds all."
        )
    if len(metrics) < len(facts.shared):
        left_out.append(f"{len(metrics)} of {len(facts.shared):,} metrics are in the table.")
    return Section(
        key="runs",
        title="Runs",
        count=f"{len(facts.runs):,}",
        body=fill(
            "several_table.jinja",
            columns=columns,
            rows=[_row(run, facts, params, metrics) for run in facts.runs],
            said=_said(facts),
        ),
        left_out=tuple(left_out),
    )


def finding_line(one: Finding) -> str:
    """Return a finding in a line."""
    return f"{one.flag} at {one.unit}, {one.certainty}, since step {one.since}: {one.why}"


def _said(facts: RunsFacts) -> str:
    if facts.goal is None:
        return "What is shared by the runs is at the head of the page; here is what differs."
    return (
        f"Best first: by the {facts.goal.better} {facts.goal.metric} that each run has logged. "
        "Runs without one stand last."
    )


def _numbers_of(facts: RunsFacts, metric: str) -> tuple[str, ...]:
    return ("best", "last") if metric in facts.better else ("last", "least", "greatest")


def _row(run: OneRun, facts: RunsFacts, params: tuple[str, ...], metrics: tuple[str, ...]) -> Row:
    sign, ink = LOOKS[run.health.word]
    worst, rank = _worst(run.health), "" if run.health.word == "no audit" else _rank(run.health)
    return Row(
        run=run,
        cells=[
            *(_param(run.manifest.params, name) for name in params),
            *(cell for name in metrics for cell in _metric(run, facts, name)),
        ],
        sign=sign,
        ink=ink,
        health=Cell(run.health.word, rank),
        finding=worst,
        took=Cell("" if run.seconds is None else duration(run.seconds), run.seconds or ""),
    )


def _rank(health: Health) -> float | str:
    return float([*LOOKS].index(health.word)) + min(health.found, 999) / 1000


def _worst(health: Health) -> str:
    if not health.faults:
        return ""
    first, more = health.faults[0], health.found - 1
    at = shortened(f"{first.flag} at {first.unit}", _MOST_FINDING)
    return f"{at} and {more} more" if more else at


def _param(params: dict[str, Any], name: str) -> Cell:
    if name not in params:
        return Cell("")
    value = params[name]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Cell(f"{value:.5g}" if isinstance(value, float) else f"{value}", _sortable(value))
    text = shortened(told(value), _MOST_VALUE)
    return Cell(text, None)


def _metric(run: OneRun, facts: RunsFacts, name: str) -> Iterator[Cell]:
    numbers = run.numbers(name)
    for below in _numbers_of(facts, name):
        value = None
        if numbers is not None:
            value = facts.best(run, name) if below == "best" else getattr(numbers, below)
        is_best = below == "best" and value is not None and value == _best_of_all(facts, name)
        yield Cell("" if value is None else f"{value:.5g}", _sortable(value), is_best)


def _best_of_all(facts: RunsFacts, name: str) -> float | None:
    values = [value for run in facts.runs if (value := facts.best(run, name)) is not None]
    chosen = min if facts.better[name] == "least" else max
    return chosen(values, default=None)


def _sortable(value: float | None) -> float | str:
    """Return what the page's script compares; a number that is not finite stands last."""
    return value if value is not None and isfinite(value) else ""
