"""The rules about outputs and their channels, each at its line."""

from dataclasses import replace

import pytest

from soma.health import Series, judge
from tests.health.hand import STEPS, activation, flags, layers, measured, snapshots, step, unit

RELU = [*layers()[:3], activation("net/r", 3), unit("net/c", 4, feeds_output=True)]


@pytest.mark.parametrize(("size", "flag"), [(0.9e-6, ["DEAD_CHANNELS(1)"]), (1.1e-6, [])])
def test_a_dead_channel_at_its_line(size: float, flag: list[str]) -> None:
    """A channel is dead below a millionth of what the activation is given."""
    found = snapshots(measured(units=RELU), "net/r", largest=(size, 2, 2, 2), input_rms=1.0)

    assert flags(found).get("net/r", []) == flag


def test_an_activation_without_a_living_channel_is_dead() -> None:
    """All channels at 0 is DEAD, and the starving above it is its consequence."""
    zero = {"out_grad_norm": 0.0, "moved": 0.0, "param_grad_norm": 0.0}
    found = snapshots(measured({"net/b": zero}, units=RELU), "net/r", largest=(0, 0, 0, 0),
                      input_rms=1.0)  # fmt: skip
    told = [(one.flag, one.unit, one.cause) for one in judge(found).findings]

    assert told == [("DEAD", "net/r", None), ("VANISHING", "net/b", "net/r")]


def test_a_channel_that_fires_once_is_alive() -> None:
    """Natural zeros are not dead."""
    found = snapshots(measured(units=RELU), "net/r", largest=(0, 2, 2, 2), input_rms=1.0)
    last = found.channels["net/r"][-1]
    found.channels["net/r"][-1] = type(last)(
        step=last.step, largest=(1, 2, 2, 2), deviation=last.deviation, gradient=last.gradient,
        input_rms=1.0, samples=64,
    )  # fmt: skip

    assert flags(found) == {}


@pytest.mark.parametrize(("rms", "samples"), [(0.0, 64), (1.0, 3), (None, 64)])
def test_what_shows_nothing_is_not_called_dead(rms: float | None, samples: int) -> None:
    """Given only zeros, seen too rarely, or not behind an activation: no verdict."""
    found = snapshots(measured(units=RELU), "net/r", largest=(0, 2, 2, 2), input_rms=rms,
                      samples=samples)  # fmt: skip

    assert flags(found) == {}


def test_a_block_and_the_activation_in_it_are_one_story() -> None:
    """The block keeps its flag and names the activation inside as the cause."""
    units = [*layers()[:2], unit("net/b", 2, activation="relu"), activation("net/b.1", 3),
             unit("net/c", 4, feeds_output=True)]  # fmt: skip
    found = measured(units=units)
    for id in ("net/b", "net/b.1"):
        snapshots(found, id, largest=(0, 2, 2, 2), input_rms=1.0)
    told = [(one.unit, one.flag, one.cause) for one in judge(found).findings]

    assert told == [("net/b.1", "DEAD_CHANNELS(1)", None), ("net/b", "DEAD_CHANNELS(1)", "net/b.1")]


@pytest.mark.parametrize(("sum_", "flag"), [(0.9e-6, ["IGNORED_CHANNELS(1)"]), (1.1e-6, [])])
def test_an_ignored_channel_at_its_line(sum_: float, flag: list[str]) -> None:
    """A living channel is ignored below a millionth of the strongest one's gradient."""
    found = snapshots(measured(), "net/a", gradient=(sum_, 1, 1, 1))

    assert flags(found).get("net/a", []) == flag


@pytest.mark.parametrize("still", [{"deviation": (0, 1, 1, 1)}, {"largest": (0, 2, 2, 2)}])
def test_a_channel_that_does_nothing_is_not_ignored(still: dict[str, tuple[float, ...]]) -> None:
    """Only what varies and fires can be ignored."""
    assert flags(snapshots(measured(), "net/a", gradient=(0, 1, 1, 1), **still)) == {}


