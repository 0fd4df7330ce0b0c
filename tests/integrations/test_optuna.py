"""Studies of Optuna over graphs: values, runs, storage, threads, and ends by health."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import TrialState
from sklearn.model_selection import GridSearchCV

import soma
from soma.errors import InvalidInput, UnknownFlag
from soma.integrations.optuna import HealthPruner, suggest, trial_run
from tests.core.test_search import spaces
from tests.integrations.studies import accuracy_of, digits, graph

NAMES = {"scale.size", "body.width", "body.activation", "head.rate"}
SAMPLERS = [optuna.samplers.TPESampler, optuna.samplers.RandomSampler]


def study_of(sampler: Any = None, pruner: Any = None, **options: Any) -> optuna.Study:
    """Return a study of accuracies that says nothing."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = sampler or optuna.samplers.RandomSampler(seed=0)
    pruner = pruner or HealthPruner()
    return optuna.create_study(
        direction="maximize", sampler=sampler, pruner=pruner, **{"study_name": "digits", **options}
    )


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_study_searches_what_the_graph_declares(sampler: Any, tmp_path: Path) -> None:
    """Each trial has values of all spaces, learns, and is a run with these values."""
    study = study_of(sampler(seed=1))
    study.optimize(accuracy_of(graph(), tmp_path), n_trials=4)

    assert all(trial.params.keys() == NAMES for trial in study.trials)
    assert study.best_value > 0.4
    runs = {run.id: run for run in soma.runs(tmp_path)}
    for trial in study.trials:
        run = runs[trial.user_attrs["soma.run"]]
        assert (run.name, run.params) == (f"digits #{trial.number}", trial.params)
        told = [point["value"] for point in run.metric_series("value")]
        assert told == list(trial.intermediate_values.values())


def test_healthy_trials_are_not_pruned(tmp_path: Path) -> None:
    """Whatever the audit remarks, a trial that learns comes to its end."""
    study = study_of()
    study.optimize(accuracy_of(graph(), tmp_path), n_trials=4)

    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE}
    assert {run.state for run in soma.runs(tmp_path)} == {"completed"}


def test_a_dead_layer_ends_its_trial(tmp_path: Path) -> None:
    """The study and the run say which flag, where, and since when."""
    study = study_of()
    study.enqueue_trial({"body.activation": "relu"})
    study.optimize(accuracy_of(graph(bias=-1000.0), tmp_path), n_trials=1)
    (trial,), (run,) = study.trials, soma.runs(tmp_path)

    assert trial.state == TrialState.PRUNED
    reason = trial.user_attrs["soma.pruned"]
    assert (reason["flag"], reason["node"], reason["since"]) == ("DEAD", "body/1", 0)
    assert (run.state, run.error.split(",")[0]) == ("interrupted", "TrialPruned: DEAD at body/1")
    assert "DEAD" in {flag["flag"] for flag in run.health_flags()}


def test_a_learning_rate_that_is_too_high_ends_its_trial(tmp_path: Path) -> None:
    """The weights explode, and the study says where and since when."""
    study = study_of()
    study.optimize(accuracy_of(graph(), tmp_path, rate=30.0), n_trials=1)
    (trial,) = study.trials

    assert trial.state == TrialState.PRUNED
    assert trial.user_attrs["soma.pruned"]["flag"] == "EXPLODING"
    assert list(trial.intermediate_values) == [0]


def test_what_cannot_recover_ends_in_the_middle_of_training(tmp_path: Path) -> None:
    """Weights that are NaN end a trial before it reports anything."""
    study = study_of()
    x, y, *_ = digits()

    def objective(trial: optuna.Trial) -> float:
        mine = suggest(trial, graph())
        with trial_run(trial, mine, root=tmp_path):
            mine.fit(x, y, loss=lambda out, y: (out - out).sum() / 0.0, progress=False)
        return 0.0

    study.optimize(objective, n_trials=1)
    (trial,), (run,) = study.trials, soma.runs(tmp_path)

    assert (trial.state, run.state) == (TrialState.PRUNED, "interrupted")
    assert trial.user_attrs["soma.pruned"]["flag"] == "NAN"


