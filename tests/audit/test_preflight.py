"""What a look before the first step finds, and that it touches nothing."""

import itertools
from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import soma
from soma import DifferentiableFilter, Filter, Graph
from soma.audit.preflight import Check, Preflight
from soma.errors import InvalidInput, NotFitted

X = torch.randn(32, 6, generator=torch.Generator().manual_seed(0))
Y = torch.arange(32) % 3


class Wire(nn.Module):
    """Named parts, and a function of them."""

    def __init__(self, function, **parts: nn.Module) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.function = function

    def forward(self, x):
        return self.function(self, x)


class Dense(DifferentiableFilter):
    """A layer with dropout."""

    def build_module(self, input_shape):
        return nn.Sequential(
            nn.Linear(input_shape[-1], 16), nn.Dropout(0.2), nn.Linear(16, self.out)
        )


class Scale(Filter):
    """Learns before the modules."""

    def fit(self, x, y=None):
        return float(x.abs().max())

    def forward(self, x, state):
        return x / state


def mlp(*widths: int, gain: float = 1.0) -> nn.Sequential:
    """Layers of tanh, their weights scaled by `gain`."""
    torch.manual_seed(0)
    parts: list[nn.Module] = []
    for one, other in itertools.pairwise(widths):
        parts += [nn.Linear(one, other), nn.Tanh()]
    with torch.no_grad():
        for part in parts:
            if isinstance(part, nn.Linear):
                part.weight.mul_(gain)
    return nn.Sequential(*parts[:-1])


def checks(
    model: object, y: object = Y, loss: object = F.cross_entropy, x: object = X
) -> dict[str, Check]:
    """Return the answers by name."""
    return {check.name: check for check in soma.preflight(model, x, y, loss).checks}


def test_a_sound_model_is_ready() -> None:
    """Every check says ok, and how many parameters and samples it looked at."""
    found = soma.preflight(mlp(6, 16, 3), X, Y, F.cross_entropy)

    assert found.is_ready
    assert [check.outcome for check in found.checks] == ["ok"] * 5


def test_parameters_that_nothing_reaches_are_named() -> None:
    """A detached branch, an unused one and a frozen one: only the first two are missed."""
    model = Wire(
        lambda self, x: self.head(self.a(x) + self.cut(x).detach() + self.still(x)),
        a=nn.Linear(6, 8), cut=nn.Linear(6, 8), unused=nn.Linear(6, 8),
        still=nn.Linear(6, 8).requires_grad_(False), head=nn.Linear(8, 3),
    )  # fmt: skip
    told = checks(model)["reached"]

    assert told.outcome == "warning"
    assert told.told == (
        "4 of 8 trainable parameters get no gradient: `Wire.cut.weight`, `Wire.cut.bias`, "
        "`Wire.unused.weight` and `Wire.unused.bias`"
    )


def test_a_branch_that_starts_at_zero_is_a_note() -> None:
    """An adapter whose second half is zero is told, and no fault."""
    model = Wire(
        lambda self, x: self.base(x) + self.up(self.down(x)),
        base=nn.Linear(6, 3), down=nn.Linear(6, 2, bias=False), up=nn.Linear(2, 3, bias=False),
    )  # fmt: skip
    nn.init.zeros_(model.up.weight)
    found = checks(model)

    assert found["reached"].outcome == "note"
    assert "`Wire.down.weight`" in found["reached"].told


def test_a_loss_that_hangs_on_nothing_is_told() -> None:
    """A model that detaches its output trains nothing."""
    model = Wire(lambda self, x: self.head(x).detach(), head=nn.Linear(6, 3))

    assert "hangs on none of the 2" in checks(model)["reached"].told


@pytest.mark.parametrize(("gain", "outcome"), [(1.0, "ok"), (200.0, "warning")])
def test_the_first_loss_is_compared_with_a_guess(gain: float, outcome: str) -> None:
    """Outputs that are far too large give a loss far above that of a uniform guess."""
    model = mlp(6, 3)
    model[0].weight.data.mul_(gain)
    found = checks(model)["first loss"]

    assert found.outcome == outcome
    assert found.numbers["guess"] == pytest.approx(np.log(3), rel=1e-4)


def test_the_guess_for_values_is_their_mean() -> None:
    """Targets around 100 are guessed by their mean, so an output near 0 is told."""
    found = checks(mlp(6, 8, 2), 100 + torch.randn(32, 2), F.mse_loss)["first loss"]

    assert found.outcome == "warning"
    assert found.numbers["guess"] < 3


def test_a_first_loss_that_is_no_number_is_told() -> None:
    """NaN in the data is found by the first loss."""
    assert checks(mlp(6, 3), x=X * float("nan"))["first loss"].told == "the first loss is nan"


