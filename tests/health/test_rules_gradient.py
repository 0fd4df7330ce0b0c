"""The rules about the loss's gradient, each at its line."""

import math
from dataclasses import replace

import pytest

from soma.health import Origin, judge
from tests.health.hand import STEPS, activation, flags, layers, measured, step, unit

HALF = STEPS // 2


def test_a_run_in_which_all_is_well_has_no_flag() -> None:
    """Measured and fine is no flag."""
    assert flags(measured()) == {}


@pytest.mark.parametrize(("ratio", "flag"), [(1.9e-3, ["VANISHING"]), (2.1e-3, [])])
def test_vanishing_at_its_line(ratio: float, flag: list[str]) -> None:
    """A gradient below a five-hundredth of the network's is vanishing."""
    assert flags(measured({"net/a": {"out_grad_norm": ratio}})).get("net/a", []) == flag


def test_a_small_gradient_of_large_values_is_not_vanishing() -> None:
    """What a normalisation scales up again has small gradients and learns as before."""
    scaled = {"out_grad_norm": 1e-5, "act_norm": 1e6}

    assert flags(measured({"net/a": scaled})) == {}


def test_half_of_the_steps_have_to_be_bad() -> None:
    """The median over the last half decides, not one step."""
    once = [0.5] * (STEPS - 1) + [1e-9]

    assert flags(measured({"net/a": {"out_grad_norm": once}})) == {}


def test_waiting_for_its_turn_is_not_vanishing() -> None:
    """A gradient of 0 in every other step is no fault."""
    assert flags(measured({"net/a": {"out_grad_norm": [0.0, 0.5] * HALF}})) == {}


@pytest.mark.parametrize(
    ("gradients", "flag"),
    [
        ([0.0, *(1e-4 * at for at in range(1, 12))], []),  # opens
        ([0.0, 3e-3, 3e-3, *[1e-3] * 9], []),  # has been open
        ([0.0, *[1e-3] * 11], ["VANISHING"]),  # stays nearly closed
        ([0.0, *(1e-6 * at for at in range(1, 12))], ["VANISHING"]),  # hardly anything arrives
        ([1e-6, *(1e-4 * at for at in range(1, 12))], ["VANISHING"]),  # never was closed
    ],
)
def test_a_branch_that_opens_is_not_vanishing(gradients: list[float], flag: list[str]) -> None:
    """A branch multiplied by a factor that starts at 0 gets more and more of the gradient."""
    steps = [step(at) for at in range(len(gradients))]
    low = {"out_grad_norm": gradients, "act_norm": 5.0}

    assert flags(measured({"net/a": low}, steps=steps)).get("net/a", []) == flag


def test_always_exactly_zero_is_vanishing() -> None:
    """A branch times 0 gets a gradient of zeros."""
    zero = {"out_grad_norm": 0.0, "param_grad_norm": 0.0, "grad_strength": 0.0, "moved": 0.0}

    assert flags(measured({"net/a": zero})) == {"net/a": ["VANISHING"]}


def test_zero_in_the_first_step_alone_is_not() -> None:
    """The first factor of LoRA gets nothing until the second has moved."""
    assert flags(measured({"net/a": {"out_grad_norm": [0.0] + [0.5] * (STEPS - 1)}})) == {}


def test_a_converged_run_is_not_vanishing() -> None:
    """Where all gradients are tiny alike, nothing is lost on the way."""
    steps = [step(at, output_grad_norm=1e-9, loss=1e-16) for at in range(STEPS)]
    tiny = {id: {"out_grad_norm": 1e-9, "update_ratio": 1e-9, "update_norm": 3e-9}
            for id in ("net", "net/a", "net/b", "net/c")}  # fmt: skip

    assert flags(measured(tiny, steps=steps)) == {}


def test_a_flat_sigmoid_at_the_end_does_not_starve_what_is_below() -> None:
    """The gradient before an output sigmoid is what others are compared to."""
    units = [*layers()[:3], unit("net/c", 3),
             activation("net/p", 4, "sigmoid", feeds_output=True)]  # fmt: skip
    solved = {id: {"out_grad_norm": 1e-6} for id in ("net/a", "net/b", "net/c")}

    assert flags(measured({**solved, "net/p": {"out_grad_norm": 1.0}}, units=units)) == {}