def test_other_flags_can_be_asked_for(tmp_path: Path) -> None:
    """A trial goes on with what is not among the flags, and the study still knows of it."""
    study = study_of(pruner=HealthPruner(flags=["NAN"]))
    study.enqueue_trial({"body.activation": "relu"})
    study.optimize(accuracy_of(graph(bias=-1000.0), tmp_path, epochs=1), n_trials=1)
    (trial,) = study.trials

    assert trial.state == TrialState.COMPLETE
    assert "DEAD" in {fault["flag"] for fault in trial.user_attrs["soma.health"]}


@pytest.mark.parametrize(
    "inner",
    [
        None,
        optuna.pruners.NopPruner(),
        optuna.pruners.MedianPruner(n_startup_trials=0),
        optuna.pruners.SuccessiveHalvingPruner(),
        optuna.pruners.HyperbandPruner(min_resource=1, max_resource=4),
        optuna.pruners.ThresholdPruner(lower=0.0),
    ],
)
def test_a_reported_nan_ends_a_trial_whatever_the_inner_pruner(inner: Any, tmp_path: Path) -> None:
    """The pruners of Optuna differ in this; ours asks none of them."""
    study = study_of(pruner=HealthPruner(inner))

    def objective(trial: optuna.Trial) -> float:
        with trial_run(trial, suggest(trial, graph()), root=tmp_path) as run:
            run.report(float("nan"), 0)
        return 0.0

    study.optimize(objective, n_trials=1)

    assert study.trials[0].user_attrs["soma.pruned"]["why"] == "the reported value is NaN"


def test_the_inner_pruner_counts_as_well(tmp_path: Path) -> None:
    """A healthy trial that is worse than others ends by it; no fault is given as the reason."""
    study = study_of(pruner=HealthPruner(optuna.pruners.MedianPruner(n_startup_trials=1)))

    def objective(trial: optuna.Trial) -> float:
        with trial_run(trial, suggest(trial, graph()), root=tmp_path) as run:
            run.report(-trial.number, 0)
        return -trial.number

    study.optimize(objective, n_trials=2)

    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE, TrialState.PRUNED]
    assert "soma.pruned" not in study.trials[1].user_attrs
    assert soma.runs(tmp_path)[0].error == (
        "TrialPruned: at step 0 by `MedianPruner`, with a value of -1.0"
    )


def test_an_error_in_a_trial_leaves_its_run_failed(tmp_path: Path) -> None:
    """The error goes on its way to Optuna."""
    study = study_of()

    def objective(trial: optuna.Trial) -> float:
        with trial_run(trial, suggest(trial, graph()), root=tmp_path):
            raise ZeroDivisionError("nothing left")

    study.optimize(objective, n_trials=1, catch=ZeroDivisionError)

    assert study.trials[0].state == TrialState.FAIL
    assert [(run.state, run.error) for run in soma.runs(tmp_path)] == [
        ("failed", "ZeroDivisionError: nothing left")
    ]


def test_a_study_in_sqlite_goes_on(tmp_path: Path) -> None:
    """Values and reasons survive in the file; another process, here another study, goes on."""
    storage = f"sqlite:///{tmp_path / 'studies.db'}"
    sick = accuracy_of(graph(bias=-1000.0, activation="relu"), tmp_path, epochs=1)
    study_of(storage=storage).optimize(sick, n_trials=1)
    again = study_of(storage=storage, load_if_exists=True)
    again.optimize(accuracy_of(graph(), tmp_path, epochs=1), n_trials=1)

    assert [trial.state for trial in again.trials] == [TrialState.PRUNED, TrialState.COMPLETE]
    assert again.trials[0].user_attrs["soma.pruned"]["flag"] == "DEAD"
    assert (
        suggest(again.best_trial, graph()).filter("body").width == (again.best_params["body.width"])
    )


