"""Hand-written loops under Accelerate are audited like plain ones."""

from contextlib import suppress

import pytest
import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from torch import nn
from torch.nn import functional as F

import soma
from soma.audit import Audit
from soma.errors import InvalidInput
from soma.integrations.accelerate import audit_accelerated
from tests.audit.loops import hook_tables
from tests.integrations.trained import (
    CutNet,
    DeadNet,
    Net,
    X,
    batches,
    by_hand,
    flags,
    norms,
    numbers,
    seeded,
)


def trained(
    net: type = Net,
    *,
    every: int = 1,
    clip: float | None = None,
    scaler: torch.amp.GradScaler | None = None,
    times: int = 2,
    fails_at: int = -1,
    modules: object = None,
    **options: object,
) -> Audit:
    """Train as Accelerate's guide has it; check that no hook is left."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=every)
    model = seeded(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = hook_tables(model, optimizer)
    prepared, stepper = accelerator.prepare(model, optimizer)
    if scaler is not None:  # Accelerate makes one on accelerators only
        stepper = accelerator._optimizers[0] = AcceleratedOptimizer(optimizer, scaler=scaler)
    watched = audit_accelerated(accelerator, modules, inside=True, budget=None, **options)
    with suppress(KeyboardInterrupt), watched as audit:
        for at, (x, y) in enumerate(batches(times=times)):
            with accelerator.accumulate(prepared):
                loss = F.cross_entropy(prepared(x), y) / every
                (loss if scaler is None else scaler.scale(loss)).backward()
                if at == fails_at:
                    raise KeyboardInterrupt
                if accelerator.sync_gradients and clip is not None:
                    if scaler is not None:
                        scaler.unscale_(optimizer)
                    accelerator.clip_grad_norm_(prepared.parameters(), clip)
                stepper.step()
                stepper.zero_grad()
    assert hook_tables(model, optimizer) == before
    return audit


def test_numbers_are_those_of_a_plain_loop() -> None:
    """The audit of an accelerated loop measures what one of a plain loop does, bit for bit."""
    assert numbers(trained()) == numbers(by_hand(batches(times=2)))


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("scale", [None, 4096.0])
def test_norms_before_and_after_clipping(every: int, scale: float | None) -> None:
    """Both norms are told unscaled, and accumulated batches are one step."""
    scaler = None if scale is None else torch.amp.GradScaler("cpu", init_scale=scale)
    mine = trained(every=every, clip=0.05, scaler=scaler)
    theirs = by_hand(batches(times=2), every=every, clip=0.05)

    assert mine.report().n_steps == 8 // every
    assert norms(mine) == [pytest.approx(one, rel=1e-5) for one in norms(theirs)]


class LoudNet(Net):
    """One whose gradients overflow under a large scale."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return large logits."""
        return super().forward(x) * 8


def test_a_step_that_the_scaler_leaves_out_is_skipped() -> None:
    """A scale that overflows is no fault of the net."""
    mine = trained(LoudNet, scaler=torch.amp.GradScaler("cpu", init_scale=3e38))
    skipped = [step.skipped for step in mine.measurements.steps]

    assert skipped[0]
    assert not skipped[-1]
    assert not any("NAN" in one or "INF" in one for one in flags(mine).values())


@pytest.mark.parametrize(("net", "sick"), [(Net, set()), (DeadNet, {"body/1"}), (CutNet, {"body"})])
def test_the_sick_part_is_named(net: type, sick: set[str]) -> None:
    """A dead activation and a cut-off part are flagged by name, a healthy net is not."""
    found = flags(trained(net, times=8, channels=True))

    assert set(found) >= sick
    assert bool(found) == bool(sick)


def test_an_error_takes_back_half_a_step() -> None:
    """What breaks off an accumulation is no step."""
    assert trained(every=2, fails_at=3).report().n_steps == 1


def test_a_run_keeps_what_was_found(tmp_path) -> None:
    """The main process writes into the run that is given."""
    with soma.track_run("accelerated", root=tmp_path) as run:
        trained(CutNet, times=8, run=run)

    assert [row["flag"] for row in soma.RunView(run.dir).health_flags()] == ["NO_GRAD"]


def test_the_plain_audit_knows_accelerated_optimizers() -> None:
    """`soma.audit_modules` takes what Accelerate has prepared, too."""
    accelerator = Accelerator(cpu=True)
    model = nn.Linear(8, 2)
    prepared, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with soma.audit_modules(prepared, optimizer) as audit:
        accelerator.backward(prepared(X).square().mean())
        optimizer.step()

    assert audit.report().n_steps == 1


def test_of_several_models_one_is_to_be_chosen() -> None:
    """Nothing is guessed where two models were prepared, or none was."""
    accelerator = Accelerator(cpu=True)
    with pytest.raises(InvalidInput, match="prepared 0 models"), audit_accelerated(accelerator):
        pass
    critic = accelerator.prepare(nn.Linear(4, 1)), accelerator.prepare(nn.Linear(2, 4))
    with pytest.raises(InvalidInput, match="prepared 2 models"), audit_accelerated(accelerator):
        pass
    with audit_accelerated(accelerator, {"critic": critic[0]}) as audit:
        assert set(audit.report().by_id()) == {"critic"}
