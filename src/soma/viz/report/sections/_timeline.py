"""What ran when."""

from soma.viz._chart import Chart
from soma.viz._figure import Figure
from soma.viz.figures import gantt_chart
from soma.viz.report._facts import Facts
from soma.viz.report._fill import fill, picture
from soma.viz.report._section import Section

_WIDTHS = {"wide": 1196.0, "middle": 720.0, "narrow": 356.0}  # the page shows the one that fits
_FEW = 400  # bars; more are drawn once, and a narrow page scrolls


def timeline_section(facts: Facts) -> Section | None:
    """Return a lane for each node; None where no node ran."""
    bars, turns = len(facts.gantt.bars), facts.gantt.turns
    if not bars:
        return None
    figure = Figure(timeline(facts))
    joined = f"The timeline draws {turns:,} turns as {bars:,}: close ones are one bar."
    return Section(
        key="timeline",
        title="Timeline",
        count="1 turn" if turns == 1 else f"{turns:,} turns",
        body=fill(
            "timeline.jinja",
            drawings={
                name: picture(figure.to_svg(width=width))
                for name, width in _WIDTHS.items()
                if name == "wide" or bars <= _FEW
            },
        ),
        left_out=(joined,) if bars < turns else (),
    )


def timeline(facts: Facts) -> Chart:
    """Return the chart of the turns."""
    return gantt_chart(facts.gantt)
