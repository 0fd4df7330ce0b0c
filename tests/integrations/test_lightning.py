"""Lightning trains under audit, and the numbers are those of a loop by hand."""

import copy
import subprocess
import sys
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.precision import MixedPrecision
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import soma
from soma.errors import InvalidInput, NotFitted, SomaWarning
from soma.integrations.lightning import AuditCallback
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

pytestmark = pytest.mark.filterwarnings("ignore:You defined a `validation_step` but have no")


class Lit(pl.LightningModule):
    """A net for Lightning; `fails_at` breaks off in that batch."""

    def __init__(self, net=Net, *, lr: float = 0.1, fails_at: int = -1, error=RuntimeError) -> None:
        super().__init__()
        made = seeded(net)
        self.body, self.head = made.body, made.head
        self.forward_of = type(made).forward
        self.loss = nn.CrossEntropyLoss()
        self.lr, self.fails_at, self.error = lr, fails_at, error

    def forward(self, x):
        """Run the net."""
        return self.forward_of(self, x)

    def training_step(self, batch, index):
        """Return the loss."""
        if index == self.fails_at:
            raise self.error("on purpose")
        return self.loss(self(batch[0]), batch[1])

    def validation_step(self, batch, index):
        """Run the net without training it."""
        self(batch[0])

    def configure_optimizers(self):
        """Return the plainest one."""
        return torch.optim.SGD(self.parameters(), lr=self.lr)


def loader() -> DataLoader:
    """Return the data in order, 4 batches."""
    return DataLoader(TensorDataset(X, Y), batch_size=16)


def trainer(tmp_path: Path, *callbacks: pl.Callback, **options: object) -> pl.Trainer:
    """Return a quiet trainer on the CPU."""
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    plain = {"max_epochs": 2, "accelerator": "cpu", "enable_checkpointing": False}
    return pl.Trainer(
        callbacks=list(callbacks), default_root_dir=tmp_path, **quiet | plain | options
    )


def fitted(tmp_path: Path, lit: Lit, *, channels: bool = False, **options: object) -> AuditCallback:
    """Fit under audit; check that no hook is left."""
    callback = AuditCallback(inside=True, channels=channels, budget=None)
    before = hook_tables(lit, None)
    trainer(tmp_path, callback, **options).fit(lit, loader(), loader())
    assert hook_tables(lit, None) == before
    return callback


def test_numbers_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    """A fit with validation and sanity checks measures what a plain loop does, bit for bit."""
    mine, theirs = fitted(tmp_path, Lit()), by_hand(batches(times=2))

    assert {key: one for key, one in numbers(mine.audit).items() if key[0] != "loss"} == numbers(
        theirs
    )


def test_norms_before_and_after_clipping(tmp_path: Path) -> None:
    """`gradient_clip_val` shows in the norm that the step used, not in the one before."""
    mine = fitted(tmp_path, Lit(), gradient_clip_val=0.05)

    assert norms(mine.audit) == norms(by_hand(batches(times=2), clip=0.05))
    assert all(left > 0.05 >= round(used, 6) for left, used in norms(mine.audit))


def test_accumulation_is_one_step(tmp_path: Path) -> None:
    """Two batches accumulated are one step, with the norm of the sum."""
    mine = fitted(tmp_path, Lit(), accumulate_grad_batches=2, gradient_clip_val=0.05)

    assert mine.report().n_steps == 4
    assert norms(mine.audit) == norms(by_hand(batches(times=2), every=2, clip=0.05))


def test_a_scaled_loss_is_unscaled_before_it_is_told(tmp_path: Path) -> None:
    """Under a gradient scaler, both norms are those without one."""
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaled = MixedPrecision("16-mixed", "cpu", scaler)
    scaled.autocast_context_manager = lambda: torch.autocast("cpu", enabled=False)
    mine = fitted(tmp_path, Lit(), plugins=[scaled], gradient_clip_val=0.05)

    for seen, true in zip(
        norms(mine.audit), norms(by_hand(batches(times=2), clip=0.05)), strict=True
    ):
        assert seen == pytest.approx(true, rel=1e-4)


@pytest.mark.parametrize(("net", "sick"), [(Net, set()), (DeadNet, {"body/1"}), (CutNet, {"body"})])
def test_the_sick_part_is_named(tmp_path: Path, net: type, sick: set[str]) -> None:
    """A dead activation and a cut-off part are flagged by name, a healthy net is not."""
    found = flags(fitted(tmp_path, Lit(net), channels=True, max_epochs=8).audit)

    assert set(found) >= sick
    assert bool(found) == bool(sick)