def test_the_staircase_is_one_story() -> None:
    """Layers that starve one after the other name the first one that does, seen from the loss."""
    stairs = {"net/a": {"out_grad_norm": 1e-5}, "net/b": {"out_grad_norm": 1e-3}}
    first, second = judge(measured(stairs)).findings

    assert (first.unit, first.cause, second.unit, second.cause) == ("net/b", None, "net/a", "net/b")
    assert second.numbers["decay_per_layer"] == pytest.approx((1e-5 / 0.5) ** 0.5)


def test_a_module_that_passes_on_what_a_later_container_lost_is_named_there() -> None:
    """The flag stands in the trunk that loses the gradient, not at the layer above it."""
    units = [layers()[0], unit("net/a", 1), unit("net/trunk.0", 2), unit("net/trunk.1", 3),
             unit("net/c", 4, feeds_output=True)]  # fmt: skip
    lost = {"net/a": {"out_grad_norm": 1e-4}, "net/trunk.0": {"out_grad_norm": 5e-4}}
    found = measured(lost, units=units)

    assert flags(found) == {"net/trunk.0": ["VANISHING"]}
    assert "`net/a` above it pass on" in judge(found).findings[0].meaning


def test_frozen_by_choice_is_a_status() -> None:
    """`requires_grad=False` gives no flag, whatever the numbers."""
    units = layers()
    units[1] = replace(units[1], trainable=0, own_trainable=0)
    row = judge(measured({"net/a": {"out_grad_norm": 1e-9}}, units=units)).filters[1]

    assert (row.filter_id, row.flags, row.status) == ("net/a", [], "frozen by choice")


@pytest.mark.parametrize(("ratio", "flag"), [(1100.0, ["EXPLODING"]), (900.0, [])])
def test_exploding_over_depth_at_its_line(ratio: float, flag: list[str]) -> None:
    """A gradient more than a thousand times the network's is exploding."""
    assert flags(measured({"net/a": {"out_grad_norm": ratio}})).get("net/a", []) == flag


def test_a_normalisation_that_scales_up_is_no_explosion() -> None:
    """Small values before a LayerNorm have large gradients and learn as before."""
    units = layers()
    units[2] = unit("net/b", 2, class_name="LayerNorm")
    small = {"out_grad_norm": 5e3, "act_mean_abs": 1e-5}

    assert flags(measured({"net/a": small}, units=units)) == {}


@pytest.mark.parametrize(("last", "flag"), [(3e3, {"net": ["EXPLODING"]}), (9e2, {})])
def test_exploding_over_time_at_its_line(last: float, flag: dict[str, list[str]]) -> None:
    """A step a thousand times stronger than those before it is exploding."""
    strong = [1.0] * (STEPS - 1) + [last]
    jump = {"net": {"param_grad_norm": strong, "grad_strength": strong}}

    assert flags(measured(jump)) == flag


def test_a_hard_sample_in_a_solved_problem_is_no_explosion() -> None:
    """A gradient no larger than at the start is not without measure."""
    strong = [1.0, 1.0, 1.0, 1e-6, 1e-6, 1e-6, 1e-6, 0.9]

    assert flags(measured({"net": {"param_grad_norm": strong, "grad_strength": strong}})) == {}


def test_no_gradient_at_all_is_not_a_gradient_of_zeros() -> None:
    """A detached layer is NO_GRAD, and so is what it cuts off; the last one is the cause."""
    none = dict.fromkeys(("out_grad_norm", "param_grad_norm", "grad_strength"))
    cut = {**none, "grads": 0.0, "moved": 0.0, "update_ratio": 0.0}
    found = judge(measured({"net/a": cut, "net/b": cut})).findings

    assert [(one.flag, one.unit, one.cause) for one in found] == [
        ("NO_GRAD", "net/b", None),
        ("NO_GRAD", "net/a", "net/b"),
    ]


def test_never_called_is_unused() -> None:
    """A module without a call and without a gradient is UNUSED."""
    units = [*layers(), unit("net/d", -1)]

    assert flags(measured({"net/d": {"grads": 0.0}}, units=units)) == {"net/d": ["UNUSED"]}


def test_a_weight_used_without_a_call_is_not_unused() -> None:
    """Tied weights get a gradient though their module is never called."""
    units = [*layers(), unit("net/d", -1, unobserved="not called, its weights are used")]

    assert flags(measured({"net/d": {"grads": 1.0, "param_grad_norm": 1.0}}, units=units)) == {
        "net/d": ["UNOBSERVED(not called, its weights are used)"]
    }


