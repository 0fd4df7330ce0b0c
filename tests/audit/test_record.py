"""What an audit leaves in the directory of a run."""

import json
from contextlib import nullcontext

import pytest
import torch
from torch import nn

import soma
from soma.audit._thinning import Strides, kept_steps
from soma.errors import InvalidInput
from soma.health import Step, judge, measurements_from_rows
from soma.tracking import track_run
from tests.audit.loops import X, plain_step
from tests.audit.test_graph import Dense, Modules


def rows_of(run) -> list[dict[str, object]]:
    """Read the rows of an audit, as strict JSON."""
    lines = (run.dir / "diagnostics" / "audit.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line, parse_constant=pytest.fail) for line in lines]


def test_the_record_says_what_the_audit_says(tmp_path) -> None:
    """Judged again from its record, a run gets the verdict that it got."""
    torch.manual_seed(0)
    g = soma.Graph.somatize(Dense(width=3) >> Dense(width=2), cache=None)
    g.materialize(X)
    g.train()
    g.make_optimizer(torch.optim.SGD, lr=0.05)
    with g.track_run("health", root=tmp_path) as run, g.gradient_audit(channels=True) as audit:
        for step in range(6):
            with g.context() as ctx:
                g.zero_grad()
                output, _ = g.forward(X * (torch.nan if step == 5 else 1.0))
                g.backward(ctx, output.square().mean())
            g.step(ctx)

    again = measurements_from_rows(rows_of(run))
    found = json.loads((run.dir / "diagnostics" / "health.json").read_text("utf-8"))
    assert judge(again).findings == audit.report().findings != ()
    assert again.series.keys() == audit.measurements.series.keys()
    assert found["flags"] == audit.report().rollup()


def test_rows_come_while_it_goes_on(tmp_path) -> None:
    """Each step is in the file once, however often it was written to."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with track_run("loop", root=tmp_path) as run:
        with soma.audit_modules({"m": model}, run=run, channels=True) as audit:
            (record,) = audit._records
            for _ in range(7):
                plain_step(model, optimizer, X)
                record._due = 0.0
            before = rows_of(run)
        after = rows_of(run)
    assert [row["step"] for row in before if row["kind"] == "step"] == list(range(6))
    for kind in ("step", "numbers", "channels"):
        assert [row["step"] for row in after if row["kind"] == kind] == list(range(7))


def test_the_flow_is_drawn_without_the_audit(tmp_path) -> None:
    """What is recorded of a module's inside does not show that somebody measured there."""
    found = []
    for watched in (False, True):
        torch.manual_seed(0)
        g = soma.Graph(cache=None)
        g.node("encoder", Modules())
        g.materialize(X)
        g.train()
        g.make_optimizer(torch.optim.SGD, lr=0.05)
        audit = g.gradient_audit(inside=True, channels=True) if watched else nullcontext()
        with g.track_run("flow", root=tmp_path) as run, audit:
            for _ in range(4):
                with g.context() as ctx:
                    g.zero_grad()
                    g.backward(ctx, g.forward(X)[0].square().mean())
                g.step(ctx)
        found.append((run.dir / "modules.json").read_bytes())
    assert found[0] == found[1]


def test_every_audit_of_a_run_is_kept(tmp_path) -> None:
    """Two audits of one run, one inside the other, have files of their own; the last is shown."""
    outer, inner = nn.Linear(4, 2), nn.Linear(4, 2)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.01) for one in (outer, inner)]
    with (
        track_run("loop", root=tmp_path) as run,
        soma.audit_modules({"outer": outer}, optimizers[0], run=run),
    ):
        plain_step(outer, optimizers[0], X)
        with soma.audit_modules({"inner": inner}, optimizers[1], run=run):
            plain_step(inner, optimizers[1], X)
        plain_step(outer, optimizers[0], X)
    views = [soma.RunView(run.dir, audit=number) for number in (1, 2, None)]
    assert views[0].audits == 2
    assert [[*view.measurements().units] for view in views] == [["outer"], ["inner"], ["inner"]]
    assert [view.verdict().n_steps for view in views] == [2, 1, 1]


def test_lines_are_kept_from_the_start(tmp_path) -> None:
    """A run that is still going on is judged by the thresholds of its audit."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with (
        track_run("loop", root=tmp_path) as run,
        soma.audit_modules({"m": model}, run=run, thresholds={"leakage": 0.5}) as audit,
    ):
        for _ in range(3):
            audit._records[0]._due = 0.0
            plain_step(model, optimizer, X)
        assert soma.RunView(run.dir).verdict().verdict.thresholds.leakage == 0.5


def test_a_long_record_stays_small(tmp_path) -> None:
    """What a file may hold is bounded; it says what it leaves out, and is judged as before."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with torch.no_grad():
        model[0].bias[:5] = -50.0
    with track_run("loop", root=tmp_path) as run:
        audit_of = soma.audit_modules({"m": model}, run=run, inside=True, channels=True)
        with audit_of as audit:
            audit._records[0].most = 50_000
            for step in range(120):
                audit._records[0]._due = 0.0
                plain_step(model, optimizer, X * (3.0 if step == 101 else 1.0))
    again = soma.RunView(run.dir)
    assert (run.dir / "diagnostics" / "audit.jsonl").stat().st_size < 250_000
    assert [note.split(", ")[0] for note in again.measurements().notes] == ["to stay small"] * 2
    assert again.verdict().n_steps == 120
    flags = [one.by_id()["m/1"].flags for one in (audit.report(), again.verdict())]
    assert flags[0] == flags[1] != []
    assert 101 in [one.step for one in again.measurements().steps]


@pytest.mark.parametrize("stride", [1, 4])
def test_a_group_of_steps_keeps_its_worst(stride: int) -> None:
    """Of steps that go together a whole one is kept, and the first that is not finite."""
    bad = {5: torch.inf, 6: torch.nan}
    steps = [
        Step(step=at, whole=at % 4 == 2, skipped=False, loss=None, grad_norm=bad.get(at, 1.0),
             grad_norm_at_step=1.0, output_grad_norm=1.0, output_norm=1.0, stale=False)
        for at in range(8)
    ]  # fmt: skip
    wanted = [*range(8)] if stride == 1 else [0, 2, 4, 5, 6]

    assert [*kept_steps(steps, Strides(stride, stride))] == wanted


@pytest.mark.parametrize("given", ["runs/first", 3])
def test_what_is_no_run(given: object) -> None:
    """A path in place of a run is told of, before anything is hooked."""
    model = nn.Linear(4, 2)
    with (
        pytest.raises(InvalidInput, match="a run that goes on is wanted"),
        soma.audit_modules({"m": model}, run=given),
    ):
        pass
    assert not model._forward_hooks
