"""Healthy runs with a copy that follows by hand, called like any module and then detached."""

from copy import deepcopy

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam

from tests.detection.parts import blobs, dense
from tests.detection.run import Run


class Pair(nn.Module):
    """A network and a copy of it that nobody has told to want no gradient."""

    def __init__(self, *widths: int) -> None:
        super().__init__()
        self.learner = dense(*widths, act=nn.GELU)
        self.copy = deepcopy(self.learner)
        self.turn = 0


def distil(net: Pair, x: Tensor, y: Tensor, step: int) -> Tensor:
    """Classes, and what the copy says of the same samples."""
    goal = net.copy(x).softmax(1).detach()
    logits = net.learner(x + 0.1 * torch.randn_like(x))
    near = F.kl_div(logits.log_softmax(1), goal, reduction="batchmean")
    return F.cross_entropy(logits, y) + 0.5 * near


@torch.no_grad()
def follow(net: Pair) -> None:
    """Let the copy come a twentieth nearer."""
    for mine, other in zip(net.copy.parameters(), net.learner.parameters(), strict=True):
        mine.lerp_(other, 0.05)


def moves(random: Generator) -> tuple[Tensor, Tensor]:
    """States, a reward that the action names, the next states; and the actions."""
    rows = torch.arange(256)
    state = torch.randn(256, 6, generator=random)
    action = torch.randint(0, 3, (256,), generator=random)
    after = 0.7 * state + 0.3 * torch.randn(256, 6, generator=random)
    reward = 1 + state[rows, action] + 0.1 * torch.randn(256, generator=random)
    return torch.cat([state, reward[:, None], after], 1), action


def difference(net: Pair, x: Tensor, y: Tensor, step: int) -> Tensor:
    """The temporal difference, against what the copy says of the next states."""
    goal = x[:, 6] + 0.9 * net.copy(x[:, 7:]).max(1).values
    said = net.learner(x[:, :6]).gather(1, y[:, None])[:, 0]
    return F.smooth_l1_loss(said, goal.detach())


def catch_up(net: Pair) -> None:
    """Bring the copy up to date in every tenth step."""
    net.turn += 1
    if net.turn % 10 == 0:
        net.copy.load_state_dict(net.learner.state_dict())


def wrong_moves(net: Pair, x: Tensor, y: Tensor) -> Tensor:
    """The share of states in which the best action is not found."""
    return (net.learner(x[:, :6]).argmax(1) != x[:, :3].argmax(1)).float().mean()


def _optimizer(net: nn.Module) -> tuple[Adam, ...]:
    assert isinstance(net, Pair)
    return (Adam(net.learner.parameters(), 3e-3),)


_COPY = tuple(f"copy.{name}" for name, _ in dense(1, 1, 1, 1).named_parameters())

RUNS = (
    Run(
        name="teacher_detached",
        kind="siamese",
        why="a teacher follows by hand, and its answer is detached after the call",
        build=lambda: Pair(12, 32, 32, 4),
        data=blobs(),
        losses=(distil,),  # type: ignore[arg-type]
        optimizers=_optimizer,
        after=follow,  # type: ignore[arg-type]
        steps=40,
        graph=False,
        idle=_COPY,
    ),
    Run(
        name="target_detached",
        kind="q-learning",
        why="a target network is copied in every tenth step",
        build=lambda: Pair(6, 32, 32, 3),
        data=moves,
        losses=(difference,),  # type: ignore[arg-type]
        optimizers=_optimizer,
        after=catch_up,  # type: ignore[arg-type]
        steps=60,
        graph=False,
        score=wrong_moves,  # type: ignore[arg-type]
        idle=_COPY,
    ),
)