# The global generators are the whole process's, so a draw of the other thread looks like one here.
@pytest.mark.filterwarnings("ignore:.*draws from a global random generator")
def test_trials_in_threads_keep_apart(tmp_path: Path) -> None:
    """Two at a time, each with its own graph, run and verdict."""
    study = study_of()
    study.optimize(accuracy_of(graph(), tmp_path, epochs=2), n_trials=4, n_jobs=2)

    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 4
    assert len({trial.user_attrs["soma.run"] for trial in study.trials}) == 4
    assert {run.state for run in soma.runs(tmp_path)} == {"completed"}


def test_an_objective_is_tried_without_a_study(tmp_path: Path) -> None:
    """A `FixedTrial` is a run like any other, and no pruner ends it."""
    g = soma.Graph.somatize(soma.Filter() >> soma.Filter(), cache=None)
    trial = optuna.trial.FixedTrial({}, number=3)

    with trial_run(trial, suggest(trial, g), root=tmp_path) as run:
        run.report(float("nan"), 0)

    (kept,) = soma.runs(tmp_path)
    assert (kept.name, kept.state) == ("trial #3", "completed")
    assert trial.user_attrs["soma.run"] == kept.id


def test_a_graph_without_modules_is_tracked_too(tmp_path: Path) -> None:
    """There is nothing to audit, and values are reported as ever."""
    g = soma.Graph.somatize(soma.Filter() >> soma.Filter(), cache=None)
    study = study_of()

    def objective(trial: optuna.Trial) -> float:
        with trial_run(trial, suggest(trial, g), root=tmp_path) as run:
            run.report(1.0, 0)
            assert run.audit is None
        return 1.0

    study.optimize(objective, n_trials=1)

    assert study.best_params == {}


@settings(max_examples=40)
@given(st.lists(spaces(), min_size=1, max_size=4), st.integers(0, 2**31))
def test_what_is_suggested_is_inside(declared: list[Any], seed: int) -> None:
    """Samplers draw values of the spaces, and `apply_params` takes them from the study."""
    names = [f"p{number}" for number in range(len(declared))]
    body = dict(zip(names, declared, strict=True))
    g = soma.Graph.somatize(type("Any", (soma.Filter,), body)(), cache=None)
    study = study_of(optuna.samplers.RandomSampler(seed=seed))
    trial = study.ask()
    made = suggest(trial, g)

    for name, one in body.items():
        value = getattr(made.filter("any"), name)
        assert one.space.checked(value) == value
    assert repr(soma.apply_params(g, trial.params).filters()) == repr(made.filters())


def test_a_search_of_scikit_learn_knows_the_same_names() -> None:
    """`node__attribute` there, for what is declared and what is not."""
    x, y, *_ = digits()
    model = soma.as_estimator(graph(), kind="classifier", epochs=1, random_state=0)
    search = GridSearchCV(model, {"body__width": [8, 16], "head__rate": [0.01]}, cv=2)
    best = search.fit(x, y).best_estimator_

    assert best.graph_.filter("body").width == search.best_params_["body__width"]
    assert best.graph_.filter("head").rate == 0.01


@pytest.mark.process
def test_without_optuna_the_door_says_what_to_install() -> None:
    """The room is imported without it; what is taken from the room tells the command."""
    code = (
        "import sys, soma.integrations.optuna as door; assert 'optuna' not in sys.modules; "
        "sys.modules['optuna'] = None; door.suggest"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "Install it with: pip install 'soma-graph[optuna]'" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"flags": ["DEAF"]}, UnknownFlag, "Did you mean `DEAD`?"),
        ({"inner": "median"}, InvalidInput, "a pruner of Optuna is wanted"),
    ],
)
def test_what_a_pruner_cannot_work_with_is_told(
    arguments: dict[str, Any], error: type[Exception], told: str
) -> None:
    """It says what there is."""
    with pytest.raises(error) as caught:
        HealthPruner(**arguments)

    assert told in str(caught.value)
