"""How signal and gradient get through a node: a lane for each module in it, in order of calls."""

import math
from typing import NamedTuple

from soma.core import NodeId
from soma.draw import Ink
from soma.errors import NotRecorded, did_you_mean, listing
from soma.health import AuditReport, Measurements
from soma.viz._chart import Axis, Block, Blocks, Chart, Panel, Remark, Series
from soma.viz.figures._chosen import by_call, flags_of, innermost, ratio

MOST = 120  # lanes


class Stair(NamedTuple):
    """One module: what comes out of it, and what of the loss's gradient arrives there.

    Both are norms over those at the network's output; None: none was measured.
    """

    path: str
    class_name: str
    gradient: float | None
    signal: float | None
    flags: tuple[str, ...]


class ModuleFlowInfo(NamedTuple):
    """The modules inside of a node, in the order of their first calls."""

    run: str
    node: NodeId
    stairs: tuple[Stair, ...]
    modules: int  # that were audited
    vanishing: float  # the line


def module_flow_info(
    run: str, measured: Measurements, report: AuditReport, node: NodeId
) -> ModuleFlowInfo:
    """Return signal and gradient at each module of a node.

    Raises:
        NotRecorded: the node was not audited.
    """
    nodes = list(dict.fromkeys(one.node for one in measured.units.values()))
    if node not in nodes:
        raise NotRecorded(
            f"no node `{node}` was audited in the run `{run}`; there is {listing(nodes) or 'none'}."
            f"{did_you_mean(node, nodes)}"
        )
    mine = [one for one in by_call(measured) if one.node == node and one.order >= 0]
    units = [one for one in innermost(mine) if one.path] or mine
    steps = {one.step: one for one in measured.steps if one.whole}
    flags = flags_of(report)
    stairs = [
        Stair(
            path=unit.path or unit.id,
            class_name=unit.class_name,
            gradient=ratio(numbers.get("out_grad_norm"), steps, "output_grad_norm"),
            signal=ratio(numbers.get("act_norm"), steps, "output_norm"),
            flags=flags.get(unit.id, ()),
        )
        for unit in units
        if (numbers := measured.series.get(unit.id, {}))
    ]
    line = report.verdict.thresholds.vanishing
    return ModuleFlowInfo(run, node, tuple(stairs[:MOST]), len(stairs), line)


def module_flow_chart(info: ModuleFlowInfo) -> Chart:
    """Return the staircase of a node."""
    shown = f"The first {len(info.stairs)} of {info.modules} modules are drawn."
    return Chart(
        title=f"Module flow of {info.node}",
        note=shown if len(info.stairs) < info.modules else "",
        panels=(_panel(info),) if info.stairs else (),
        empty="nothing inside was measured",
    )


def _panel(info: ModuleFlowInfo) -> Panel:
    stairs = [*enumerate(info.stairs)]
    low = _low([*(one.gradient for one in info.stairs), *(one.signal for one in info.stairs)])
    meanings: list[tuple[str, Ink, bool]] = [
        ("gradient at its output", "series1", False),
        ("gradient at an output with a finding", "warning", True),
    ]
    groups = [
        Blocks(
            name=name,
            ink=ink,
            blocks=tuple(
                _block(lane, one, low)
                for lane, one in stairs
                if bool(one.flags) == flagged and one.gradient
            ),
        )
        for name, ink, flagged in meanings
    ]
    signals = [(lane, one.signal) for lane, one in stairs if one.signal]
    line = info.vanishing
    return Panel(
        title="",
        x=Axis(title="norm, times that at the network's output", kind="log", ends=(low, 1.0)),
        y=Axis(kind="category", categories=tuple(one.path for one in info.stairs)),
        blocks=tuple(group for group in groups if group.blocks),
        series=(
            Series(
                name="output itself",
                x=tuple(signal for _, signal in signals),
                y=tuple(float(lane) for lane, _ in signals),
                ink="series4",
                joined=False,
            ),
            Series(
                name=f"VANISHING is below {line:g}",
                x=(line, line),
                y=(-0.5, len(stairs) - 0.5),
                ink="bad",
                dashed=True,
            ),
        ),
        note="In the order of the calls; medians over the last half of the steps. The number is "
        "that of the gradient.",
        remarks=tuple(_remark(one) for one in info.stairs),
    )


def _block(lane: int, one: Stair, low: float) -> Block:
    return Block(
        lane=lane,
        start=low,
        end=one.gradient or low,
        tooltip=f"{one.path}: {one.class_name}\ngradient {_number(one.gradient)}, output "
        f"{_number(one.signal)} times that of the network\n{', '.join(one.flags)}",
    )


def _remark(one: Stair) -> Remark:
    number = _number(one.gradient)
    if not one.flags:
        return Remark(text=number)
    return Remark(text=f"{number} ▲ {', '.join(one.flags)}", ink="warning")


def _number(value: float | None) -> str:
    return "no gradient" if value is None else f"{value:.2g}"


def _low(values: list[float | None]) -> float:
    """Return where the axis begins: a power of ten that leaves the smallest bar a length."""
    least = min((value for value in values if value), default=1.0)
    return float(10.0 ** max(-300, math.floor(math.log10(least / 2))))
