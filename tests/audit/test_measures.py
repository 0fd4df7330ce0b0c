"""The numbers of single tensors, against the plainest way to take them."""

import math

import pytest
import torch
from torch import Tensor, nn

from soma.audit._measure._activations import flat_share
from soma.audit._measure._boards import Board
from soma.audit._measure._channels import channel_gradient, channel_output, channel_rows
from soma.audit._measure._layout import Activation
from soma.audit._measure._measures import Measures
from soma.audit._measure._on_device import activation_on_device, gradient_on_device
from soma.audit._measure._sample import sampled
from soma.audit._measure._similarity import debiased_cka
from soma.audit._measure._spectrum import effective_rank

BIG = torch.randn(700, 900, generator=torch.Generator().manual_seed(1))
TENSORS = {
    "large": BIG,
    "not so large": BIG[:70],
    "positive": BIG.abs(),
    "half zero": BIG.relu(),
    "far from zero": BIG * 1e-3 + 1e3,
    "tiny": BIG * 1e-30,
    "huge": BIG * 1e30,
    "double": BIG.double(),
    "turned": BIG.T,
    "every other": BIG[::2, ::3],
    "one": torch.tensor([3.0]),
}


def plainly(x: Tensor) -> Activation:
    """Take all numbers of an output in double precision."""
    x = x.double()
    total = x.sum()
    varies = torch.nan
    if x.dim() > 1:
        varies = float(x.var(0, unbiased=False).sum() / x.square().mean(0).sum())
    return Activation(
        x.numel(),
        0,
        0,
        float((x == 0).sum()),
        float(total),
        float(x.abs().sum()),
        float(x.norm()),
        float((x - x.mean()).square().sum()),
        float(x.min()),
        float(x.max()),
        varies,
        torch.nan,
    )


@pytest.mark.parametrize("name", list(TENSORS))
@pytest.mark.parametrize("where", ["cpu", "device"])
def test_activations(name: str, where: str) -> None:
    """The fast ways give the numbers of the plain one."""
    x = TENSORS[name]
    if where == "cpu":
        found = Activation(*Measures().activation(x, None).values)
    else:
        found = Activation(*(float(one) for one in activation_on_device(x, None)))
    truth = plainly(x)

    slack = 30 if where == "cpu" and sampled(x) is not None else 1
    scale = truth.norm * len(x) ** 0.5
    assert found.norm == pytest.approx(truth.norm, rel=2e-4 if slack == 1 else 0.02)
    assert found.spread == pytest.approx(truth.spread, rel=1e-3 * slack)
    assert found.total == pytest.approx(truth.total, abs=1e-5 * slack * scale * x.numel() ** 0.5)
    assert found.absolute == pytest.approx(truth.absolute, rel=1e-5 if slack == 1 else 0.03)
    assert found.zeros == pytest.approx(truth.zeros, rel=1e-6 if slack == 1 else 0.03)
    assert (found.size, found.low, found.high) == pytest.approx((truth.size, truth.low, truth.high))
    # A variance that is a millionth of the mean square is below what matters.
    assert found.varies == pytest.approx(truth.varies, rel=1e-3 * slack, abs=1e-5, nan_ok=True)


def _marked(at: tuple[int, ...], value: float) -> Tensor:
    x = torch.zeros(64, 4096)
    x[at] = value
    return x


@pytest.mark.parametrize("at", [(0, 0), (13, 1201), (63, 4095)])
@pytest.mark.parametrize("value", [1.0, -7.0, torch.nan, torch.inf])
def test_a_single_number_in_a_large_output(at: tuple[int, int], value: float) -> None:
    """It shows in extremes and norm wherever it is, though a sample would not have it."""
    x = _marked(at, value)
    assert sampled(x) is not None
    found = Activation(*Measures().activation(x, None).values)
    low, high = (float(one) for one in torch.aminmax(x))
    assert (found.low, found.high) == pytest.approx((low, high), nan_ok=True)
    if math.isfinite(value):
        assert (found.norm, found.zeros) == (abs(value), x.numel() - 1)
    assert found.bad == 1 - math.isfinite(value)


