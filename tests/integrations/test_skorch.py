"""Nets of skorch train under audit, alone and in searches."""

from pathlib import Path

import joblib  # noqa: TID251 - how scikit-learn's users keep nets
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from skorch import NeuralNetClassifier
from skorch.callbacks import Callback, GradientNormClipping
from torch import nn

import soma
from soma.errors import InvalidInput, SomaWarning
from soma.integrations.skorch import AuditCallback
from tests.audit.loops import hook_tables
from tests.integrations.trained import (
    CutNet,
    DeadNet,
    Net,
    X,
    Y,
    batches,
    by_hand,
    flags,
    norms,
    numbers,
    seeded,
)

x, y = X.numpy(), Y.numpy()


class Made(nn.Module):
    """A seeded net, as skorch wants to make it."""

    def __init__(self, net: type = Net) -> None:
        super().__init__()
        made = seeded(net)
        self.body, self.head, self.forward_of = made.body, made.head, type(made).forward

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.forward_of(self, x)


class Breaks(Callback):
    """Breaks off a training in its third batch."""

    def __init__(self, error: type = RuntimeError) -> None:
        self.error = error

    def on_grad_computed(self, net: object, named_parameters: object, **_: object) -> None:
        """Raise."""
        if len(net.history[-1, "batches"]) == 3:
            raise self.error("on purpose")


def net(*callbacks: object, made: type = Net, **options: object) -> NeuralNetClassifier:
    """Return a quiet classifier."""
    plain = {"max_epochs": 2, "lr": 0.1, "batch_size": 16, "verbose": 0, "train_split": None}
    return NeuralNetClassifier(
        Made,
        module__net=made,
        criterion=nn.CrossEntropyLoss,
        callbacks=[(f"own{at}", one) for at, one in enumerate(callbacks)],
        **plain | options,
    )


def audited(fitted: NeuralNetClassifier) -> AuditCallback:
    """Return the audit of a fitted net."""
    return dict(fitted.callbacks_)["own0"]


def trained(*callbacks: object, **options: object) -> AuditCallback:
    """Fit under audit; check that no hook is left."""
    watched = AuditCallback(inside=True, channels=True, budget=None)
    fitted = net(watched, *callbacks, **options).fit(x, y)
    assert hook_tables(fitted.module_, fitted.optimizer_) == hook_tables(
        clone(fitted).initialize().module_, fitted.optimizer_
    )
    return audited(fitted)


def test_numbers_are_those_of_a_plain_loop() -> None:
    """A fit measures what a plain loop does, bit for bit."""
    fitted = net(AuditCallback(inside=True, budget=None)).fit(x, y)

    assert numbers(audited(fitted).audit) == numbers(by_hand(batches(times=2)))


@pytest.mark.parametrize("first", [True, False])
def test_norms_before_and_after_clipping(first: bool) -> None:
    """Clipping by another callback shows in the norm that the step used, whoever comes first."""
    clip, watched = GradientNormClipping(0.05), AuditCallback(budget=None)
    fitted = net(*((watched, clip) if first else (clip, watched))).fit(x, y)
    mine = dict(fitted.callbacks_)[f"own{int(not first)}"]

    assert norms(mine.audit) == norms(by_hand(batches(times=2), clip=0.05))


@pytest.mark.parametrize(
    ("made", "sick"), [(Net, set()), (DeadNet, {"body/1"}), (CutNet, {"body"})]
)
def test_the_sick_part_is_named(made: type, sick: set[str]) -> None:
    """A dead activation and a cut-off part are flagged by name, a healthy net is not."""
    found = flags(trained(made=made, max_epochs=8).audit)

    assert set(found) >= sick
    assert bool(found) == bool(sick)


def test_an_error_leaves_no_half_step() -> None:
    """A broken fit leaves no hook once the callback is asked, and no half step."""
    broken = net(AuditCallback(), Breaks()).initialize()
    before = hook_tables(broken.module_, broken.optimizer_)
    with pytest.raises(RuntimeError):
        broken.partial_fit(x, y)

    assert audited(broken).report().n_steps == 2
    assert hook_tables(broken.module_, broken.optimizer_) == before


def test_ctrl_c_ends_the_audit_with_the_loop() -> None:
    """skorch ends its loop on Ctrl-C and tells so."""
    broken = net(AuditCallback(), Breaks(KeyboardInterrupt)).fit(x, y)

    assert audited(broken).report().n_steps == 2
    assert not any(hook_tables(broken.module_, broken.optimizer_)[-4:])


def test_each_fit_is_an_audit_of_its_own() -> None:
    """`partial_fit` goes on with the weights, in another audit."""
    fitted = net(AuditCallback()).fit(x, y)
    one = audited(fitted).audit
    fitted.partial_fit(x, y)

    assert one is not audited(fitted).audit
    assert (one.report().n_steps, audited(fitted).report().n_steps) == (8, 8)


def test_a_lost_training_stops_in_skorchs_way() -> None:
    """`stop_when_lost` ends the fit with a warning and without an error."""
    lost = net(AuditCallback(stop_when_lost=True), lr=1e38, max_epochs=50)
    with pytest.warns(SomaWarning, match="training is stopped: at step"):
        lost.fit(x * 1e3, y)

    assert len(lost.history) < 50


def test_a_clone_has_the_options_and_no_audit() -> None:
    """scikit-learn clones nets for every fold."""
    watched = AuditCallback(["head"], inside=True, thresholds={"vanishing": 1e-3})
    fitted = net(watched).fit(x, y)
    twin = dict(clone(fitted).initialize().callbacks_)["own0"]

    assert twin.get_params() == watched.get_params()
    with pytest.raises(RuntimeError, match="nothing was trained"):
        twin.report()


@pytest.mark.slow  # starts processes
def test_a_search_in_two_processes_audits_the_best(tmp_path: Path) -> None:
    """Each fit of a search writes a run, and the best net has its report."""
    watched = AuditCallback(inside=True, root=tmp_path)
    search = GridSearchCV(net(watched), {"lr": [0.01, 0.1]}, cv=2, n_jobs=2).fit(x, y)

    assert audited(search.best_estimator_).report().n_steps == 8
    assert [run.state for run in soma.runs(tmp_path)] == ["completed"] * 5


@pytest.mark.slow  # starts processes
def test_nets_come_back_from_other_processes_with_their_reports() -> None:
    """What is pickled with a fitted net is its numbers."""
    sick = net(AuditCallback(inside=True, channels=True), made=DeadNet, max_epochs=8)
    found = cross_validate(sick, x, y, cv=2, n_jobs=2, return_estimator=True)
    reports = [audited(one).report() for one in found["estimator"]]

    assert [one.by_id()["body/1"].flags for one in reports] == [["DEAD"]] * 2
    assert np.isfinite(found["test_score"]).all()


def test_one_run_is_not_cloned(tmp_path: Path) -> None:
    """A run belongs to one training; a search is told to use `root`."""
    with soma.track_run("one", root=tmp_path) as run:
        fitted = net(AuditCallback(run=run)).fit(x, y)
        with pytest.raises(InvalidInput, match="Give `root=`"):
            clone(fitted)

    assert soma.RunView(run.dir).verdict().n_steps == 8


def test_a_fitted_net_can_be_dumped(tmp_path: Path) -> None:
    """Its callback comes back with the verdict."""
    fitted = net(AuditCallback()).fit(x, y)
    joblib.dump(fitted, tmp_path / "net")
    again = joblib.load(tmp_path / "net")

    assert audited(again).report().pretty() == audited(fitted).report().pretty()
