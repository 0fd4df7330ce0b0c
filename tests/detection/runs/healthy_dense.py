"""Healthy runs of dense networks that look sick to a fixed limit."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR

from tests.detection.parts import (
    adam, blobs, chain, dense, each, entropy, sgd, smooth, squares, times, two_rates, with_,
)  # fmt: skip
from tests.detection.run import Run


class Scalars(nn.Module):
    """A block whose branch is multiplied with a number that starts at 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)
        self.much = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.much * self.fc2(self.act(self.fc1(x)))


class Rounded(nn.Module):
    """Rounds to tenths, and hands the gradient through."""

    def forward(self, x: Tensor) -> Tensor:
        return x + (torch.round(x * 10) / 10 - x).detach()


def margins(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """A hinge loss: exactly 0, with its gradient, for a batch that is right by enough."""
    return F.multi_margin_loss(net(x), y)


def likelihood(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """Minus the log-likelihood of a normal distribution: it falls below 0."""
    mean, log = net(x).chunk(2, 1)
    return (0.5 * log + 0.5 * (y - mean).square() * (-log).exp()).mean() - 0.3


def reward(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """A policy's loss: its value says nothing, as rewards are taken about their mean."""
    logits = net(x)
    taken = torch.multinomial(logits.detach().softmax(-1), 1)[:, 0]
    gain = (taken == y).float()
    chosen = logits.log_softmax(-1).gather(1, taken[:, None])[:, 0]
    return -(chosen * (gain - gain.mean())).mean()


def wrongs(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The chance that the policy is wrong."""
    return 1 - net(x).softmax(-1).gather(1, y[:, None]).mean()


def sorted_blobs(random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Clouds, one class after the other."""
    x, y = blobs(classes=4)(random)
    order = torch.argsort(y, stable=True)
    return x[order], y[order]


def half_empty(random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Inputs of which the last third is never set and the rest is mostly 0."""
    x, y = smooth(12)(random)
    x = x * (torch.rand(x.shape, generator=random) < 0.3)
    return F.pad(x, (0, 6)), y


def from_teacher(noise: float, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Targets that the network of `student` makes itself, but for little noise."""
    x = torch.randn(256, 8, generator=random)
    with torch.no_grad():
        return x, student()(x) + noise * torch.randn(256, 2, generator=random)


def student() -> nn.Module:
    """A network that is always the same."""
    with torch.random.fork_rng([]):
        torch.manual_seed(5)
        return dense(8, 16, 2)


def deep_linear() -> nn.Module:
    """Three layers without an activation, which can solve what a matrix solves."""
    return dense(8, 8, 8, 2, act=nn.Identity)


def by_matrix(random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Targets that a matrix makes of the inputs."""
    x = torch.randn(64, 8, generator=random)
    return x, x @ torch.randn(8, 2, generator=random)


def rezero() -> nn.Module:
    """Twelve blocks that begin as nothing."""
    return chain(fc=nn.Linear(12, 24), blocks=nn.Sequential(*(Scalars(24) for _ in range(12))),
                 out=nn.Linear(24, 3))  # fmt: skip


def deep() -> nn.Module:
    """Forty layers whose weights keep the scale."""
    net = dense(12, *[32] * 40, 3, act=partial(nn.LeakyReLU, 0.6))
    return each(net, nn.Linear, lambda one: nn.init.orthogonal_(one.weight, 1.2))


def batch_normed() -> nn.Module:
    """Linear layers before a BatchNorm, which takes back the scale of their weights."""
    return chain(fc0=nn.Linear(12, 32, bias=False), norm0=nn.BatchNorm1d(32), act0=nn.Tanh(),
                 fc1=nn.Linear(32, 32, bias=False), norm1=nn.BatchNorm1d(32), act1=nn.Tanh(),
                 out=nn.Linear(32, 4))  # fmt: skip


def normed_weights() -> nn.Module:
    """Layers whose weights are made of others."""
    return chain(fc0=weight_norm(nn.Linear(12, 24)), act0=nn.Tanh(),
                 fc1=spectral_norm(nn.Linear(24, 24)), act1=nn.Tanh(), out=nn.Linear(24, 3))  # fmt: skip


def lucky(net: nn.Sequential) -> nn.Module:
    """A ReLU network whose units all fire for something."""
    return each(net, nn.Linear, lambda one: one.bias.add_(0.2))


def weigh(factor: float) -> nn.Module:
    """A network whose first layer takes back a factor of its input."""
    return with_(dense(12, 24, 24, 3), lambda net: net.fc0.weight.div_(factor))


FC0 = ("fc0.weight",)

RUNS = (
    Run(name="loss_in_billionths", kind="mlp", why="gradients of 1e-9 at a rate of 1e8",
        build=lambda: dense(12, 24, 24, 3), data=smooth(), losses=(times(squares, 1e-9),),
        optimizers=sgd(2e8), first=FC0),
    Run(name="inputs_in_millions", kind="mlp", why="weights of 1e-7 move by 1e-8",
        build=lambda: weigh(1e6), data=lambda random: (smooth()(random)[0] * 1e6, smooth()(random)[1]),
        losses=(squares,), optimizers=two_rates(torch.optim.Adam, 2e-8, 2e-2, "fc0.weight"),
        first=FC0, steps=40, allowed=()),
    Run(name="solved_from_the_start", kind="mlp", why="gradients are those of noise of 1e-4",
        build=student, data=partial(from_teacher, 1e-4), losses=(squares,), optimizers=sgd(0.1),
        converged=True, batch=64, first=FC0),
    Run(name="solved_to_the_last_bit", kind="mlp", why="after 60 steps only rounding is left",
        build=deep_linear, data=by_matrix, losses=(squares,), optimizers=sgd(0.1), steps=160,
        first=FC0),
    Run(name="most_units_dropped", kind="mlp", why="dropout leaves a fifth of what ReLU left",
        build=lambda: lucky(chain(fc0=nn.Linear(12, 48), act0=nn.ReLU(), drop=nn.Dropout(0.8),
                                  out=nn.Linear(48, 4))),
        data=blobs(), losses=(entropy,), optimizers=adam(1e-2), first=FC0),
    Run(name="inputs_mostly_zero", kind="mlp", why="weights of inputs never set get no gradient",
        build=lambda: dense(18, 32, 3), data=half_empty, losses=(squares,), optimizers=adam(1e-2),
        steps=50, first=FC0),
    Run(name="one_class_a_batch", kind="mlp", why="each batch holds one class alone",
        build=lambda: dense(12, 24, 4), data=sorted_blobs, losses=(entropy,), steps=60, batch=16,
        optimizers=sgd(0.05), score=lambda net, x, y: F.cross_entropy(net(x), y), first=FC0),
    Run(name="smoothed_labels_solved", kind="mlp", why="the loss has a floor far above 0",
        build=lambda: dense(12, 24, 4), data=blobs(apart=1.5), steps=60, optimizers=adam(1e-2),
        losses=(lambda net, x, y, step: F.cross_entropy(net(x), y, label_smoothing=0.2),),
        first=FC0),
    Run(name="margins_kept", kind="mlp", why="most batches have a loss and a gradient of exactly 0",
        build=lambda: dense(12, 24, 4), data=blobs(apart=3.0), losses=(margins,), steps=60,
        optimizers=adam(1e-2), first=FC0),
    Run(name="loss_below_zero", kind="mlp", why="a likelihood starts near 0 and goes below it",
        build=lambda: dense(8, 16, 4), data=partial(from_teacher, 0.1), losses=(likelihood,),
        optimizers=adam(1e-2), steps=60, first=FC0),
    Run(name="policy_gradient", kind="mlp", why="the loss is noise about 0 all along",
        build=lambda: dense(12, 24, 4), data=blobs(), losses=(reward,), optimizers=adam(1e-2),
        steps=80, score=wrongs, first=FC0),
    Run(name="rounded_straight_through", kind="mlp", why="a step function is in the way",
        build=lambda: chain(fc0=nn.Linear(12, 24), act0=nn.Tanh(), round=Rounded(),
                            out=nn.Linear(24, 3)),
        data=smooth(), losses=(squares,), optimizers=adam(1e-2), first=FC0),
    Run(name="rezero_twelve_blocks", kind="residual", why="branches get no gradient in the first step",
        build=rezero, data=smooth(), losses=(squares,), optimizers=adam(1e-2), steps=30,
        first=("fc.weight",)),
    Run(name="forty_layers", kind="mlp", why="deep, but every layer keeps the scale",
        build=deep, data=blobs(classes=3), losses=(entropy,), optimizers=adam(5e-4), steps=20, first=FC0),
    Run(name="twenty_selus", kind="mlp", why="deep and without a norm",
        build=lambda: each(dense(12, *[24] * 20, 3, act=nn.SELU), nn.Linear, lambda one: (
            nn.init.kaiming_normal_(one.weight, nonlinearity="linear"), one.bias.zero_())),
        data=smooth(), losses=(squares,), optimizers=adam(1e-3), first=FC0),
    Run(name="rate_of_five", kind="norm", why="a BatchNorm makes huge steps harmless",
        build=batch_normed, data=blobs(), losses=(entropy,), steps=30, first=FC0,
        optimizers=two_rates(torch.optim.SGD, 5.0, 0.1, "fc")),
    Run(name="normed_weights", kind="norm", why="the weights that move are not those that act",
        build=normed_weights, data=smooth(), losses=(squares,), optimizers=adam(1e-2)),
    Run(name="warm_up_from_nothing", kind="mlp", why="the first rate is 0, the next ones tiny",
        build=lambda: dense(12, 24, 24, 3), data=smooth(), losses=(squares,), optimizers=adam(1e-2),
        schedule=lambda one: LambdaLR(one, lambda step: min(step / 15, 1.0) ** 3), steps=45,
        first=FC0),
    Run(name="cosine_to_nothing", kind="mlp", why="the last rates are tiny",
        build=lambda: dense(12, 24, 3), data=smooth(), losses=(squares,), optimizers=adam(2e-2),
        schedule=lambda one: CosineAnnealingLR(one, 40), steps=40, first=FC0),
    Run(name="clipped_to_a_thousandth", kind="mlp", why="clipping leaves a thousandth, the rate undoes it",
        build=lambda: dense(12, 24, 24, 3), data=smooth(), losses=(squares,), optimizers=sgd(100.0),
        clip=1e-3, steps=40),
    Run(name="eight_batches_a_step", kind="mlp", why="gradients add up over eight backwards",
        build=lambda: dense(12, 24, 3, act=nn.GELU), data=smooth(), losses=(squares,), micro=8,
        batch=16, optimizers=adam(1e-2), first=FC0),
    Run(name="half_precision", kind="mlp", why="bfloat16 has three digits",
        build=lambda: dense(12, 48, 24, 3, act=nn.SiLU), data=smooth(), losses=(squares,),
        autocast=True, optimizers=adam(5e-3), steps=40, first=FC0),
)  # fmt: skip