@pytest.mark.parametrize("shape", [(64, 512), (8, 3, 50, 50), (60_000,), (6_000, 10)])
def test_what_is_small_is_looked_at_as_a_whole(shape: tuple[int, ...]) -> None:
    """No sample speaks for an output of fewer than 65,536 elements."""
    assert sampled(torch.zeros(shape)) is None


@pytest.mark.parametrize(
    "shape", [(64, 2048), (4096, 17), (2, 3, 200, 201), (1, 70_000), (70_000, 1)]
)
def test_what_a_sample_is_of(shape: tuple[int, ...]) -> None:
    """At least 16,384 elements from the first to the last, of each sample the same places."""
    found = sampled(torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape))
    assert found is not None
    places = math.prod(shape[1:])
    assert found.numel() >= 1 << 14
    assert found.unique().numel() == found.numel()
    assert float(found.max()) >= 0.95 * math.prod(shape)
    assert (found % places == found[0] % places).all()


@pytest.mark.parametrize("where", ["cpu", "device"])
def test_numbers_that_are_not_finite(where: str) -> None:
    """They are counted, shown by the extremes, and left out of the rest."""
    x = torch.tensor([[1.0, -2.0, torch.nan], [-torch.inf, torch.inf, 0.0]])
    if where == "cpu":
        values = Measures().activation(x, None).values
    else:
        values = [float(one) for one in activation_on_device(x, None)]
    found = Activation(*values)

    assert (found.size, found.bad, found.masked, found.zeros) == (6, 3, 1, 1)
    assert (found.total, found.absolute) == (-1, 3)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


@pytest.mark.parametrize("where", ["cpu", "device"])
def test_a_mask(where: str) -> None:
    """-inf shows as the smallest number."""
    x = torch.tensor([1.0, -torch.inf])
    row = Measures().activation(x, None).values
    found = Activation(*(row if where == "cpu" else map(float, activation_on_device(x, None))))

    assert (found.low, found.high, found.masked) == (-torch.inf, 1.0, 1)


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30, 0.0])
def test_gradients(scale: float) -> None:
    """Norm and largest value are right at every scale."""
    x = BIG * scale
    on_cpu = Measures().gradient(x).values
    on_device = [float(one) for one in gradient_on_device(x)]
    truth = (x.numel(), 0.0, float(x.double().norm()), float(x.abs().max()))

    assert list(on_cpu) == pytest.approx(truth, rel=1e-5)
    assert on_device == pytest.approx(truth, rel=1e-5)


def test_changes() -> None:
    """A change of one bit is a change, and none is exactly none."""
    measures, before = Measures(), BIG.reshape(-1).clone()
    after = before.clone()
    assert measures.change(before, after)[0] == 0.0
    after[77] = torch.nextafter(after[77], torch.tensor(torch.inf))
    assert measures.change(before, after)[0] == pytest.approx(float(after[77] - before[77]))


