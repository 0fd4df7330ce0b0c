"""Audits of data-parallel ranks: one set of numbers, and what is said where ranks differ."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch.multiprocessing as processes

import soma
from soma.errors import ModeError
from tests.distributed.graphs import X, Y
from tests.distributed.ranks import module, rank_of, trained

pytestmark = [pytest.mark.process, pytest.mark.slow]


def told(folder: Path, case: str) -> list[dict[str, Any]]:
    """Return what each of two spawned ranks has reported; None of one that did not."""
    processes.spawn(rank_of, args=(case, str(folder)), nprocs=2)
    return [json.loads(one.read_text()) for one in sorted(folder.glob("*.json"))]


def same_as_one_process(found: dict[str, Any]) -> None:
    """Check numbers of ranks against one process that has the whole batch."""
    alone = trained(module(), X, Y).report()
    assert found["rows"].keys() == alone.by_id().keys()
    # Each rank knows its own mean alone, and ranks of a spectrum do not add up.
    apart = {"act_std", "batch_variance_ratio", "effective_rank"}
    for id, row in alone.by_id().items():
        for name, value in row.metrics.items():
            if name not in apart:
                assert found["rows"][id][name] == pytest.approx(value, rel=1e-4, abs=1e-7), name


def test_ranks_are_one_process(tmp_path: Path) -> None:
    """Two ranks with half of a batch measure what one process with all of it does."""
    first, second = told(tmp_path, "healthy")

    assert first["rows"] == second["rows"]
    assert first["notes"] == []
    assert first["own"]["net"]["out_grad_norm"] != second["own"]["net"]["out_grad_norm"]
    same_as_one_process(first)


def test_under_torchrun(tmp_path: Path) -> None:
    """The same under torchrun."""
    file = Path(__file__).with_name("ranks.py")
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(file)]
    subprocess.run(
        [sys.executable, *command, "healthy", str(tmp_path)],
        check=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        timeout=100,
    )

    same_as_one_process(json.loads((tmp_path / "1.json").read_text()))


@pytest.mark.parametrize(
    ("case", "note"),
    [
        ("nan", "numbers were not finite at step 2 on rank 1 alone"),
        ("weights", "weights of `net/dense.0` differ between rank 0 and rank 1 since step 3"),
        ("leaves early", "different numbers of steps: 6 on rank 0, 3 on rank 1"),
        ("budget", "ranks have measured different steps whole"),
    ],
)
def test_ranks_that_differ(case: str, note: str, tmp_path: Path) -> None:
    """A NaN, weights, steps that one rank has alone: both say so."""
    for one in told(tmp_path, case):
        assert any(note in said for said in one["notes"]), one["notes"]


def test_a_rank_that_never_comes(tmp_path: Path) -> None:
    """The others wait for a limited time, and say who is missing."""
    (found,) = told(tmp_path, "never comes")

    assert "rank 1 did not ask for the numbers of all ranks within 2 s" in found["notes"][0]
    assert found["rows"]["net"]["out_grad_norm"] == found["own"]["net"]["out_grad_norm"]


def test_without_ranks() -> None:
    """Where there are no ranks the error says what to call."""
    with soma.audit_modules(module()) as audit:
        pass

    with pytest.raises(ModeError, match="init_process_group"):
        audit.report_of_all_ranks()
