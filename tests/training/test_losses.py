"""Which loss a leaf gets, what targets it takes, and what it refuses."""

from functools import partial

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_diabetes
from torch import Tensor, nn
from torch.nn import functional as F

from soma import Graph
from soma.errors import InvalidInput, InvalidOutput
from tests.training.filters import Dense, Wrap, data

X, Y = data()
near = partial(pytest.approx, rel=1e-5)  # rows come in a new order each time
LABELS = torch.arange(64) % 3


def losses_of(module: nn.Module, y: object, loss: object = None) -> tuple[str, float]:
    """Return the name and the value of the loss of an untouched module on `X` and `y`."""
    g = Graph.somatize(Wrap(lambda _: module))
    still = torch.optim.SGD(module.parameters(), lr=0.0)
    g.fit(X, y, epochs=1, optimizer=still, batch_size=64, loss=loss)
    return g.history.losses["wrap"], g.history[0].loss


def one_column() -> tuple[nn.Module, Tensor]:
    linear = nn.Linear(6, 1)
    return linear, linear(X).detach()


def test_integers_mean_cross_entropy() -> None:
    """Integer targets are classes."""
    linear = nn.Linear(6, 3)
    name, value = losses_of(linear, LABELS)

    assert name == "cross-entropy (integer targets)"
    assert value == near(F.cross_entropy(linear(X), LABELS).item())


def test_floats_mean_squared_error() -> None:
    """Float targets are values."""
    linear = nn.Linear(6, 3)
    name, value = losses_of(linear, Y.double().numpy())

    assert name == "mean squared error (float targets)"
    assert value == near(F.mse_loss(linear(X), Y).item())


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8", "bool"])
def test_every_kind_of_integer_is_a_class(kind: str) -> None:
    """Bytes and booleans count as classes too."""
    linear = nn.Linear(6, 3)
    labels = LABELS.numpy().astype(kind)
    expected = F.cross_entropy(linear(X), torch.tensor(labels.astype("int64"))).item()

    assert losses_of(linear, labels)[1] == near(expected)
    assert losses_of(linear, torch.tensor(labels))[1] == near(expected)


def test_a_column_of_classes_is_taken_as_classes() -> None:
    """Targets of shape (N, 1), as a frame gives them, are N classes."""
    linear = nn.Linear(6, 3)

    assert losses_of(linear, LABELS[:, None])[1] == near(losses_of(linear, LABELS)[1])


def test_classes_may_be_anywhere_in_an_image() -> None:
    """Scores of shape (N, C, …) meet classes of shape (N, …)."""

    def scores() -> nn.Module:
        return nn.Sequential(nn.Linear(6, 12), nn.Unflatten(1, (3, 4)))

    torch.manual_seed(0)
    module = scores()
    y = torch.arange(64 * 4).reshape(64, 4) % 3

    assert losses_of(module, y)[1] == near(F.cross_entropy(module(X), y).item())


def test_one_score_for_two_classes_is_binary() -> None:
    """An output of one number and targets 0 and 1 are judged by their logits."""
    linear, out = one_column()
    y = (LABELS > 0).long()
    expected = F.binary_cross_entropy_with_logits(out[:, 0], y.float()).item()

    for targets in (y, y[:, None], y.bool()):
        name, value = losses_of(linear, targets)
        assert name == "binary cross-entropy with logits (integer targets 0 and 1)"
        assert value == near(expected)
    assert losses_of(nn.Sequential(linear, nn.Flatten(0)), y)[1] == near(expected)


def test_rows_and_a_column_are_not_broadcast() -> None:
    """(N,) against (N, 1) is N differences, not N times N."""
    linear, out = one_column()
    expected = (out[:, 0] - Y[:, 0]).square().mean().item()

    assert losses_of(linear, Y[:, 0])[1] == near(expected)
    assert losses_of(nn.Sequential(linear, nn.Flatten(0)), Y[:, :1])[1] == near(expected)


def test_a_column_of_diabetes_learns_more_than_the_mean() -> None:
    """A regression on (N,) targets beats predicting their mean, which broadcasting would give."""
    x, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    g = Graph.somatize(Dense(1)).fit(
        (x * 20).astype("float32"), y, epochs=30, seed=0,
        optimizer=lambda weights: torch.optim.Adam(weights, lr=0.02),
    )  # fmt: skip

    assert g.history[-1].loss < 0.6