def test_weights_that_another_module_is_called_with_are_observed() -> None:
    """An embedding that an encoder has too is measured at the encoder's."""
    units = [*layers(), unit("net/d", -1, weights_of="net/a")]

    assert flags(measured({"net/d": {"grads": 1.0, "param_grad_norm": 1.0}}, units=units)) == {}


def test_what_has_no_weights_is_not_missed() -> None:
    """A dropout in whose place its function is called is no gap in what was observed."""
    assert flags(measured(units=[*layers(), activation("net/d", -1)])) == {}


def test_two_steps_are_too_few_for_never() -> None:
    """An expert may get its turn in the third step."""
    units = [*layers(), unit("net/d", -1)]
    steps = [step(at) for at in range(2)]

    assert flags(measured({"net/d": {"grads": 0.0}}, units=units, steps=steps)) == {}


def bad_numbers(at: int) -> dict[str, dict[str, list[float]]]:
    """A NaN in the output of `b` from a step on, that `c` inherits."""
    bad = [0.0] * at + [0.1] * (STEPS - at)
    peak = [1.0] * at + [math.nan] * (STEPS - at)
    spoilt = {"act_bad_frac": bad, "act_max": peak, "act_norm": peak, "out_grad_norm": peak}
    return {"net/b": spoilt, "net/c": spoilt}


def test_nan_stands_where_it_began_and_names_it_elsewhere() -> None:
    """The first module in the forward pass is the cause of the others."""
    found = judge(measured(bad_numbers(5))).findings

    assert [(one.flag, one.unit, one.since, one.cause) for one in found] == [
        ("NAN", "net/b", 5, None),
        ("NAN", "net/c", 5, "net/b"),
    ]


def test_no_rule_looks_behind_the_first_nan() -> None:
    """What NaN does to other numbers is not told as other faults."""
    vanish = [0.5] * 3 + [1e-9] * (STEPS - 3)
    found = measured({**bad_numbers(3), "net/a": {"out_grad_norm": vanish}})

    assert {one.name for one in judge(found).findings} == {"NAN"}


def test_the_origin_of_a_replay_is_the_cause() -> None:
    """A replay knows better where it began than the order of calls does."""
    found = measured(bad_numbers(5))
    found.origins.append(
        Origin(
            step=5, unit="net/c", operation="log", phase="forward", value="nan", detail="log(-1)"
        )
    )
    head = judge(found).findings[0]

    assert (head.unit, head.why) == (
        "net/c",
        "NaN in its output at step 5; it began in the forward pass, in `log`: log(-1)",
    )


def test_a_mask_is_no_fault() -> None:
    """An output with -inf alone, and a finite gradient, is a mask."""
    mask = {"act_bad_frac": 0.3, "act_masked_frac": 0.3, "act_min": -math.inf, "act_norm": 1.0}

    assert flags(measured({"net/a": mask})) == {}


def test_a_step_that_a_scaler_left_out_is_no_fault() -> None:
    """Infinite gradients in a skipped step are how a scaler finds its scale."""
    steps = [step(0, skipped=True, grad_norm=math.inf), *(step(at) for at in range(1, STEPS))]
    bad = {"param_grad_bad_frac": [1.0] + [0.0] * (STEPS - 1),
           "param_grad_norm": [math.inf] + [0.5] * (STEPS - 1)}  # fmt: skip

    assert flags(measured({"net/a": bad}, steps=steps)) == {}


def test_infinite_numbers_are_told_from_nan() -> None:
    """An overflow is INF."""
    bad = {
        "act_bad_frac": [0.0] * 3 + [0.1] * (STEPS - 3),
        "act_max": [3.0] * 3 + [math.inf] * (STEPS - 3),
    }

    assert flags(measured({"net/a": bad}))["net/a"] == ["INF"]


@pytest.mark.parametrize(("grad_norm", "flag"), [(1.0, []), (math.inf, ["INF"])])
def test_infinite_numbers_on_purpose_do_no_harm(grad_norm: float, flag: list[str]) -> None:
    """The distance of a point to itself is inf in each step, and the gradients are finite."""
    far = {"act_bad_frac": 0.1, "act_max": math.inf}
    steps = [step(at, grad_norm=grad_norm) for at in range(STEPS)]

    assert flags(measured({"net/a": far}, steps=steps)).get("net/a", []) == flag
