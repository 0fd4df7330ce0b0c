"""The audit of a graph with nodes on workers is the audit of the same graph here."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
import torch
from torch import Tensor

import soma
from soma import ChannelConfig
from soma.audit import Audit
from soma.distributed import local_cluster
from soma.errors import TrainingLost, WorkerLost
from soma.health import judge
from tests.distributed.graphs import X, made, weights
from tests.distributed.sick import SICK, Dense, Dying, Witnessed, audited, train

pytestmark = [pytest.mark.process, pytest.mark.slow]

# The first steps are settled together here, and by then it is known what moved later.
_OF_THE_MOMENT = {"away_ever"}


def told(audit: Audit) -> list[tuple[object, ...]]:
    """Return every finding."""
    return [(one.flag, one.unit, one.since, one.why) for one in audit.report().verdict.findings]


def numbers(audit: Audit) -> dict[str, list[tuple[int, float]]]:
    """Return every series by `unit name`."""
    return {
        f"{unit} {name}": list(zip(one.steps, one.values, strict=True))
        for unit, named in audit.measurements.series.items()
        for name, one in named.items()
        if name not in _OF_THE_MOMENT
    }


def same(here: Audit, there: Audit) -> None:
    """Check that two audits have measured and found the same."""
    mine, theirs = numbers(here), numbers(there)
    assert mine.keys() == theirs.keys()
    for name, points in mine.items():
        assert [step for step, _ in points] == [step for step, _ in theirs[name]], name
        values = [value for _, value in theirs[name]]
        assert values == pytest.approx([one for _, one in points], rel=1e-5, nan_ok=True), name
    assert here.measurements.units == there.measurements.units
    assert [one.grad_norm for one in there.measurements.steps] == pytest.approx(
        [one.grad_norm for one in here.measurements.steps], rel=1e-5, nan_ok=True
    )
    assert here.measurements.origins == there.measurements.origins
    assert told(here) == told(there)


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("make", SICK.values(), ids=SICK)
def test_every_sickness(
    make: Callable[..., object], channels: bool, workers: tuple[str, ...]
) -> None:
    """Dead, vanishing over two workers, exploding, no gradient, NaN by origin: as here."""
    scope = {"channels": channels}

    same(audited(make, audit=scope), audited(make, workers, audit=scope))


def test_frozen_by_choice(workers: tuple[str, ...]) -> None:
    """A node on a worker whose parameters are not trained is frozen by choice."""
    make = SICK["healthy, all away"]
    here, there = (audited(make, names, frozen="dense.") for names in ((), workers))

    same(here, there)
    assert there.report().by_id()["dense"].status == "frozen by choice"


def test_groups_of_channels_and_scopes(workers: tuple[str, ...]) -> None:
    """What is watched inside, and groups of channels, are as they were asked for."""
    groups = {"dense_2": {"low": range(3), "high": range(3, 6)}}
    scope = {"inside": {"dense_2": ["1"]}, "channels": ChannelConfig(groups=groups)}
    here, there = (audited(SICK["healthy"], names, audit=scope) for names in ((), workers))

    same(here, there)
    assert "dense_2/1" in there.measurements.units
    assert there.measurements.similarity.keys() == here.measurements.similarity.keys() != set()


@pytest.mark.parametrize("kind", ["healthy", "healthy, all away"])
def test_bad_numbers_from_outside(kind: str, workers: tuple[str, ...]) -> None:
    """A NaN in the data, or born in the loss, is told from one born on a worker."""
    x = X.clone()
    x[3, 2] = math.nan
    data = audited(SICK[kind], workers, x=x)
    loss = audited(SICK[kind], workers, loss=lambda output, _: (output - 1e3).log().mean())

    assert [one.phase for one in data.measurements.origins] == ["data"]
    assert [one.phase for one in loss.measurements.origins] == ["loss"]


def test_all_measure_the_same_steps(workers: tuple[str, ...]) -> None:
    """Which steps are measured whole is decided here, and workers keep to it."""
    audit = audited(SICK["healthy"], workers, audit={"budget": 1e-6}, steps=80)

    whole = [one.step for one in audit.measurements.steps if one.whole]
    assert 64 <= len(whole) < 80
    for unit in ("dense", "dense_2", "dense_2/0"):
        assert audit.timeseries(unit)["act_norm"].steps == whole


def test_training_does_not_notice(workers: tuple[str, ...]) -> None:
    """Weights are the same bits without an audit."""
    plain = made(SICK["branches"], workers)
    plain.make_optimizer(torch.optim.SGD, lr=0.05)
    train(plain)
    watched = made(SICK["branches"], workers)
    watched.make_optimizer(torch.optim.SGD, lr=0.05)
    with watched.gradient_audit(inside=True, channels=True):
        train(watched)

    mine, theirs = weights(plain), weights(watched)
    assert [name for name in mine if not torch.equal(mine[name], theirs[name])] == []


def test_nothing_outlives_its_step(workers: tuple[str, ...]) -> None:
    """On a worker no activation is kept after its step, and after the audit no hook."""
    g = made(lambda at: at(Witnessed(), 1), workers)
    g.make_optimizer(torch.optim.SGD, lr=0.05)
    with g.gradient_audit(inside=True, channels=True):
        train(g)
        assert weights(g)["witnessed.hooks"] == 2
        deadline = monotonic() + 20
        while weights(g)["witnessed.alive"] and monotonic() < deadline:
            with g.evaluating():  # torch frees the graph of a step a little after it
                g.forward(X)
        assert weights(g)["witnessed.alive"] == 0
    train(g, 1)

    assert weights(g)["witnessed.hooks"] == 0


def test_two_audits_at_once(workers: tuple[str, ...]) -> None:
    """Each audit has numbers of its own; the later one begins at its own first step."""
    g = made(SICK["healthy"], workers)
    g.make_optimizer(torch.optim.SGD, lr=0.05)
    with g.gradient_audit() as first:
        train(g, 3)
        with g.gradient_audit(inside=True) as second:
            train(g, 2)

    assert first.timeseries("dense_2")["update_ratio"].steps == [0, 1, 2, 3, 4]
    assert second.timeseries("dense_2/0")["update_ratio"].steps == [0, 1]


def test_the_record_says_the_same(workers: tuple[str, ...], tmp_path: Path) -> None:
    """A tracked run keeps what was measured on workers."""
    g = made(SICK["vanishing"], workers)
    g.make_optimizer(torch.optim.SGD, lr=0.05)
    with g.track_run("away", root=tmp_path) as run, g.gradient_audit(inside=True) as audit:
        train(g)

    measured = soma.RunView(run.dir).measurements()
    assert measured.series.keys() == audit.measurements.series.keys()
    assert judge(measured).findings == audit.report().verdict.findings


def test_a_lost_training_is_ended(workers: tuple[str, ...]) -> None:
    """`stop_when_lost` hears at once of a gradient that is not finite on a worker."""
    g = made(lambda at: at(Dense(6), 1) >> at(Dense(2), 2), workers)
    g.make_optimizer(torch.optim.SGD, lr=0.05)

    def loss(output: Tensor, _: Tensor) -> Tensor:
        return (output * math.inf).sum()

    with g.gradient_audit() as audit:
        audit.stop_when_lost()
        with pytest.raises(TrainingLost, match="at step 0"):
            train(g, loss=loss)


def test_a_lost_worker() -> None:
    """The report tells what was measured until then, and that a worker is gone."""
    with local_cluster(2, timeout=30) as names:
        g = made(lambda at: at(Dying(home=os.getpid()), 1) >> at(Dense(2), 2), names)
        g.make_optimizer(torch.optim.SGD, lr=0.05)
        with g.gradient_audit() as audit:
            train(g, 5)
            audit.report()
            with pytest.raises(WorkerLost):
                train(g, 20)

    assert audit.timeseries("dying")["param_grad_norm"].steps == [0, 1, 2, 3, 4]
    assert audit.timeseries("dying")["act_norm"].steps[:9] == [*range(9)]
    assert len(audit.timeseries("dense")["param_grad_norm"].steps) >= 5
    assert any("worker1 was lost" in one for one in audit.measurements.notes)
