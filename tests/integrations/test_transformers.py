"""The `Trainer` of Transformers trains under audit, like a loop by hand."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import Dataset, SequentialSampler
from transformers import Trainer, TrainingArguments

import soma
from soma.errors import SomaWarning
from soma.integrations.transformers import AuditCallback
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

pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true")


class Rows(Dataset):
    """The data as a `Trainer` wants it."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, at: int) -> dict[str, torch.Tensor]:
        return {"x": X[at], "labels": Y[at]}


class Hf(nn.Module):
    """A net that returns its loss; `fails_at` breaks off in that forward."""

    def __init__(self, net: type = Net, *, fails_at: int = -1, error: type = RuntimeError) -> None:
        super().__init__()
        made = seeded(net)
        self.body, self.head, self.forward_of = made.body, made.head, type(made).forward
        self.fails_at, self.error, self.calls = fails_at, error, 0

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return loss and logits."""
        if self.calls == self.fails_at:
            raise self.error("on purpose")
        self.calls += self.training
        logits = self.forward_of(self, x)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


class InOrder(Trainer):
    """A trainer that does not shuffle."""

    def _get_train_sampler(self, *_: object) -> SequentialSampler:
        return SequentialSampler(self.train_dataset)


def trainer(tmp_path: Path, model: nn.Module, *callbacks: object, **options: object) -> Trainer:
    """Return a quiet trainer on the CPU, with plain SGD."""
    plain = {
        "output_dir": str(tmp_path / "out"),
        "per_device_train_batch_size": 16,
        "num_train_epochs": 2,
        "max_grad_norm": 0.0,
        "use_cpu": True,
        "report_to": [],
        "save_strategy": "no",
        "disable_tqdm": True,
        "logging_strategy": "no",
    }
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    constant = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
    return InOrder(
        model,
        TrainingArguments(**plain | options),
        train_dataset=Rows(),
        eval_dataset=Rows(),
        optimizers=(optimizer, constant),
        callbacks=list(callbacks),
    )


def trained(tmp_path: Path, model: nn.Module, **options: object) -> AuditCallback:
    """Train under audit; check that no hook is left."""
    callback = AuditCallback(inside=True, channels=True, budget=None)
    before = hook_tables(model, None)
    trainer(tmp_path, model, callback, **options).train()
    assert hook_tables(model, None) == before
    return callback


def test_numbers_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    """A training with evaluations in it measures what a plain loop does, bit for bit."""
    callback = AuditCallback(inside=True, budget=None)
    trainer(tmp_path, Hf(), callback, eval_strategy="steps", eval_steps=1).train()

    assert numbers(callback.audit) == numbers(by_hand(batches(times=2)))


@pytest.mark.parametrize("every", [1, 2])
def test_norms_before_and_after_clipping(tmp_path: Path, every: int) -> None:
    """Clipping shows in the norm that the step used; accumulated batches are one step."""
    options = {"max_grad_norm": 0.05, "gradient_accumulation_steps": every}
    mine, theirs = (
        trained(tmp_path, Hf(), **options),
        by_hand(batches(times=2), every=every, clip=0.05),
    )

    assert mine.report().n_steps == 8 // every
    assert norms(mine.audit) == [pytest.approx(one, rel=1e-6) for one in norms(theirs)]


@pytest.mark.parametrize(("net", "sick"), [(Net, set()), (DeadNet, {"body/1"}), (CutNet, {"body"})])
def test_the_sick_part_is_named(tmp_path: Path, net: type, sick: set[str]) -> None:
    """A dead activation and a cut-off part are flagged by name, a healthy net is not."""
    found = flags(trained(tmp_path, Hf(net), num_train_epochs=8).audit)

    assert set(found) >= sick
    assert bool(found) == bool(sick)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_asking_after_an_error_takes_the_hooks_off(tmp_path: Path, error: type) -> None:
    """A broken training leaves no half step, and no hook once the callback is asked."""
    model, callback = Hf(fails_at=3, error=error), AuditCallback()
    before = hook_tables(model, None)
    with pytest.raises(error):
        trainer(tmp_path, model, callback, gradient_accumulation_steps=2).train()

    assert callback.report().n_steps == 1
    assert hook_tables(model, None) == before


def test_a_call_after_an_error_takes_the_hooks_off(tmp_path: Path) -> None:
    """The next forward of a model whose training broke off ends the audit."""
    model, callback = Hf(fails_at=3), AuditCallback()
    before = hook_tables(model, None)
    with pytest.raises(RuntimeError):
        trainer(tmp_path, model, callback).train()
    model.eval()
    model.fails_at = -1
    model(X, Y)

    assert hook_tables(model, None) == before


def test_the_end_of_the_run_ends_a_broken_audit(tmp_path: Path) -> None:
    """Inside a run of the user's own, an error leaves no hook behind."""
    model = Hf(fails_at=6)
    before = hook_tables(model, None)
    with pytest.raises(RuntimeError), soma.track_run("mine", root=tmp_path) as run:
        trainer(tmp_path, model, AuditCallback(run=run)).train()

    assert hook_tables(model, None) == before
    assert soma.RunView(run.dir).verdict().n_steps == 6


def test_a_run_of_its_own_tells_how_it_ended(tmp_path: Path) -> None:
    """With `root` each training is a run, completed or failed."""
    for at in (-1, 2):
        callback = AuditCallback(root=tmp_path)
        try:
            trainer(tmp_path, Hf(fails_at=at), callback).train()
        except RuntimeError:
            callback.report()

    assert sorted(run.state for run in soma.runs(tmp_path)) == ["completed", "failed"]


def test_a_second_training_and_a_resumed_one_are_audits_of_their_own(tmp_path: Path) -> None:
    """Each `train` starts anew, from a checkpoint too."""
    callback = AuditCallback()
    trainer(tmp_path, Hf(), callback, num_train_epochs=1, save_strategy="epoch").train()
    one = callback.audit
    trainer(tmp_path, Hf(), callback, num_train_epochs=3).train(resume_from_checkpoint=True)

    assert (one.report().n_steps, callback.report().n_steps) == (4, 8)


def test_a_lost_training_stops_in_the_trainers_way(tmp_path: Path) -> None:
    """`stop_when_lost` ends the training with a warning and without an error."""
    model = Hf()
    model.head.weight.data.fill_(torch.nan)
    training = trainer(tmp_path, model, AuditCallback(stop_when_lost=True))
    with pytest.warns(SomaWarning, match="training is stopped: at step 0 the optimizer used"):
        training.train()

    assert training.state.global_step == 1


def test_parts_of_a_real_model_are_named(tmp_path: Path) -> None:
    """The children of a model of the library are its parts, and a healthy one is unflagged."""
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    tiny = {"vocab_size": 32, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = BertForSequenceClassification(BertConfig(**tiny, intermediate_size=32))
    tokens = torch.randint(1, 32, (16, 8))
    rows = [{"input_ids": one, "labels": one[0] % 2} for one in tokens]
    callback = AuditCallback()
    training = trainer(tmp_path, model, callback, num_train_epochs=4)
    training.train_dataset = rows
    training.train()

    assert set(callback.report().by_id()) == {"bert", "dropout", "classifier"}
    assert flags(callback.audit) == {}
