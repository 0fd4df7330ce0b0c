"""The audit finds what is wrong with the runs of the benchmark, where it is, and nothing else."""

from collections.abc import Iterable, Mapping

import pytest

from tests.detection.drive import Scale
from tests.detection.known import KNOWN
from tests.detection.run import Run
from tests.detection.runs import CURED, HEALTHY, SICK
from tests.detection.score import Score, score

# Two runs give a tensor to two optimizers, and are found by their flags too.
pytestmark = pytest.mark.filterwarnings("ignore:two optimizers:soma.errors.SomaWarning")

SEED = 11
FLOAT = [run for run in (*HEALTHY, *SICK) if run.scales and run.first and run.clip is None]
MUCH = 2.0**20  # nearly a million, and exact: the weights take the same path to the last bit


def name(run: object) -> str:
    """Name a run in the list of tests."""
    return run.name if isinstance(run, Run) else ""


def known(runs: Iterable[Run], reasons: Mapping[str, str]) -> list[object]:
    """Mark runs that the audit is known to miss; one that it no longer misses fails."""
    return [
        pytest.param(
            run,
            id=run.name,
            marks=[pytest.mark.xfail(reason=reasons[run.name], strict=True)]
            if run.name in reasons
            else [],
        )
        for run in runs
    ]


@pytest.mark.slow
@pytest.mark.parametrize("run", [*HEALTHY, *CURED], ids=name)
def test_nothing_is_said_of_a_healthy_run(run: Run) -> None:
    """A healthy run, and a sick one without its fault, is not flagged."""
    assert score(run, SEED).wrong == ()


@pytest.mark.slow
@pytest.mark.parametrize("run", known(SICK, KNOWN))
def test_a_fault_is_found_in_its_place(run: Run) -> None:
    """Each fault is reported at its module with its number of channels, and nothing false is."""
    found = score(run, SEED)

    assert found.is_right, told(found)


@pytest.mark.slow
@pytest.mark.parametrize("run", known((*HEALTHY, *SICK), KNOWN))
def test_modules_by_name_are_judged_alike(run: Run) -> None:
    """Modules listed by name in a plain loop are found sick or healthy like those of a graph."""
    found = score(run, SEED, patterns=True)

    assert found.is_right, told(found)


@pytest.mark.slow
@pytest.mark.parametrize("run", [run for run in (*HEALTHY, *SICK) if run.scales], ids=name)
def test_the_unit_of_the_loss_does_not_matter(run: Run) -> None:
    """A loss a million times as large or small, at compensated rates, has the same verdict."""
    plain = score(run, SEED).verdict

    assert score(run, SEED, scale=Scale(loss=MUCH)).verdict == plain
    assert score(run, SEED, scale=Scale(loss=1 / MUCH)).verdict == plain


@pytest.mark.slow
@pytest.mark.parametrize("run", FLOAT, ids=name)
def test_the_unit_of_the_data_does_not_matter(run: Run) -> None:
    """Data a million times as large or small, taken back by the first weights, neither."""
    plain = score(run, SEED).verdict

    assert score(run, SEED, scale=Scale(data=MUCH)).verdict == plain
    assert score(run, SEED, scale=Scale(data=1 / MUCH)).verdict == plain


def told(found: Score) -> str:
    """Say what became of the labels of a run."""
    return f"{found.hits}, and wrongly {found.wrong}"
