"""The metrics of all runs over each other: a figure for each, one colour for a run in all."""

from soma.draw import counted
from soma.viz._chart import Axis, Chart, Panel, Series
from soma.viz.figures import logarithmic
from soma.viz.report._fill import figure, fill
from soma.viz.report._section import Section
from soma.viz.report.several._facts import INKS, MOST_METRICS, RunsFacts

HALVES = {"wide": 590.0, "narrow": 356.0}  # pixels: two figures side by side, or one
_THIN = 0.8


def curves_section(facts: RunsFacts) -> Section | None:
    """Return the figures; None where nothing was logged in two runs."""
    if not facts.shared:
        return None
    charts = curves_charts(facts)
    return Section(
        key="metrics",
        title="Metrics",
        count=counted(len(facts.shared), "metric"),
        body=fill(
            "several_figures.jinja",
            said=_said(facts),
            thirds=False,
            figures=[figure(key, chart, widths=HALVES) for key, chart in charts.items()],
        ),
        left_out=tuple(_left_out(facts)),
    )


def curves_charts(facts: RunsFacts) -> dict[str, Chart]:
    """Return the charts, each by the key of its figure."""
    return {
        f"metric-{at}": _chart(name, facts) for at, name in enumerate(facts.shared[:MOST_METRICS])
    }


def _said(facts: RunsFacts) -> str:
    """Say which runs have a colour, and why those."""
    count, drawn = len(facts.runs), len(facts.drawn)
    if count <= len(INKS):
        return "Each run has one colour in all figures."
    which = f"The first {len(INKS)} of {count:,} runs in the table are in colour"
    if facts.goal is not None:
        which = (
            f"The {len(INKS)} best of {count:,} runs by {facts.goal.metric} "
            f"({facts.goal.better} first) are in colour"
        )
    others = drawn - len(INKS)
    return f"{which}, the same in all figures; {counted(others, 'other')} in grey."


def _chart(metric: str, facts: RunsFacts) -> Chart:
    runs = [run for run in facts.drawn if metric in run.curves]
    runs.sort(key=lambda run: run.ink != "line")  # what is drawn later lies above
    curves = [run.curves[metric] for run in runs]
    log = logarithmic(value for curve in curves for value in curve.values)
    whole = all(step.is_integer() for curve in curves for step in curve.steps)
    series = tuple(
        Series(
            name=run.label,
            x=curve.steps,
            y=curve.values,
            ink=run.ink,
            dashed=run.ink in INKS[1::2],
            thickness=_THIN if run.ink == "line" else 1.8,
            key=run.ink != "line",
        )
        for run, curve in zip(runs, curves, strict=True)
    )
    panel = Panel(
        title="",
        x=Axis(title="step", kind="integer" if whole else "linear"),
        y=Axis(kind="log" if log else "linear"),
        series=series,
        note=_remark(metric, facts),
    )
    return Chart(title=f"{metric}, log scale" if log else metric, panels=(panel,), columns=1)


def _remark(metric: str, facts: RunsFacts) -> str:
    odd = [run for run in facts.drawn if metric in run.curves and run.curves[metric].odd]
    return f"{counted(len(odd), 'run')} logged values that are not finite." if odd else ""


def _left_out(facts: RunsFacts) -> list[str]:
    found = []
    names = facts.shared[:MOST_METRICS]
    curves = [run.curves[name] for run in facts.drawn for name in names if name in run.curves]
    thinned = [curve for curve in curves if len(curve.steps) < curve.logged]
    if thinned:
        most = max(len(curve.steps) for curve in thinned)
        found.append(
            f"{len(thinned):,} of {len(curves):,} curves are thinned, to {most:,} points each at "
            "most: the least and the greatest of each stretch."
        )
    if len(names) < len(facts.shared):
        found.append(f"{len(names)} of {len(facts.shared):,} figures of metrics are drawn.")
    return found
