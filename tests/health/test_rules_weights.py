"""The rules about weights and steps, each at its line."""

import pytest

from soma.health import Measurements, judge
from tests.health.hand import STEPS, activation, flags, layers, measured, snapshots, step, unit

LAYERS = ("net/a", "net/b", "net/c")
ROSE = [step(at, loss=1.5 if 0 < at < 4 else 1.0) for at in range(STEPS)]  # and came back


def test_bit_equal_while_others_move_is_frozen() -> None:
    """A gradient, and no change in any step: no optimizer holds it."""
    assert flags(measured({"net/a": {"moved": 0.0, "update_ratio": 0.0}})) == {"net/a": ["FROZEN"]}


def test_two_steps_are_too_few_for_frozen() -> None:
    """A warm-up may start with a rate of 0."""
    found = measured({"net/a": {"moved": 0.0}}, steps=[step(0), step(1)])

    assert flags(found) == {}


@pytest.mark.parametrize(("loss", "flag"), [(5.0, ["FROZEN"]), (0.1, [])])
def test_nothing_moves_at_all(loss: float, flag: list[str]) -> None:
    """An optimizer of other weights is told from a solved problem by its loss."""
    steps = [step(at, loss=loss) for at in range(STEPS)]
    still = {"moved": 0.0, "update_ratio": 0.0, "update_norm": 0.0}
    found = measured(dict.fromkeys(("net", *LAYERS), still), steps=steps)

    assert flags(found).get("net", []) == flag


def test_a_block_frozen_as_a_whole_is_told_of_at_the_block() -> None:
    """The outermost module that stands still carries the story."""
    units = [layers()[0], unit("net/a", 1, trainable=20, own_trainable=0), unit("net/a.0", 2),
             unit("net/a.1", 3), unit("net/c", 4, feeds_output=True)]  # fmt: skip
    still = {"moved": 0.0}
    found = measured(dict.fromkeys(("net/a", "net/a.0", "net/a.1"), still), units=units)

    assert {one.unit: one.cause for one in judge(found).findings} == {
        "net/a": None,
        "net/a.0": "net/a",
        "net/a.1": "net/a",
    }


@pytest.mark.parametrize(("ratio", "flag"), [(0.11, ["LR_HIGH"]), (0.09, [])])
def test_lr_high_at_its_line(ratio: float, flag: list[str]) -> None:
    """Steps of a tenth of the weights are too large where the loss rises and does not fall."""
    found = measured({"net/a": {"update_ratio": ratio}}, steps=ROSE)

    assert flags(found).get("net/a", []) == flag


def test_a_young_layer_may_take_large_steps_on_a_loss_that_is_noise() -> None:
    """One module that begins small, and a loss that neither rises nor falls, is no fault."""
    assert flags(measured({"net/a": {"update_ratio": 0.2}})) == {}


def test_large_steps_everywhere_need_no_loss_that_rises() -> None:
    """A loss with a ceiling cannot rise: where all modules jump, it need not."""
    found = measured({id: {"update_ratio": 0.2} for id in LAYERS})

    assert flags(found).get("net", []) == ["LR_HIGH"]


@pytest.mark.parametrize(("last", "flag"), [(0.89, []), (0.91, ["LR_HIGH"])])
def test_large_steps_that_help_are_fine(last: float, flag: list[str]) -> None:
    """A loss that falls by a tenth excuses large steps."""
    steps = [step(at, loss=last if at > 3 else ROSE[at].loss) for at in range(STEPS)]
    found = measured({"net/a": {"update_ratio": 0.2}}, steps=steps)

    assert flags(found).get("net/a", []) == flag


def test_a_loss_below_zero_falls_too() -> None:
    """A fall is counted in parts of the first value's size."""
    steps = [step(at, loss=-1.0 - 0.1 * at) for at in range(STEPS)]

    assert flags(measured({"net/a": {"update_ratio": 0.2}}, steps=steps)) == {}


@pytest.mark.parametrize(("ratio", "flag"), [(0.31, ["LR_HIGH"]), (0.29, [])])
def test_lr_high_without_a_loss(ratio: float, flag: list[str]) -> None:
    """Where the loss says nothing, the line is further up."""
    steps = [step(at, loss=None) for at in range(STEPS)]
    found = measured({"net/a": {"update_ratio": ratio}}, steps=steps)

    assert flags(found).get("net/a", []) == flag


