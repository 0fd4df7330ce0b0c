"""What modules may return, and what may be done to it afterwards (catalogue 1-7, 30, 39-44)."""

import gc
import warnings
from dataclasses import dataclass
from weakref import ref

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

import soma
from tests.audit.loops import X, first_tensor, laws, plain_step, true_gradient, values


@dataclass
class Pair:
    """An output with names."""

    first: Tensor
    second: Tensor


class Returns(nn.Module):
    """A layer whose output is packed in some way."""

    def __init__(self, pack):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.pack = pack

    def forward(self, x):
        return self.pack(self.layer(x))


class Then(nn.Module):
    """A module, and what is done to its output."""

    def __init__(self, module, after):
        super().__init__()
        self.module = module
        self.after = after
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.after(self.module(x)))


PACKS = {
    "dict": lambda y: {"a": y, "b": y * 2},
    "list": lambda y: [y, y * 2],
    "dataclass": lambda y: Pair(y, y * 2),
    "nested": lambda y: (y, [y * 2, None]),
    "with classes": lambda y: (y, y.argmax(-1)),
}


@pytest.mark.parametrize(
    "after",
    [
        nn.ReLU(inplace=True),
        nn.Dropout(0.5, inplace=True),
        nn.SiLU(inplace=True),
        nn.Hardtanh(inplace=True),
        lambda y: y.add_(1.0),
    ],
)
def test_in_place_after_a_module(after) -> None:
    """Rows 1, 2: what is done in place to an output is not what is measured of it."""

    def make():
        return Then(nn.Linear(4, 4), after)

    audit = laws(make)

    torch.manual_seed(0)
    output = make().module(X).detach()
    assert values(audit, "m/module", "act_norm")[0] == pytest.approx(float(output.norm()), rel=1e-5)
    if not isinstance(after, nn.Dropout):
        truth = true_gradient(make, "module")
        assert values(audit, "m/module", "out_grad_norm")[0] == pytest.approx(truth, rel=1e-5)


def test_a_view_of_the_input() -> None:
    """Row 2: an output that is a view of the input, or the input itself, is measured once each."""
    audit = laws(
        lambda: nn.Sequential(nn.Linear(4, 4), nn.Identity(), nn.Flatten(), nn.Linear(4, 2))
    )

    norms = [values(audit, f"m/{at}", "out_grad_norm")[0] for at in range(3)]
    assert norms[0] == norms[1] == pytest.approx(norms[2])


def test_a_module_called_twice() -> None:
    """Row 3: calls are pooled by root of sum of squares and counted."""

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(self.layer(x))

    audit = laws(Twice)

    torch.manual_seed(0)
    model = Twice()
    first = model.layer(X)
    second = model.layer(first)
    gradients = torch.autograd.grad(second.square().mean(), [first, second])
    truth = sum(float(one.norm()) ** 2 for one in gradients) ** 0.5
    assert values(audit, "m/layer", "calls") == [2.0] * 3
    assert values(audit, "m/layer", "out_grad_norm")[0] == pytest.approx(truth, rel=1e-5)


@pytest.mark.parametrize("pack", list(PACKS))
def test_outputs_in_containers(pack: str) -> None:
    """Rows 4, 5: a container has one row for all of its tensors, and series for each."""

    def make():
        return Then(Returns(PACKS[pack]), first_tensor)

    audit = laws(make)

    truth = true_gradient(make, "module.layer")
    assert values(audit, "m/module", "out_grad_norm")[0] == pytest.approx(truth, rel=1e-5)
    parts = [
        name for name in audit.measurements.series if name.startswith(("m/module[", "m/module."))
    ]
    assert any(name != "m/module.layer" for name in parts) == (pack != "with classes")


def test_nothing_to_see_in_an_output() -> None:
    """Row 4: a module that returns no tensor is called, and nothing is claimed of it."""

    class Says(nn.Module):
        def forward(self, x):
            return "done"

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.says, self.head = Says(), nn.Linear(4, 2)

        def forward(self, x):
            self.says(x)
            return self.head(x)

    audit = laws(Model)

    assert values(audit, "m/says", "calls") == [1.0] * 3
    assert values(audit, "m/says", "act_norm") == []


