"""What the figures of health think, compared by equality, and that what they draw fits."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from soma import RunView
from soma.draw import Rectangle, Text, text_width
from soma.errors import NotRecorded
from soma.health import AuditReport, Measurements, Series, judge
from soma.viz import Chart, Figure
from soma.viz._chart_picture import chart_picture
from soma.viz.figures import (
    Flagged,
    audit_chart,
    audit_info,
    channel_evolution_chart,
    channel_evolution_info,
    channels_chart,
    channels_info,
    health_chart,
    health_info,
    module_flow_chart,
    module_flow_info,
)
from tests.viz.audits_made import STEPS, audited, chain, grouped

FIRST = "net/layers.0"


def report(measured: Measurements) -> AuditReport:
    """Return the verdict on measurements."""
    return AuditReport(judge(measured))


def sick(layers: int = 12, shrinks: float = 0.3) -> Measurements:
    """Return a chain whose first layer has three flags."""
    return grouped(chain(layers, shrinks=shrinks, dead=3), 0.99, ("audio", "text"))


def charts(layers: int) -> list[Chart]:
    """Return every figure of health of a chain with something wrong at each layer but the last."""
    measured = sick(layers, shrinks=0.3 if layers < 60 else 0.85)
    late = Series(steps=[*range(STEPS)], values=[0.0] * (STEPS - 1) + [0.5])
    measured.series[f"net/layers.{layers - 1}"]["act_bad_frac"] = late
    verdict = report(measured)
    return [
        health_chart(health_info("run", measured, verdict)),
        audit_chart(audit_info("run", measured, verdict, (), None)),
        module_flow_chart(module_flow_info("run", measured, verdict, "net")),
        channels_chart(channels_info("run", measured, verdict, FIRST)),
        channel_evolution_chart(channel_evolution_info("run", measured, verdict, FIRST)),
    ]


def texts(chart: Chart, width: float) -> list[tuple[float, float, float, float, str]]:
    """Return the box and the words of each text of a chart."""
    found = []
    for mark in chart_picture(chart, width).marks:
        if isinstance(mark, Text):
            wide = text_width(mark.text, mark.size, bold=mark.bold)
            left = mark.x - {"start": 0, "middle": wide / 2, "end": wide}[mark.anchor]
            found.append((left, mark.y - mark.size * 0.75, left + wide, mark.y, mark.text))
    return found


@pytest.mark.parametrize("width", [356, 700, 1000, 1400])
@pytest.mark.parametrize("layers", [3, 12, 60])
def test_all_fits(layers: int, width: int) -> None:
    """No word is clipped or lies on another, whatever the width and the number of modules."""
    for chart in charts(layers):
        boxes = [box for box in texts(chart, width) if box[4] not in ("0", "✕", "▲")]
        assert all(box[0] >= 0 and box[2] <= width + 0.5 for box in boxes)
        assert [
            (one[4], other[4])
            for at, one in enumerate(boxes)
            for other in boxes[:at]
            if one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
        ] == []


@pytest.mark.parametrize("width", [356, 700, 1400])
def test_each_flag_has_a_bar_of_its_own(width: int) -> None:
    """Three flags of one module stay visible, each in words."""
    chart, *_ = charts(12)
    words = [box[4] for box in texts(chart, width)]
    lanes = [name for panel in chart.panels for name in panel.y.categories]

    assert lanes.count(FIRST) == 3
    for flag in ("VANISHING", "LEAKAGE", "DEAD_CHANNELS(3)", "INF"):
        assert any(word.startswith(flag) for word in words)


def test_what_health_knows() -> None:
    """Nodes come first and name where inside; a finding knows its first step."""
    measured = chain(3)
    bad = Series(steps=[*range(STEPS)], values=[0.0] * 5 + [0.5] * (STEPS - 5))
    measured.series["net/layers.1"]["act_bad_frac"] = bad
    info = health_info("run", measured, report(measured))
    why = info.inside[0].why

    assert info.nodes == (Flagged("net", "INF", 5, "certain", "in layers.1", why),)
    assert info.inside == (Flagged("net/layers.1", "INF", 5, "certain", "", why),)
    assert (info.first, info.last, info.modules, info.steps) == (0, STEPS - 1, 4, STEPS)


def test_a_healthy_run_says_so() -> None:
    """There is no bar, and a sentence says what was looked at."""
    chart = health_chart(health_info("run", chain(3), report(chain(3))))

    assert (chart.panels, chart.empty) == ((), "nothing is wrong with 4 modules over 12 steps")


def test_many_findings_are_counted() -> None:
    """The worst are drawn, and the panel says how many there are."""
    measured = chain(90, shrinks=0.5)
    panel = health_chart(health_info("run", measured, report(measured))).panels[1]

    assert len(panel.y.categories) == 60
    assert panel.note.startswith("The 60 worst of ")


def test_numbers_of_an_audit() -> None:
    """Each number named is a panel, each module that fits a pattern a line."""
    measured = chain(12)
    info = audit_info("run", measured, report(measured), ("act_std",), ["net/layers.1*"])
    (panel,) = info.panels

    assert [trace.unit for trace in panel.traces] == [f"net/layers.{n}" for n in (1, 10, 11)]
    assert panel.traces[0].values == (0.4,) * STEPS
    assert (info.drawn, info.modules, panel.log) == (3, 3, True)


def test_the_usual_numbers() -> None:
    """Unasked it draws gradients and updates of the worst modules and of some of the rest."""
    measured = sick(60, shrinks=0.85)
    info = audit_info("run", measured, report(measured), (), None)
    units = {trace.unit for panel in info.panels for trace in panel.traces}

    assert [panel.metric for panel in info.panels] == [
        *("out_grad_norm", "param_grad_norm", "update_ratio"),
    ]
    assert (info.drawn, info.modules, len(units)) == (8, 60, 8)
    assert {report(measured).findings[0].unit, "net/layers.59"} <= units


def test_zeros_on_a_log_scale() -> None:
    """A gradient of exactly zero is marked at the lower edge, and the panel says so."""
    measured = chain(3)
    measured.series[FIRST]["out_grad_norm"].values[3] = 0.0
    info = audit_info("run", measured, report(measured), ("out_grad_norm",), [FIRST])
    svg = Figure(audit_chart(info)).to_svg()

    assert "0 stands at the lower edge" in svg
    assert f"{FIRST}: 0 at 3" in svg


def test_a_number_may_fall_below_zero() -> None:
    """It is drawn on a linear scale, and what is not finite is marked."""
    measured = chain(3)
    measured.series[FIRST]["act_min"] = Series(steps=[0, 1, 2], values=[-1.0, math.nan, 2.0])
    info = audit_info("run", measured, report(measured), ("act_min",), None)

    assert not info.panels[0].log
    assert "NaN at 1" in Figure(audit_chart(info)).to_svg()


def test_the_staircase() -> None:
    """Gradient and signal of each layer over those of the output, in order, with its flags."""
    measured = sick()
    info = module_flow_info("run", measured, report(measured), "net")

    assert [stair.path for stair in info.stairs] == [f"layers.{n}" for n in range(12)]
    assert [stair.gradient for stair in info.stairs] == [0.3 ** (11 - n) for n in range(12)]
    assert {stair.signal for stair in info.stairs} == {0.5}
    assert info.stairs[0].flags == ("VANISHING", "LEAKAGE", "DEAD_CHANNELS(3)")
    assert info.stairs[11].flags == ()


def test_a_module_without_gradient() -> None:
    """One that got exactly zero, and one that got none, say so in words."""
    measured = chain(3)
    measured.series[FIRST]["out_grad_norm"].values[:] = [0.0] * STEPS
    del measured.series["net/layers.1"]["out_grad_norm"]
    chart = module_flow_chart(module_flow_info("run", measured, report(measured), "net"))
    first, second, third = (one.text for one in chart.panels[0].remarks)

    assert first.startswith("0 ▲ VANISHING")
    assert (second, third) == ("no gradient", "1")


def test_a_node_without_audited_inside() -> None:
    """The node itself is the only stair."""
    measured = chain(0)
    info = module_flow_info("run", measured, report(measured), "net")

    assert [stair.path for stair in info.stairs] == ["net"]


def test_channels_by_group() -> None:
    """The table stands group by group; dead channels are marked at their names."""
    measured = sick()
    info = channels_info("run", measured, report(measured), FIRST)
    panel = channels_chart(info).panels[0]

    assert (info.groups, info.dead, info.ignored) == ((("audio", 4), ("text", 4)), (0, 1, 2), ())
    assert panel.y.categories == ("audio 0†", "1†", "2†", "3", "text 4", "5", "6", "7")
    assert panel.cells
    assert panel.cells.parts == (4,)


def test_groups_that_are_scattered() -> None:
    """Channels are put beside those of their group, what is in none stands at the end."""
    measured = grouped(chain(3), 0.5, ("odd", "even"))
    groups = {"odd": (1, 3, 5), "even": (0, 2, 1)}
    unit = measured.units[FIRST]
    fields = {name: getattr(unit, name) for name in type(unit).__dataclass_fields__}
    measured.units[FIRST] = type(unit)(**{**fields, "groups": groups})
    info = channels_info("run", measured, report(measured), FIRST)

    assert info.order == (1, 3, 5, 0, 2, 4, 6, 7)
    assert info.groups == (("odd", 3), ("even", 2), ("others", 3))
    assert info.correlation[0][3] == measured.correlation[FIRST][1][0]


def test_channels_that_nothing_learns_through() -> None:
    """They are marked, too."""
    measured = chain(3)
    for one in measured.channels[FIRST]:
        object.__setattr__(one, "gradient", [0.0, 0.0, *[1.0] * 6])
    info = channels_info("run", measured, report(measured), FIRST)

    assert info.ignored == (0, 1)
    assert channels_chart(info).panels[0].y.categories[:2] == ("0‡", "1‡")
    assert "2 without a gradient, marked ‡" in channels_chart(info).note


def test_channels_without_correlation() -> None:
    """Their sizes are drawn all the same."""
    measured = chain(3)
    measured.correlation.clear()
    info = channels_info("run", measured, report(measured), FIRST)

    assert [panel.title[:4] for panel in channels_chart(info).panels] == ["size"]


def test_channels_that_are_all_constant() -> None:
    """A table without a single number is not drawn; the note says why."""
    measured = chain(3)
    rows = measured.correlation[FIRST]
    measured.correlation[FIRST] = [[math.nan] * len(rows) for _ in rows]
    chart = channels_chart(channels_info("run", measured, report(measured), FIRST))

    assert [panel.title[:4] for panel in chart.panels] == ["size"]
    assert chart.note.endswith("All of them are constant, so there is no correlation to draw.")


def test_how_channels_change() -> None:
    """Rank, likeness of the groups and number of dead channels, at the steps that looked."""
    info = channel_evolution_info("run", sick(), report(sick()), FIRST)
    steps = tuple(range(0, STEPS, 2))

    assert info.rank == ((0, 2, 4), (6.0, 5.5, 5.0))
    assert info.likeness == (("audio and text", (steps, (0.99,) * 6)),)
    assert info.dead == (steps, (3.0,) * 6)
    assert [panel.title for panel in channel_evolution_chart(info).panels] == [
        *("effective rank", "likeness of groups", "dead channels"),
    ]


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda view: view.plot_audit("act_sdt"), "Did you mean `act_std`"),
        (lambda view: view.plot_audit(units=["net/layer.1"]), "Did you mean `net/layers.1`"),
        (lambda view: view.plot_module_flow("nett"), "Did you mean `net`"),
        (lambda view: view.plot_channels("net/layers.00"), "Did you mean `net/layers.0`"),
        (lambda view: view.plot_channels("net/layers.1"), "audit with `channels=`"),
        (lambda view: view.plot_channel_evolution("net/layers.1"), "audit with `channels=`."),
    ],
)
def test_what_was_not_recorded(ask: Callable[[RunView], Figure], said: str, tmp_path: Path) -> None:
    """The error names the nearest that there is, or how to get it."""
    with pytest.raises(NotRecorded, match=said.replace("(", r"\(")):
        ask(audited(tmp_path, chain(3)))


def test_alike_cells_are_one_mark() -> None:
    """A large table stays small: neighbours in one colour are drawn as one rectangle."""
    measured = chain(3)
    measured.correlation[FIRST] = [[1.0] * 64 for _ in range(64)]
    measured.correlation_channels[FIRST] = [*range(64)]
    chart = channels_chart(channels_info("run", measured, report(measured), FIRST))
    marks = chart_picture(chart, 1000).marks

    assert sum(isinstance(mark, Rectangle) for mark in marks) < 100
    assert len(chart.panels[0].y.categories) == 64
