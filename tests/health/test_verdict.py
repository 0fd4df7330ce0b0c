"""Ranking, roll-ups, thresholds and the scale law of a verdict."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soma.errors import InvalidThreshold
from soma.health import ChannelSnapshot, Measurements, Series, Thresholds, Verdict, judge, rollup
from tests.health.hand import STEPS, activation, flags, layers, measured, snapshots, step, unit


def sick() -> Measurements:
    """A run with several faults: a dead activation, what it starves, a leak, a frozen layer."""
    units = [
        *layers()[:3],
        activation("net/r", 3),
        unit("net/c", 4),
        unit("net/d", 5, feeds_output=True),
    ]
    zero = {"out_grad_norm": 0.0, "moved": 0.0, "param_grad_norm": 0.0, "grad_strength": 0.0}
    found = measured({"net/a": zero, "net/b": zero, "net/c": {"moved": 0.0}}, units=units)
    snapshots(found, "net/r", largest=(0, 0, 0, 0), input_rms=1.0)
    series = Series(steps=list(range(STEPS)), values=[0.99] * STEPS)
    found.similarity["net/c"] = {("audio", "text"): series}
    return found


def names(verdict: Verdict) -> list[tuple[str, str]]:
    """Return what is told of, and where."""
    return [(one.flag, one.unit) for one in verdict.findings]


def test_worst_first_and_cause_before_consequence() -> None:
    """A dead activation opens its story; lesser ones follow."""
    assert names(judge(sick())) == [
        ("DEAD", "net/r"),
        ("VANISHING", "net/a"),
        ("VANISHING", "net/b"),
        ("FROZEN", "net/c"),
        ("LEAKAGE", "net/c"),
    ]


def test_rows_are_in_the_order_of_the_first_call() -> None:
    """Modules that were never called come last."""
    units = [unit("net/x", -1), *layers()]
    found = measured(units=units)

    assert [row.filter_id for row in judge(found).filters] == [
        "net", "net/a", "net/b", "net/c", "net/x",
    ]  # fmt: skip


def test_a_verdict_is_a_pure_function() -> None:
    """The same numbers give an equal verdict, and stay as they are."""
    found = sick()

    assert judge(found) == judge(found) == judge(sick())


def test_roll_ups_say_where_inside_the_node() -> None:
    """One mapping for each flag, by name, with the modules in the order of their calls."""
    rows = [
        (row["node_id"], row["flag"], row["detail"], row["step"]) for row in rollup(judge(sick()))
    ]

    assert rows == [
        ("net", "DEAD", "in: r", 0),
        ("net", "FROZEN", "in: c", 0),
        ("net", "LEAKAGE", "in: c", 0),
        ("net", "VANISHING", "in: a, b", 0),
    ]


def test_a_parent_has_only_its_own_flags() -> None:
    """What is wrong inside a node does not stand in the node's row."""
    assert "net" not in flags(sick())


def test_a_flag_of_the_node_itself_rolls_up_with_its_reason() -> None:
    """Where there is nothing inside to point at, the detail is why."""
    jump = [1.0] * (STEPS - 1) + [5e3]
    found = measured({"net": {"param_grad_norm": jump, "grad_strength": jump}})
    (row,) = rollup(judge(found))

    assert (
        row["detail"]
        == "the gradients of step 7 are 5000 times the median of the 7 steps before it"
    )


def test_thresholds_move_the_line() -> None:
    """A verdict can be taken again with other lines."""
    found = measured({"net/a": {"out_grad_norm": 5e-3}})

    assert flags(found) == {}
    assert flags(found, vanishing=1e-2) == {"net/a": ["VANISHING"]}


def test_an_unknown_threshold_names_the_nearest() -> None:
    """A slip is told of, whichever way thresholds are given."""
    with pytest.raises(InvalidThreshold, match="Did you mean `vanishing`"):
        judge(measured(), {"vanishng": 1.0})
    with pytest.raises(InvalidThreshold, match="Did you mean `leakage`"):
        Thresholds(leakages=0.5)


@pytest.mark.parametrize("value", [-1, float("nan"), "0.1", True, None])
def test_a_threshold_is_a_number_from_0_up(value: object) -> None:
    """Anything else is refused, with the default as an example."""
    with pytest.raises(InvalidThreshold, match=r"its default is 0\.95"):
        Thresholds.of({"leakage": value})  # type: ignore[dict-item]