def test_channels_that_a_dead_activation_silences_are_told_there() -> None:
    """The layer before a dead channel is not flagged for it."""
    found = snapshots(measured(units=RELU), "net/b", gradient=(0, 1, 1, 1))
    snapshots(found, "net/r", largest=(0, 2, 2, 2), input_rms=1.0)

    assert flags(found) == {"net/r": ["DEAD_CHANNELS(1)"]}


def test_all_ignored_and_vanishing_are_one_story() -> None:
    """A branch times 0 has both flags, and is told of once."""
    zero = {"out_grad_norm": 0.0, "moved": 0.0, "param_grad_norm": 0.0}
    found = snapshots(measured({"net/a": zero}), "net/a", gradient=(0, 0, 0, 0))

    assert flags(found) == {"net/a": ["VANISHING", "IGNORED_CHANNELS(4)"]}
    assert [one.cause for one in judge(found).findings] == [None, "net/a"]


@pytest.mark.parametrize(("share", "flag"), [(0.71, ["SATURATED"]), (0.69, [])])
def test_saturated_at_its_line(share: float, flag: list[str]) -> None:
    """An activation is saturated when 70 % of what it gives is where it is flat."""
    units = [*RELU[:3], activation("net/r", 3, "tanh"), RELU[4]]
    found = measured({"net/r": {"saturated_frac": share}}, units=units)

    assert flags(found).get("net/r", []) == flag


@pytest.mark.parametrize(("kind", "flag"), [("sigmoid", []), ("softmax", ["SATURATED"])])
def test_a_flat_output(kind: str, flag: list[str]) -> None:
    """A sigmoid that is the output may be flat, a softmax there may not before it is solved."""
    units = [*layers()[:3], activation("net/p", 3, kind, feeds_output=True)]
    found = measured({"net/p": {"saturated_frac": 1.0}}, units=units)

    assert flags(found).get("net/p", []) == flag


@pytest.mark.parametrize(("cka", "flag"), [(0.96, ["LEAKAGE"]), (0.94, [])])
def test_leakage_at_its_line(cka: float, flag: list[str]) -> None:
    """Two groups leak when they are alike to more than 0.95."""
    found = measured()
    series = Series(steps=list(range(STEPS)), values=[cka] * STEPS)
    found.similarity["net/a"] = {("audio", "text"): series}

    assert flags(found).get("net/a", []) == flag


@pytest.mark.parametrize(("last", "flag"), [(0.01, []), (0.5, ["LEAKAGE"])])
def test_groups_that_agree_on_the_answer_do_not_leak(last: float, flag: list[str]) -> None:
    """Two branches that were unlike at first may both know the class once it is learnt."""
    found = measured(steps=[step(at, loss=1.0 if at < 4 else last) for at in range(12)])
    series = Series(steps=list(range(12)), values=[0.6] * 5 + [0.97] * 7)
    found.similarity["net/a"] = {("audio", "text"): series}

    assert flags(found).get("net/a", []) == flag


def falling(to: float) -> list[float]:
    """A number that is 0.6 at first and ends at another."""
    return [0.6] * 3 + [to] * (STEPS - 3)


@pytest.mark.parametrize(("share", "flag"), [(0.9e-2, ["COLLAPSE"]), (1.1e-2, [])])
def test_collapse_of_variance_at_its_line(share: float, flag: list[str]) -> None:
    """An output that varied and now does not by a hundredth has collapsed."""
    found = measured({"net/a": {"batch_variance_ratio": falling(share)}})

    assert flags(found).get("net/a", []) == flag


def test_what_never_varied_has_not_collapsed() -> None:
    """A low share from the start is no fall."""
    assert flags(measured({"net/a": {"batch_variance_ratio": 1e-4}})) == {}


def test_an_output_may_converge() -> None:
    """The network's own output is not judged for collapse."""
    assert flags(measured({"net/c": {"batch_variance_ratio": falling(1e-6)}})) == {}


NEAR = {"largest": (2, 2, 2, 2), "deviation": (0.4, 0.5, 0.5, 0.5)}
FAR = {"largest": (2, 2, 2, 2), "deviation": (0.04, 0.5, 0.5, 0.5)}