@pytest.mark.parametrize("axis", [1, 2])
def test_channels(axis: int) -> None:
    """Each channel has its own largest value, deviation and gradient."""
    x = BIG[:, :896].reshape(700, 28, 32) * 10 + 100
    others = [one for one in range(3) if one != axis]
    scratch = Measures().scratch

    found = channel_output(x, axis, scratch)

    (largest,), (deviation,) = channel_rows([found])
    assert torch.allclose(largest, x.abs().amax(others))
    assert torch.allclose(deviation, x.double().std(others, unbiased=False).float(), rtol=1e-4)
    gradient = channel_gradient(x, axis, scratch)
    assert torch.allclose(gradient, x.double().abs().sum(others).float(), rtol=1e-5)


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("shape", [(700, 28, 32), (89_600, 7, 1)])
@pytest.mark.parametrize("name", ["large", "positive", "half zero"])
def test_totals_come_with_the_channels(name: str, shape: tuple[int, ...], axis: int) -> None:
    """What a look at channels tells of the whole output is what a look at all of it tells."""
    x = TENSORS[name][:, :896].reshape(shape)
    measures = Measures()
    sums = channel_output(x, axis, measures.scratch).sums
    assert sums is not None
    found, truth = Activation(*measures.activation(x, None, sums).values), plainly(x)
    exact = ("size", "norm", "low", "high")
    assert [getattr(found, one) for one in exact] == pytest.approx(
        [getattr(truth, one) for one in exact], rel=1e-4
    )
    rough = ("zeros", "absolute", "spread", "varies")
    assert [getattr(found, one) for one in rough] == pytest.approx(
        [getattr(truth, one) for one in rough], rel=0.03
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_totals_of_a_square(axis: int) -> None:
    """Which axis has the channels does not change what is known of the whole output."""
    x, measures = BIG[:200, :200] + torch.arange(200.0), Measures()
    sums = channel_output(x, axis, measures.scratch).sums
    found = tuple(measures.activation(x, None, sums).values)
    assert found == pytest.approx(tuple(plainly(x)), rel=1e-4, nan_ok=True)


@pytest.mark.parametrize("small", [0.0, 1e-25, 1e-40])
def test_a_channel_too_small_for_squares(small: float) -> None:
    """Its deviation is right beside channels of usual size."""
    x = BIG[:600, :4].clone()
    x[:, 2] *= small
    found = channel_output(x, 1, Measures().scratch)
    truth = x[:, 2].double().std(unbiased=False).item()
    assert float((found.spread[2] / found.samples).sqrt()) == pytest.approx(truth, rel=1e-3)


@pytest.mark.parametrize("name", ["large", "not so large", "tiny", "huge", "double", "turned"])
def test_the_norm_alone(name: str) -> None:
    """Where no more is asked than a norm, it is the same one."""
    x = TENSORS[name]
    found = Activation(*Measures().size(x).values)
    assert (found.size, found.bad) == (x.numel(), 0)
    exact = sampled(x) is None
    assert found.norm == pytest.approx(plainly(x).norm, rel=1e-5 if exact else 0.02)


@pytest.mark.parametrize(
    "activation",
    [
        nn.Tanh(),
        nn.Sigmoid(),
        nn.Softsign(),
        nn.Hardtanh(-1.5, 2.0),
        nn.Hardsigmoid(),
        nn.ELU(),
        nn.ELU(2.0),
        nn.ELU(0.5),
        nn.CELU(2.0),
        nn.SELU(),
    ],
)
def test_where_an_activation_is_flat(activation: nn.Module) -> None:
    """What is told from the output is what the slope itself says."""
    x = (BIG[:50] * 4).double().requires_grad_()
    output = activation(x)
    (slope,) = torch.autograd.grad(output.sum(), x)
    truth = (slope < 0.05 * slope.max()).double().mean()

    found = flat_share(activation, output.detach())

    assert float(found) == pytest.approx(float(truth), abs=1e-3)


def test_a_board() -> None:
    """Rows cross together, in the order that they were put, however many there are."""
    board = Board(torch.device("cpu"))
    rows = [board.put(torch.full((7,), float(number))) for number in range(5000)]
    assert math.isnan(rows[0].values[0])
    board.read()
    assert [row.values[6] for row in rows] == list(range(5000))


def test_similarity() -> None:
    """It is one for the same up to rotation and scale, about zero for what is unrelated."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 16, generator=generator)
    turned = x @ torch.linalg.qr(torch.randn(16, 16, generator=generator))[0] * 7
    other = torch.randn(200, 300, generator=generator)

    assert float(debiased_cka(x, turned)) == pytest.approx(1.0, abs=1e-6)
    assert abs(float(debiased_cka(x, other))) < 0.1
    assert float(debiased_cka(other, other)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("columns", [8, 500])
def test_effective_rank(columns: int) -> None:
    """It counts directions, at any scale."""
    generator = torch.Generator().manual_seed(0)
    directions = torch.linalg.qr(torch.randn(columns, 3, generator=generator))[0].T
    x = torch.linalg.qr(torch.randn(400, 3, generator=generator))[0] @ directions
    assert float(effective_rank(x - x.mean(0))) == pytest.approx(3.0, abs=0.05)
