"""A data-parallel training of a graph's module under audit, as two processes run it.

`torchrun` runs this file as a script, and tests spawn `rank_of`; each rank writes what it found.
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import soma
from soma import Graph
from soma.audit import Audit
from tests.distributed.graphs import X, Y
from tests.training.filters import Dense

STEPS = 6


def module() -> nn.Module:
    """Return the module of a small graph, the same in each process."""
    torch.manual_seed(0)
    g = Graph.somatize(Dense(6, nn.Tanh) >> Dense(6, nn.ReLU) >> Dense(2)).materialize(X)
    return g.train().module()


def trained(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, case: str = "", rank: int = 0
) -> Audit:
    """Return the audit of a plain loop; what goes wrong in it is on rank 1."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scope = {
        "inside": True,
        "channels": True,
        "budget": 1e-6 if rank and case == "budget" else None,
    }
    with soma.audit_modules({"net": model}, optimizer, **scope) as audit:
        for step in range(72 if case == "budget" else STEPS):
            if rank and case == "leaves early" and step == 3:
                break
            if rank and case == "nan" and step == 2:
                x = torch.full_like(x, torch.nan)
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            if rank and case == "weights" and step == 2:
                with torch.no_grad():
                    next(model.parameters()).mul_(1.5)
    return audit


def run(case: str, folder: str) -> None:
    """Be one rank, in a group that is there."""
    rank = dist.get_rank()
    try:
        half = slice(rank * 12, rank * 12 + 12)
        plain = case in ("leaves early", "never comes")  # averaging would wait for ever
        model = module() if plain else DistributedDataParallel(module())
        audit = trained(model, X[half], Y[half], case, rank)
        if rank and case == "never comes":
            return
        report = audit.report_of_all_ranks(timeout=2 if plain else 60)
        rows = {row.filter_id: dict(row.metrics) for row in report.filters}
        told = {
            "rows": rows,
            "notes": list(report.verdict.facts["notes"]),
            "flags": sorted({flag for row in report.filters for flag in row.flags}),
            "own": {row.filter_id: dict(row.metrics) for row in audit.report().filters},
            "steps": report.n_steps,
        }
        (Path(folder) / f"{rank}.json").write_text(json.dumps(told))
        if case != "never comes":
            dist.barrier()
    finally:
        dist.destroy_process_group()


def rank_of(rank: int, case: str, folder: str) -> None:
    """Be one of two spawned processes, which find each other by a file."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    run(case, folder)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(*sys.argv[1:])