def test_no_warning_comes_from_the_audit() -> None:
    """Row 6: a first layer, whose input needs no gradient, is measured without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit = laws(lambda: nn.Linear(4, 2))

    truth = true_gradient(lambda: nn.Linear(4, 2), "")
    assert values(audit, "m", "out_grad_norm")[0] == pytest.approx(truth, rel=1e-5)


def test_frozen_modules() -> None:
    """Row 7: a frozen first layer has no gradient, a frozen one above passes it on."""

    def make():
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2))
        model[0].requires_grad_(False)
        model[2].requires_grad_(False)
        return model

    audit = laws(make)

    assert values(audit, "m/0", "out_grad_norm") == []
    assert audit.measurements.units["m/0"].trainable == 0
    assert values(audit, "m/2", "out_grad_norm")[0] == pytest.approx(
        true_gradient(make, "2"), rel=1e-5
    )


def test_everything_frozen_is_the_users_error() -> None:
    """Row 8: torch's own error comes through unchanged."""
    model = nn.Linear(4, 2).requires_grad_(False)
    with (
        soma.audit_modules({"m": model}),
        pytest.raises(RuntimeError, match="does not require grad"),
    ):
        model(X).sum().backward()


def test_packed_sequences() -> None:
    """Row 30: an LSTM on a packed sequence is measured through the data in it."""

    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(4, 6), nn.Linear(6, 2)

        def forward(self, x):
            packed = pack_padded_sequence(x.reshape(4, 4, 4), [4, 3, 2, 1], enforce_sorted=True)
            return self.head(self.lstm(packed)[0].data)

    audit = laws(Packed)

    assert values(audit, "m/lstm", "out_grad_norm")[0] > 0


def test_no_activation_is_kept() -> None:
    """Row 39: an output is free as soon as its step is over."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    optimizer, kept = torch.optim.SGD(model.parameters(), lr=0.1), []
    with soma.audit_modules({"m": model}, inside=True, channels=True):
        for _ in range(3):
            optimizer.zero_grad()
            output = model(X)
            kept.append(ref(output))
            output.sum().backward()
            optimizer.step()
            del output
            gc.disable()
            alive = [one() is not None for one in kept]
            gc.enable()
            assert not any(alive)


def test_a_leaf_as_output() -> None:
    """Row 40: hooks on a parameter that a module returns are gone after each step."""

    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.Parameter(torch.ones(4))

        def forward(self):
            return self.rows

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = Table()

        def forward(self, x):
            return x * self.table()

    def step(model, optimizer, x):
        plain_step(model, optimizer, x)
        assert not model.table.rows._backward_hooks

    audit = laws(Model, step=step)

    assert len(values(audit, "m/table", "out_grad_norm")) == 3


@pytest.mark.parametrize("rows", [0, 1])
def test_small_batches(rows: int) -> None:
    """Row 42: no elements is not NaN, and one row has no variance over the batch."""

    def step(model, optimizer, x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    audit = laws(lambda: nn.Linear(4, 2), x=X[:rows], step=step, channels=True)

    assert values(audit, "m", "act_bad_frac") == [0.0] * 3 * rows
    assert values(audit, "m", "batch_variance_ratio") == []


@pytest.mark.parametrize("channel_dim", [None, 5])
def test_no_channels_to_find(channel_dim: int | None) -> None:
    """Row 43: a single number has no channels, nor has an axis that is not there."""

    class Total(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(x).square().mean()

    audit = laws(Total, channels=soma.ChannelConfig(channel_dim=channel_dim))

    assert "m" not in audit.measurements.channels
    assert audit.measurements.notes == []


def test_modules_without_parameters() -> None:
    """Row 44: an activation has its output and its gradient, and nothing of parameters."""

    def make():
        return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))

    audit = laws(make)

    assert values(audit, "m/1", "out_grad_norm")[0] == pytest.approx(
        true_gradient(make, "1"), rel=1e-5
    )
    assert values(audit, "m/1", "param_norm") == []


def test_the_three_kinds_of_nothing() -> None:
    """Row 47: not called, an exact zero, and called but cut off are three different things."""

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.fine, self.zero, self.cut, self.unused = (nn.Linear(4, 2) for _ in range(4))

        def forward(self, x):
            return self.fine(x) + 0.0 * self.zero(x) + self.cut(x).detach()

    audit = laws(Branches)

    assert audit.measurements.units["m/unused"].order == -1
    assert values(audit, "m/zero", "out_grad_norm") == [0.0] * 3
    assert values(audit, "m/cut", "calls") == [1.0] * 3
    assert values(audit, "m/cut", "out_grad_norm") == []