def test_a_nan_is_followed_to_where_it_began(tmp_path: Path) -> None:
    """A NaN is found although Lightning runs the backward inside the optimizer's step."""
    lit = Lit()
    lit.body[2].weight.data[0, 0] = torch.nan
    mine = fitted(tmp_path, lit, max_epochs=1)

    assert mine.audit.measurements.origins[0].unit == "body/2"
    assert flags(mine.audit)["body/2"] == ["NAN"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_no_hook_and_no_half_step(tmp_path: Path, error: type) -> None:
    """What breaks off an accumulation is no step, and takes the hooks along."""
    lit, callback = Lit(fails_at=3, error=error), AuditCallback()
    before = hook_tables(lit, None)
    with pytest.raises((error, SystemExit)):
        trainer(tmp_path, callback, accumulate_grad_batches=2).fit(lit, loader())

    assert callback.report().n_steps == 1
    assert hook_tables(lit, None) == before


def test_a_second_fit_and_a_resumed_one_are_audits_of_their_own(tmp_path: Path) -> None:
    """Each `fit` starts anew, from a checkpoint too."""
    callback, lit = AuditCallback(), Lit()
    first = trainer(tmp_path, callback, max_epochs=1)
    first.fit(lit, loader())
    first.save_checkpoint(tmp_path / "one.ckpt")
    one = callback.audit
    trainer(tmp_path, callback, max_epochs=3).fit(lit, loader(), ckpt_path=tmp_path / "one.ckpt")

    assert (one.report().n_steps, callback.report().n_steps) == (4, 8)


def test_prediction_and_tests_are_not_looked_at(tmp_path: Path) -> None:
    """Only `fit` is audited."""
    callback = AuditCallback()
    trainer(tmp_path, callback).validate(Lit(), loader(), verbose=False)

    with pytest.raises(NotFitted, match="nothing was trained"):
        callback.report()


def test_parts_can_be_named(tmp_path: Path) -> None:
    """Dotted names choose other parts than the children, and a wrong one is told."""
    callback = AuditCallback(["body.0", "head"])
    trainer(tmp_path, callback, max_epochs=1).fit(Lit(), loader())
    wrong = AuditCallback(["boddy"])

    assert set(callback.report().by_id()) == {"body.0", "head"}
    with pytest.raises(InvalidInput, match=r"no such submodule.*Did you mean `body`"):
        trainer(tmp_path, wrong).fit(Lit(), loader())


def test_a_lost_training_stops_in_lightnings_way(tmp_path: Path) -> None:
    """`stop_when_lost` ends the fit with a warning and without an error."""
    callback = AuditCallback(stop_when_lost=True)
    lit = Lit()
    lit.head.weight.data.fill_(torch.nan)
    fit = trainer(tmp_path, callback, max_epochs=5)
    with pytest.warns(SomaWarning, match="training is stopped: at step 0 the optimizer used"):
        fit.fit(lit, loader())

    assert fit.global_step == 1


def test_findings_are_told_while_training_goes_on(tmp_path: Path) -> None:
    """`on_finding` hears of a dead activation during the fit."""
    heard: list[str] = []
    callback = AuditCallback(
        inside=True, channels=True, on_finding=lambda one: heard.append(one.unit)
    )
    trainer(tmp_path, callback, max_epochs=8).fit(Lit(DeadNet), loader())

    assert "body/1" in heard


def test_a_fit_writes_a_run_of_its_own(tmp_path: Path) -> None:
    """With `root`, each fit is a run that can be judged later."""
    callback = AuditCallback(inside=True, channels=True, root=tmp_path)
    trainer(tmp_path, callback, max_epochs=8).fit(Lit(DeadNet), loader())
    (run,) = soma.runs(tmp_path)

    assert (run.name, run.state) == ("Lit", "completed")
    assert "body/1" in run.verdict().pretty()


def test_an_error_fails_the_run(tmp_path: Path) -> None:
    """The run of a fit that breaks off says so."""
    callback = AuditCallback(root=tmp_path)
    with pytest.raises(RuntimeError):
        trainer(tmp_path, callback).fit(Lit(fails_at=2), loader())

    assert soma.runs(tmp_path)[0].state == "failed"


def test_a_copy_keeps_the_report(tmp_path: Path) -> None:
    """A copy made during training has options and verdict, and no hooks."""
    copies: list[AuditCallback] = []
    callback = AuditCallback(
        inside=True, channels=True, on_finding=lambda _: copies.append(copy.deepcopy(callback))
    )
    trainer(tmp_path, callback, max_epochs=8).fit(Lit(DeadNet), loader())

    assert copies[0].inside is True
    assert "body/1" in copies[0].report().by_id()
    with pytest.raises(NotFitted):
        _ = copies[0].audit


@pytest.mark.parametrize("library", ["lightning", "transformers", "accelerate", "skorch"])
def test_a_missing_library_is_named_with_its_command(library: str) -> None:
    """A door opens without its library, and what is behind it says how to install that."""
    module = {"lightning": "pytorch_lightning"}.get(library, library)
    name = "audit_accelerated" if library == "accelerate" else "AuditCallback"
    code = (
        "import sys\n"
        f"sys.modules[{module!r}] = None\n"
        f"import soma.integrations.{library} as door\n"
        f"try: door.{name}\n"
        "except ImportError as missing: print(missing)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert f"pip install 'soma-graph[{library}]'" in done.stdout