def test_thresholds_are_given_by_name() -> None:
    """A list is no set of thresholds."""
    with pytest.raises(InvalidThreshold, match="a mapping from names to numbers"):
        Thresholds.of([0.1])  # type: ignore[arg-type]


def times(found: Measurements, factor: float, names: tuple[str, ...]) -> None:
    """Multiply some series of all units."""
    for named in found.series.values():
        for name in names:
            if name in named:
                series = named[name]
                named[name] = Series(steps=series.steps, values=[v * factor for v in series.values])


def with_loss_times(found: Measurements, factor: float) -> Measurements:
    """Return the same run with another scale of its loss, and rate and eps to match."""
    found.steps = [
        replace(
            one,
            loss=one.loss * factor if one.loss is not None else None,
            grad_norm=one.grad_norm * factor,
            grad_norm_at_step=one.grad_norm_at_step * factor,
            output_grad_norm=one.output_grad_norm * factor,
        )
        for one in found.steps
    ]
    times(found, factor, ("out_grad_norm", "param_grad_norm", "grad_strength"))
    for seen in found.channels.values():
        seen[:] = [
            replace(one, gradient=[value * factor for value in one.gradient]) for one in seen
        ]
    return found


def with_values_times(found: Measurements, factor: float) -> Measurements:
    """Return the same run with another scale inside, that is undone before the output."""
    times(found, factor, ("act_norm", "act_mean_abs"))
    times(found, 1 / factor, ("out_grad_norm",))
    for seen in found.channels.values():
        seen[:] = [scaled(one, factor) for one in seen]
    return found


def scaled(one: ChannelSnapshot, factor: float) -> ChannelSnapshot:
    """Return a snapshot whose values are larger by a factor, and gradients smaller."""
    return replace(
        one,
        largest=[value * factor for value in one.largest],
        deviation=[value * factor for value in one.deviation],
        gradient=[value / factor for value in one.gradient],
        input_rms=None if one.input_rms is None else one.input_rms * factor,
    )


RATIOS = st.floats(-9, 6).map(lambda power: 10.0**power)


@given(a=RATIOS, b=RATIOS, update=RATIOS, power=st.integers(-20, 20))
def test_the_scale_of_a_loss_changes_no_verdict(
    a: float, b: float, update: float, power: int
) -> None:
    """Whatever the numbers, multiplying loss and gradients leaves all flags as they are."""

    def run() -> Measurements:
        changes = {"net/a": {"out_grad_norm": a, "grad_strength": a, "update_ratio": update},
                   "net/b": {"out_grad_norm": b, "update_ratio": update}}  # fmt: skip
        return snapshots(measured(changes), "net/a", gradient=(a, b, 1, 0))

    assert flags(with_loss_times(run(), 2.0**power)) == flags(run())


@given(power=st.integers(-20, 20), largest=RATIOS)
def test_the_scale_of_channels_changes_no_verdict(power: int, largest: float) -> None:
    """A channel is dead or ignored beside the others, at any scale."""

    def run() -> Measurements:
        units = [*layers()[:3], activation("net/r", 3), unit("net/c", 4, feeds_output=True)]
        return snapshots(measured(units=units), "net/r", largest=(largest, 2, 2, 2),
                          gradient=(largest, 1, 1, 1), input_rms=1.0)  # fmt: skip

    assert flags(with_values_times(run(), 2.0**power)).get("net/r") == flags(run()).get("net/r")


def test_a_scale_that_a_normalisation_undoes_starves_nobody() -> None:
    """Gradients of large values are small and learn as before."""
    assert flags(with_values_times(measured(), 2.0**20)) == {}


def test_steps_not_measured_whole_count_for_gradient_norms_only() -> None:
    """Between whole steps an explosion is still seen."""
    steps = [step(at, whole=at % 2 == 0) for at in range(STEPS)]
    norm = [1.0] * 5 + [1e5] + [1.0] * 2
    found = measured({"net": {"param_grad_norm": norm, "grad_strength": 1.0}}, steps=steps)

    assert flags(found) == {"net": ["EXPLODING"]}