@pytest.mark.parametrize(("given", "flag"), [(NEAR, []), (FAR, ["DEAD_CHANNELS(1)"])])
def test_a_quiet_channel_that_is_near_to_firing_is_not_dead(
    given: dict[str, tuple[float, ...]], flag: list[str]
) -> None:
    """What goes into a dead unit hardly varies beside its size."""
    found = measured({"net/b": {"act_norm": 16.0}}, units=RELU)  # 1 for each of 256 values
    snapshots(found, "net/b", **given)
    snapshots(found, "net/r", largest=(0, 2, 2, 2), input_rms=1.0)

    assert flags(found).get("net/r", []) == flag


def test_what_an_activation_is_given_is_not_always_known() -> None:
    """A sum between a layer and its activation leaves the layer's numbers out of it."""
    found = measured({"net/b": {"act_norm": 8.0}}, units=RELU)
    snapshots(found, "net/b", **NEAR)
    snapshots(found, "net/r", largest=(0, 2, 2, 2), input_rms=1.0)

    assert flags(found) == {"net/r": ["DEAD_CHANNELS(1)"]}


def test_a_channel_that_fired_once_is_not_called_ignored() -> None:
    """A dropout may take the only value that an activation let by."""
    found = measured(units=RELU)
    snapshots(found, "net/b", gradient=(0, 1, 1, 1))
    snapshots(found, "net/r", largest=(0, 2, 2, 2), input_rms=1.0)
    last = found.channels["net/r"][-1]
    found.channels["net/r"][-1] = replace(last, largest=(0.1, 2, 2, 2))

    assert flags(found) == {}


def test_a_softmax_has_channels_that_are_never_chosen() -> None:
    """The places of paddings are masked in each row, and are no dead units."""
    units = [*RELU[:3], activation("net/r", 3, "softmax"), RELU[4]]
    found = snapshots(measured(units=units), "net/r", largest=(0, 1, 1, 1), input_rms=1.0)

    assert flags(found) == {}


@pytest.mark.parametrize(("kind", "flag"), [("relu", ["DEAD"]), ("sigmoid", []), ("relu6", [])])
def test_what_has_a_ceiling_is_not_measured_by_its_input(kind: str, flag: list[str]) -> None:
    """A 1 after a sigmoid that was given ten millions is not silence."""
    units = [*RELU[:3], activation("net/r", 3, kind), RELU[4]]
    found = snapshots(measured(units=units), "net/r", largest=(1, 1, 1, 1), input_rms=1e7)

    assert flags(found).get("net/r", []) == flag


def test_a_block_is_near_to_firing_where_its_activation_is() -> None:
    """A block whose inner activation has a quiet channel is not called dead for it."""
    units = [layers()[0], unit("net/b.0", 1), activation("net/b.1", 2),
             unit("net/b", 3, activation="relu"), unit("net/d", 4),
             unit("net/c", 5, feeds_output=True)]  # fmt: skip
    found = measured({"net/b.0": {"act_norm": 16.0}}, units=units)
    snapshots(found, "net/b.0", **NEAR)
    for id in ("net/b", "net/b.1"):
        snapshots(found, id, largest=(0, 2, 2, 2), input_rms=1.0)

    assert flags(found) == {}


@pytest.mark.parametrize(
    ("first", "last", "flag"),
    [(0.2, 0.01, []), (0.2, 0.5, ["SATURATED"]), (1.0, 0.01, ["SATURATED"])],
)
def test_what_learnt_to_choose_while_the_loss_went_may_be_sure(
    first: float, last: float, flag: list[str]
) -> None:
    """Attention that was open at first and is one-hot when the problem is solved is well."""
    units = [*RELU[:3], activation("net/r", 3, "softmax"), RELU[4]]
    steps = [step(at, loss=1.0 if at < 4 else last) for at in range(12)]
    found = measured({"net/r": {"saturated_frac": [first] * 5 + [1.0] * 7}}, units=units,
                     steps=steps)  # fmt: skip

    assert flags(found).get("net/r", []) == flag
