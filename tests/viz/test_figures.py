"""What figures think, compared by equality; the drawing is tested once, in `test_chart_*`."""

import math
from pathlib import Path

import pytest

from soma.errors import NotRecorded
from soma.tracking import RunRecord, Timing
from soma.viz.figures import Curve, Turns, gantt_chart, gantt_info, metrics_chart, metrics_info
from tests.viz.runs_made import Recorded, failed, fitted, logged


def turn(node: str, start: float, seconds: float = 0.5, *, cached: bool = False) -> Timing:
    """Return a turn of a node that runs forward."""
    return Timing(node=node, phase="forward", start=start, seconds=seconds, cached=cached)


def test_lanes_follow_the_graph(tmp_path: Path) -> None:
    """Lanes stand in topological order; each turn is a bar, and says when it was cached."""
    info = gantt_info(RunRecord(fitted(tmp_path).dir))

    assert info.nodes == ("load", "center")
    assert info.turns == len(info.bars)
    assert {bar.phase for bar in info.bars} == {"fit", "forward"}
    assert any(bar.cached for bar in info.bars)
    assert any(not bar.cached for bar in info.bars)


def test_a_failed_turn_is_told_without_colour(tmp_path: Path) -> None:
    """It has a style, a name and a sign of its own; a node without turn keeps its lane."""
    info = gantt_info(RunRecord(failed(tmp_path).dir))
    (group,) = [one for one in gantt_chart(info).panels[0].blocks if one.style == "failed"]

    assert info.nodes == ("load", "breaks", "center")
    assert group.name.endswith(", failed")
    assert group.blocks[0].text.startswith("✕ ")


def test_many_turns_become_few_bars(tmp_path: Path) -> None:
    """Close turns are drawn as one, no second of work is lost, and the figure says so."""
    turns = [turn("load", start=float(second)) for second in range(20_000)]
    record = Recorded(fitted(tmp_path).dir, turns)
    info = gantt_info(record)

    assert len(info.bars) < 1500
    assert sum(bar.seconds for bar in info.bars) == 10_000
    assert sum(bar.turns for bar in info.bars) == 20_000
    assert gantt_chart(info).panels[0].note.startswith("20,000 turns in ")


def test_few_turns_are_kept_apart(tmp_path: Path) -> None:
    """Each turn is its own bar where they can be told apart."""
    record = Recorded(fitted(tmp_path).dir, [turn("load", 1.0), turn("load", 1.5, cached=True)])

    assert gantt_info(record).bars == (
        Turns("load", "forward", False, False, 1.0, 1.5, 0.5, 1),
        Turns("load", "forward", True, False, 1.5, 2.0, 0.5, 1),
    )


def test_no_turns(tmp_path: Path) -> None:
    """Without turns there is no panel, and a sentence instead."""
    chart = gantt_chart(gantt_info(RunRecord(logged(tmp_path).dir)))

    assert (chart.panels, chart.empty) == ((), "no node ran")


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (("loss", "validation_loss", "accuracy"), [("loss", 2), ("accuracy", 1)]),
        (("train/f1", "val/f1", "test/f1"), [("f1", 3)]),
        (("val.a b-c", "validation"), [("val.a b-c", 1), ("validation", 1)]),
        (("value", "evaluation", "latest"), [("value", 1), ("evaluation", 1), ("latest", 1)]),
    ],
)
def test_training_and_validation_share_axes(
    names: tuple[str, ...], groups: list[tuple[str, int]], tmp_path: Path
) -> None:
    """Metrics that differ in the split alone are drawn together."""
    record = RunRecord(logged(tmp_path, **{name: [1.0] for name in names}).dir)
    info = metrics_info(record, (), None)

    assert [(group.title, len(group.curves)) for group in info.groups] == groups


def test_points_that_are_not_finite_are_counted(tmp_path: Path) -> None:
    """How many, and where the first is."""
    record = RunRecord(logged(tmp_path, loss=[1.0, 2.0, math.inf, math.nan]).dir)
    info = metrics_info(record, ("loss",), None)
    (curve,) = info.groups[0].curves

    assert (curve.logged, curve.odd, curve.first_odd) == (4, 2, 2.0)
    assert metrics_chart(info).panels[0].note == "2 points not finite, first at step 2."


def test_long_series_are_thinned_and_say_so(tmp_path: Path) -> None:
    """At most 2,000 points are drawn, the peak among them."""
    values = [math.sin(step / 50) for step in range(5000)]
    values[777] = 9.0
    info = metrics_info(RunRecord(logged(tmp_path, loss=values).dir), (), None)
    (curve,) = info.groups[0].curves

    assert len(curve.steps) == len(curve.values) <= 2000
    assert (777.0, 9.0) in zip(curve.steps, curve.values, strict=True)
    assert "of 5,000 points drawn." in metrics_chart(info).panels[0].note


@pytest.mark.parametrize(
    ("values", "asked", "log"),
    [
        ([1.0, 1e-4], None, True),
        ([1.0, 1e-2], None, False),
        ([1.0, 1e-2], True, True),
        ([1.0, 1e-4], False, False),
        ([1.0, 0.0, 1e-4], True, False),
        ([math.nan], True, False),
    ],
)
def test_the_scale(values: list[float], asked: bool | None, log: bool, tmp_path: Path) -> None:
    """It is logarithmic where a metric spans three decades, and never where that fails."""
    record = RunRecord(logged(tmp_path, loss=values).dir)

    assert metrics_info(record, (), asked).groups[0].log == log


def test_steps_in_any_order(tmp_path: Path) -> None:
    """A curve runs from left to right, however its points were logged."""
    view = logged(tmp_path, loss=[])
    (view.dir / "metrics.jsonl").write_text(
        '{"name":"loss","step":2,"value":1.0,"time":0.0}\n'
        '{"name":"loss","step":1,"value":3.0,"time":0.0}\n'
    )
    info = metrics_info(RunRecord(view.dir), (), None)

    assert info.groups[0].curves == (Curve("loss", (1.0, 2.0), (3.0, 1.0), 2, 0, None),)


def test_an_unknown_metric(tmp_path: Path) -> None:
    """The error names those that there are."""
    with pytest.raises(NotRecorded, match=r"no metric `los`.*it has `loss`.*Did you mean `loss`"):
        logged(tmp_path, loss=[1.0]).plot_metrics("los")