def test_two_classes_of_tumours_are_learnt() -> None:
    """A single logit separates scikit-learn's breast cancer data."""
    x, y = load_breast_cancer(return_X_y=True)
    x = ((x - x.mean(0)) / x.std(0)).astype("float32")
    g = Graph.somatize(Dense(1)).fit(
        x, y, epochs=10, seed=0, optimizer=lambda weights: torch.optim.Adam(weights, lr=0.05)
    )

    assert ((g.forward(x)[:, 0] > 0) == y).mean() > 0.95


def test_a_given_loss_gets_output_and_targets() -> None:
    """`loss=` comes before what the targets would say, and is named."""
    linear = nn.Linear(6, 3)
    name, value = losses_of(linear, LABELS, loss=nn.CrossEntropyLoss(label_smoothing=0.1))

    assert name == "CrossEntropyLoss (given)"
    assert value == near(F.cross_entropy(linear(X), LABELS, label_smoothing=0.1).item())


def test_a_loss_by_leaf_leaves_the_others_to_their_targets() -> None:
    """A dict of losses speaks for the leaves that it names."""
    g = Graph()
    g.node("a", Dense(3))
    g.node("b", Dense(3))
    g.fit(X, {"a": Y, "b": Y}, epochs=1, loss={"a": F.l1_loss})

    assert g.history.losses == {
        "a": "l1_loss (given)",
        "b": "mean squared error (float targets)",
    }


@pytest.mark.parametrize(
    ("width", "y", "message"),
    [
        (3, np.array(["a", "b"] * 32), r"numbers are wanted.*return_inverse=True"),
        (3, LABELS + 1, "go from 1 to 3, and its output has scores for the classes 0 to 2"),
        (3, LABELS - 1, "go from -1 to 1"),
        (1, LABELS, r"go from 0 to 2.*an output of 3 numbers a row"),
        (3, F.one_hot(LABELS), r"Classes are numbers of shape \(64,\).*argmax\(1\)"),
        (2, Y, r"are Tensor of float32, shape \(64, 3\), and its output is Tensor of float32, "),
    ],
)
def test_targets_that_do_not_fit_are_refused(width: int, y: object, message: str) -> None:
    """Each misfit is told with both sides and a way out, before the first step."""
    with pytest.raises(InvalidInput, match=message):
        losses_of(nn.Linear(6, width), y)


def test_ignored_targets_are_not_out_of_range() -> None:
    """-100 is what torch's cross-entropy leaves out."""
    linear = nn.Linear(6, 3)
    y = LABELS.clone()
    y[::2] = -100

    assert losses_of(linear, y)[1] == near(F.cross_entropy(linear(X), y).item())


def test_an_output_of_other_rows_is_named() -> None:
    """A leaf that changes the number of rows cannot meet its targets."""

    class Halving(nn.Linear):
        def forward(self, x):
            return super().forward(x)[::2]

    with pytest.raises(InvalidOutput, match="leaf `wrap` gave 32 rows for a batch of 64"):
        losses_of(Halving(6, 3), Y)


def test_a_loss_is_one_number() -> None:
    """A loss that was not reduced is refused with how to."""
    unreduced = nn.L1Loss(reduction="none")
    with pytest.raises(InvalidOutput, match=r"L1Loss.*one number is wanted.*\.mean\(\)"):
        losses_of(nn.Linear(6, 3), Y, loss=unreduced)


def test_a_class_is_no_loss_yet() -> None:
    """`nn.MSELoss` without brackets is told apart."""
    with pytest.raises(TypeError, match=r"Write `MSELoss\(\)`"):
        losses_of(nn.Linear(6, 3), Y, loss=nn.MSELoss)


def test_an_error_inside_a_loss_says_where() -> None:
    """A loss that raises names its leaf and what it was given."""

    def wrong(out, y):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no") as raised:
        losses_of(nn.Linear(6, 3), Y, loss=wrong)

    assert "in the loss of leaf `wrap`, wrong (given)" in raised.value.__notes__[0]


def test_a_loss_that_would_be_broadcast_is_refused() -> None:
    """What torch only warns of trains on every pair of rows."""
    g = Graph.somatize(Dense(1))
    with pytest.raises(InvalidInput, match=r"\(64, 1\) .* \(64,\).*`y\[:, None\]`"):
        g.fit(X, Y[:, 0], epochs=1, loss=torch.nn.MSELoss(), progress=False)