def test_a_trunk_that_shrinks_everything_is_told() -> None:
    """Ten contracting layers starve the first ones; scaled data or loss change nothing."""
    model = mlp(6, *[32] * 10, 3, gain=0.3)
    plain = checks(model)["depth"]
    scaled = checks(model, loss=lambda out, y: 1e6 * F.cross_entropy(out, y))["depth"]

    assert plain.outcome == scaled.outcome == "warning"
    assert "`Sequential.0`" in plain.told
    assert scaled.numbers["smallest"] == pytest.approx(plain.numbers["smallest"], rel=1e-3)


@pytest.mark.parametrize(
    "leak",
    [
        lambda self, x: self.head(x).softmax(0),
        lambda self, x: self.head(x) - self.head(x).mean(0),
        lambda self, x: self.head(x.flip(0)),
    ],
    ids=["softmax over the batch", "batch mean", "another sample's row"],
)
def test_an_answer_that_hangs_on_other_samples_is_told(leak: object) -> None:
    """Sums, norms and rows over the batch axis are found."""
    assert checks(Wire(leak, head=nn.Linear(6, 3)))["leak"].outcome == "warning"


def test_a_batch_norm_does_not_leak() -> None:
    """Its statistics over the batch are meant, and are not used in eval."""
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))

    assert checks(model)["leak"].outcome == "ok"


def test_what_cannot_be_learned_by_heart_is_told() -> None:
    """A model that gives every sample the same answer cannot tell them apart."""
    model = Wire(lambda self, x: self.head(torch.zeros_like(x)), head=nn.Linear(6, 3))

    assert checks(model)["overfit"].outcome == "warning"


def test_nothing_of_a_model_changes() -> None:
    """Weights, buffers, gradients, modes, hooks and generators are as before."""
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 3)).eval()
    before, drawn = deepcopy(model.state_dict()), torch.get_rng_state()
    soma.preflight(model, X, Y, F.cross_entropy)

    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), drawn)
    assert not model.training
    assert all(one.grad is None for one in model.parameters())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())


def test_old_weight_normalisation_is_checked_in_the_middle_of_a_training() -> None:
    """Its weight is computed at each call and has a history, which no copy may take over."""
    with pytest.warns(FutureWarning, match="weight_norm"):
        net = nn.utils.weight_norm(nn.Linear(4, 2))

    class Normed(DifferentiableFilter):
        def build_module(self, input_shape):
            return net

    x, y = torch.randn(32, 4), torch.randn(32, 2)
    g = Graph.somatize(Normed())
    g.materialize(x)
    net(x).sum().backward()

    for found in (soma.preflight(net, x, y, F.mse_loss), soma.preflight(g, x, y)):
        assert found.checks[0].told == "all 3 trainable parameters get a gradient"


def test_a_graph_takes_losses_as_fit_does() -> None:
    """The default loss of a leaf is used, and a head without targets is named."""
    g = Graph.somatize(Scale() >> Dense(out=8) >> (Dense(out=3) | Dense(out=2)), cache=None)
    g.fit(X, {"dense_2": Y}, epochs=0)
    found = checks(g, {"dense_2": Y}, None)

    assert found["first loss"].outcome == "ok"
    assert "`dense_3.0.weight`" in found["reached"].told
    assert not g.training
    assert g.optimizer() is None


def test_a_graph_that_has_to_be_fitted_says_so() -> None:
    """So does one without modules, and a module without a loss."""
    with pytest.raises(NotFitted, match="scale"):
        soma.preflight(Graph.somatize(Scale() >> Dense(out=3), cache=None), X, Y)
    with pytest.raises(InvalidInput, match="no node of this graph has a module"):
        soma.preflight(Graph.somatize(Scale(), cache=None), X, Y)
    with pytest.raises(InvalidInput, match="a callable"):
        soma.preflight(mlp(6, 3), X, Y)
    with pytest.raises(InvalidInput, match="a graph or a module"):
        soma.preflight("model", X, Y)  # type: ignore[arg-type]


def test_the_report_reads_as_lines() -> None:
    """Each check has its line, and a help where it warns; names cannot move the cursor."""
    told = Preflight(
        "net\x1b[2J",
        (
            Check(name="reached", outcome="ok", told="all 4 trainable parameters get a gradient"),
            Check(name="leak", outcome="warning", told="it leaks", help="Look at axis 0."),
        ),
    )

    assert str(told) == (
        "preflight of `net`: 1 warning\n"
        "  ok       reached     all 4 trainable parameters get a gradient\n"
        "  warning  leak        it leaks\n"
        "                       = help: Look at axis 0."
    )


def test_one_reason_is_told_once() -> None:
    """Where every check fails alike, the others name the first."""
    told = soma.preflight(mlp(6, 3), X.numpy(), Y, F.cross_entropy).checks

    assert told[0].told.startswith("it failed: TypeError: ")
    assert {check.told for check in told[1:]} == {"it failed as `reached` did"}
    assert {check.outcome for check in told} == {"warning"}


def test_a_notebook_shows_the_lines() -> None:
    """Not the fields."""
    told = Preflight("net", ())

    shown: list[str] = []
    told._repr_pretty_(SimpleNamespace(text=shown.append), cycle=False)

    assert shown == [str(told)] == ["preflight of `net`: ready"]