def test_a_game_of_two_has_no_loss_that_should_fall() -> None:
    """Modules that train in turns are judged as if the loss was unknown."""
    first, second = [1.0, 0.0] * (STEPS // 2), [0.0, 1.0] * (STEPS // 2)
    turns = {"net/a": {"moved": first, "update_ratio": 0.2}, "net/b": {"moved": second}}

    assert flags(measured(turns)) == {}


def test_weights_that_start_at_zero_may_grow() -> None:
    """The ratio of a change to nothing says nothing."""
    grown = {"update_ratio": 0.5, "param_norm": [0.0, *[1.0] * (STEPS - 1)]}

    assert flags(measured({"net/a": grown})) == {}


def slow(ratio: float) -> dict[str, float]:
    """A module that a step changes by a share of its size."""
    return {"update_ratio": ratio, "update_norm": 3.0 * ratio}


@pytest.mark.parametrize(("ratio", "flag"), [(0.9e-6, ["LR_LOW"]), (1.1e-6, [])])
def test_lr_low_at_its_line(ratio: float, flag: list[str]) -> None:
    """Steps of a millionth of the weights are too small where others move."""
    assert flags(measured({"net/a": slow(ratio)})).get("net/a", []) == flag


@pytest.mark.parametrize(("step_", "flag"), [(1e-7, ["LR_LOW"]), (1e-2, [])])
def test_steps_that_are_rounded_away_are_too_small(step_: float, flag: list[str]) -> None:
    """A module that moves a bit in one step of four does not move much; in turns it may."""
    rare = {"update_ratio": [step_, 0.0, 0.0, 0.0] * (STEPS // 4), "update_norm": 0.0}

    assert flags(measured({"net/a": rare})).get("net/a", []) == flag


def test_without_a_gradient_a_small_step_is_right() -> None:
    """A module whose gradient is a thousandth of the others' has no reason to move."""
    assert flags(measured({"net/a": {**slow(1e-9), "grad_strength": 1e-3}})) == {}


@pytest.mark.parametrize(("loss", "flag"), [(5.0, ["LR_LOW"]), (0.1, [])])
def test_all_small_steps(loss: float, flag: list[str]) -> None:
    """A rate that is too low for all is told from a solved problem by its loss."""
    steps = [step(at, loss=loss) for at in range(STEPS)]
    found = measured({id: slow(1e-9) for id in LAYERS}, steps=steps)

    assert flags(found).get("net/b", []) == flag


@pytest.mark.parametrize(("share", "flag"), [(1.0, []), (0.5, ["LR_LOW"])])
def test_what_lies_before_a_flat_activation_moves_little_at_any_rate(
    share: float, flag: list[str]
) -> None:
    """A softmax that is too sure keeps all gradients small; the rate is not to blame."""
    units = [*layers()[:3], activation("net/p", 3, "softmax", feeds_output=True)]
    steps = [step(at, loss=5.0) for at in range(STEPS)]
    low = {id: slow(1e-9) for id in LAYERS[:3]}
    found = measured({**low, "net/p": {"saturated_frac": share}}, units=units, steps=steps)

    assert flags(found).get("net/b", []) == flag


def stale(values: list[float]) -> Measurements:
    """A run in which steps of one layer used old gradients."""
    return measured({id: {"stale": values if id == "net/a" else 0.0} for id in LAYERS})


def test_old_gradients_in_most_steps_are_stale() -> None:
    """A missing `zero_grad` is told of where it is missing."""
    assert flags(stale([0.0] + [1.0] * (STEPS - 1))) == {"net/a": ["STALE_GRAD"]}


def test_one_step_with_old_gradients_is_not() -> None:
    """One deliberate repetition is no missing call."""
    assert flags(stale([0.0, 1.0] + [0.0] * (STEPS - 2))) == {}


def test_a_missing_zero_grad_everywhere_is_told_once() -> None:
    """If no layer's gradients are cleared, the node has the flag."""
    found = measured({id: {"stale": [0.0] + [1.0] * (STEPS - 1)} for id in LAYERS})

    assert flags(found) == {"net": ["STALE_GRAD"]}


def test_no_step_is_no_data() -> None:
    """Silence is not health."""
    assert set(map(tuple, flags(measured(steps=[])).values())) == {("NO_DATA",)}


def test_what_was_not_measured_says_so() -> None:
    """A compiled module has its reason in brackets."""
    units = [*layers()[:3], unit("net/d", 3, unobserved="compiled")]

    assert flags(measured(units=units))["net/d"] == ["UNOBSERVED(compiled)"]


def test_a_called_module_without_an_output_gradient_is_unobserved() -> None:
    """An output in a container that nobody could open leaves the gradient unmeasured."""
    assert flags(measured({"net/a": {"out_grad_norm": None}})) == {
        "net/a": ["UNOBSERVED(no output gradient)"]
    }


@pytest.mark.parametrize(("away", "flag"), [(1.0, []), (0.0, ["NO_GRAD"])])
def test_what_somebody_moves_by_hand_needs_no_gradient(away: float, flag: list[str]) -> None:
    """A teacher that follows is called with gradients on, and no optimizer moves it."""
    still = {"grads": 0.0, "moved": 0.0, "out_grad_norm": None, "param_grad_norm": None}
    found = measured({"net/a": {**still, "away_ever": away}})

    assert flags(found).get("net/a", []) == flag


def test_what_hangs_on_a_dead_activation_is_its_shadow() -> None:
    """Weights that are given nothing do not move; their bias does."""
    units = [*layers()[:3], activation("net/r", 3), unit("net/c", 4, feeds_output=True)]
    ever = {"moved_ever": 0.2, "pushed_ever": 1.0, "away_ever": 0.2}
    found = snapshots(measured({"net/c": ever}, units=units), "net/r", largest=(0, 0, 0, 0),
                      input_rms=1.0)  # fmt: skip

    assert flags(found) == {"net/r": ["DEAD"]}


def test_what_passes_on_a_gradient_that_has_vanished_does_not_stand_still_by_itself() -> None:
    """A block loses the gradient; the layer above it gets too little to change a bit."""
    gone = {"out_grad_norm": 1e-12, "act_norm": 1e-3}
    found = measured({"net/a": {**gone, "moved": 0.0}, "net/b": gone})

    assert [flag for told in flags(found).values() for flag in told if flag == "FROZEN"] == []
