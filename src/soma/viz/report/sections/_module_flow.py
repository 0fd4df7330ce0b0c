"""How signal and gradient get through the modules of each audited node."""

from soma.draw import counted
from soma.viz._chart import Chart
from soma.viz.figures import module_flow_chart, module_flow_info
from soma.viz.report._facts import Facts
from soma.viz.report._fill import ONE, WIDTHS, figure, fill
from soma.viz.report._section import Section

_MOST = 12  # nodes
_LANES = 60  # modules; of more, the figure is drawn once, and a narrow page scrolls


def module_flow_section(facts: Facts) -> Section | None:
    """Return a figure for each node that was audited inside; None where none was."""
    nodes = _nodes(facts)
    if not nodes:
        return None
    charts = module_flow_charts(facts)
    shown = [
        figure(key, chart, widths=WIDTHS if len(chart.panels[0].y.categories) <= _LANES else ONE)
        for key, chart in charts.items()
        if chart.panels
    ]
    left = f"The module flow of {_MOST} of {len(nodes):,} nodes is drawn."
    return Section(
        key="flow",
        title="Module flow",
        count=counted(len(nodes), "node"),
        body=fill("module_flow.jinja", figures=shown),
        left_out=(left,) if len(nodes) > _MOST else (),
    )


def module_flow_charts(facts: Facts) -> dict[str, Chart]:
    """Return the charts of the nodes that are drawn, each by the key of its figure."""
    if facts.measured is None or facts.verdict is None:
        return {}
    infos = [
        module_flow_info(facts.manifest.name, facts.measured, facts.verdict, node)
        for node in _nodes(facts)[:_MOST]
    ]
    return {f"flow-{at}": module_flow_chart(info) for at, info in enumerate(infos)}


def _nodes(facts: Facts) -> list[str]:
    """Return the nodes of which more was audited than their own output."""
    units = [] if facts.measured is None else facts.measured.units.values()
    return list(dict.fromkeys(one.node for one in units if one.path and one.order >= 0))
