"""What ran when."""

from soma.draw import counted
from soma.viz._chart import Chart
from soma.viz.figures import gantt_chart
from soma.viz.report._facts import Facts
from soma.viz.report._fill import ONE, WIDTHS, figure
from soma.viz.report._section import Section

_FEW = 400  # bars; more are drawn once, and a narrow page scrolls


def timeline_section(facts: Facts) -> Section | None:
    """Return a lane for each node; None where no node ran."""
    bars, turns = len(facts.gantt.bars), facts.gantt.turns
    if not bars:
        return None
    joined = f"The timeline draws {turns:,} turns as {bars:,}: close ones are one bar."
    return Section(
        key="timeline",
        title="Timeline",
        count=counted(turns, "turn"),
        body=figure("timeline", timeline(facts), widths=WIDTHS if bars <= _FEW else ONE),
        left_out=(joined,) if bars < turns else (),
    )


def timeline_charts(facts: Facts) -> dict[str, Chart]:
    """Return what Plotly draws of it."""
    return {"timeline": timeline(facts)}


def timeline(facts: Facts) -> Chart:
    """Return the chart of the turns."""
    return gantt_chart(facts.gantt)
