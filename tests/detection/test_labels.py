"""The labels of the benchmark are true: plain torch and hand-made measurements say so, no audit."""

from functools import lru_cache

import pytest

from tests.detection.evidence import Evidence, gather
from tests.detection.health import complaints
from tests.detection.labels import claim
from tests.detection.run import Label, Run
from tests.detection.runs import CURED, HEALTHY, SICK

SEED = 11
BY_NAME = {run.name: run for run in (*HEALTHY, *SICK, *CURED)}
LABELS = [
    pytest.param(run, label, id=f"{run.name}-{label.flag}-{label.unit}")
    for run in SICK
    for label in run.labels
]
FAMILIES = {
    "VANISHING", "EXPLODING", "NAN", "INF", "DEAD", "SATURATED", "DEAD_CHANNELS",
    "IGNORED_CHANNELS", "LEAKAGE", "FROZEN", "NO_GRAD", "UNUSED", "LR_HIGH", "LR_LOW", "COLLAPSE",
    "STALE_GRAD",
}  # fmt: skip


@lru_cache(maxsize=8)
def evidence(name: str) -> Evidence:
    """Measure a run once for all that is asked of it."""
    return gather(BY_NAME[name], SEED)


def name(run: object) -> str:
    """Name a run in the list of tests."""
    return run.name if isinstance(run, Run) else ""


@pytest.mark.slow
@pytest.mark.parametrize("run", HEALTHY, ids=name)
def test_a_healthy_run_learns_with_all_its_parts(run: Run) -> None:
    """The loss falls, each parameter moves by a gradient that matters, no fault can be measured."""
    assert list(complaints(evidence(run.name))) == []


@pytest.mark.slow
@pytest.mark.parametrize(("run", "label"), LABELS)
def test_a_label_is_what_can_be_measured(run: Run, label: Label) -> None:
    """What a label claims of a unit holds by direct measurement."""
    holds, numbers = claim(evidence(run.name), label)

    assert holds, numbers


@pytest.mark.slow
@pytest.mark.parametrize("run", SICK, ids=name)
def test_without_its_fault_a_sick_run_is_healthy(run: Run) -> None:
    """The twin that differs by the fault alone learns with all its parts."""
    twin = evidence(run.cured().name)

    assert [label.flag for label in run.labels if claim(twin, label).holds] == []
    assert list(complaints(twin)) == []


def test_every_flag_has_runs() -> None:
    """Each family of flags is there, and all but one in several kinds of networks."""
    kinds = {flag: {run.kind for run in SICK if has(run, flag)} for flag in FAMILIES}

    assert {flag for flag, found in kinds.items() if len(found) < 2} <= {"LEAKAGE"}
    assert len(HEALTHY) >= 18


def has(run: Run, flag: str) -> bool:
    """Is a run labelled with a flag?"""
    return any(label.flag == flag for label in run.labels)


def test_names_are_used_once() -> None:
    """No two runs go by the same name."""
    names = [run.name for run in (*HEALTHY, *SICK)]

    assert len(names) == len(set(names))
