"""Healthy runs of recurrent networks, embeddings and transformers."""

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence
from torch.optim import Adam, SparseAdam
from torch.utils.checkpoint import checkpoint

from tests.detection.parts import (
    Layer,
    Reader,
    adam,
    chain,
    each,
    entropy,
    sgd,
    waves,
    with_,
    words,
)
from tests.detection.run import Run


class Packed(nn.Module):
    """An LSTM over series of different lengths; what is after their end is 0."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(4, 16, batch_first=True), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        lengths = x.abs().sum(2).ne(0).sum(1)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.out(self.lstm(packed)[1][0][-1])


class Last(nn.Module):
    """A recurrent network that tells the class at the end."""

    def __init__(self, kind: type[nn.Module], width: int = 16, **options: object) -> None:
        super().__init__()
        self.rnn, self.out = kind(4, width, batch_first=True, **options), nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.rnn(x)[0][:, -1])


class TwoWays(nn.Module):
    """A recurrent network that reads from both ends."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 12, batch_first=True, bidirectional=True)
        self.out = nn.Linear(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.rnn(x)[0][:, -1])


class Sum(nn.Module):
    """The sum over the places of a sentence."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sum(1)


class Tied(nn.Module):
    """A language model whose last layer has the weights of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.layer = Layer(16, causal=True)
        self.norm, self.out = nn.LayerNorm(16), nn.Linear(16, 30, bias=False)
        nn.init.normal_(self.embed.weight, std=0.3)
        self.out.weight = self.embed.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.norm(self.layer(self.embed(x)))).flatten(0, 1)


class Masked(nn.Module):
    """torch's attention over sentences that are mostly padding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 16, padding_idx=0)
        self.attend = nn.MultiheadAttention(16, 2, batch_first=True)
        self.out = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.embed(x)
        mixed, _ = self.attend(seen, seen, seen, key_padding_mask=x == 0, need_weights=False)
        here = (x != 0)[:, :, None]
        return self.out((mixed * here).sum(1) / here.sum(1))


class Bag(nn.Module):
    """A few of many words, by a table with sparse gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.EmbeddingBag(3_000, 12, sparse=True), nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.table(x))


class Again(nn.Module):
    """Layers that run a second time in backward, to save memory."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.layers = nn.ModuleList(Layer(16) for _ in range(2))
        self.out = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.out(x.mean(1))


def cut(random: Generator) -> tuple[Tensor, Tensor]:
    """Series that end early; the first of all does not."""
    x, y = waves()(random)
    length = torch.randint(8, 17, (len(x),), generator=random)
    return x * (torch.arange(16)[None, :, None] < length[:, None, None]), y


def padded(random: Generator) -> tuple[Tensor, Tensor]:
    """Sentences of three words and nine paddings."""
    x, y = words(12)(random)
    x[:, 3:] = 0
    return x, y


def chains(random: Generator) -> tuple[Tensor, Tensor]:
    """Words of which each tells the next; the target is the next one."""
    start = torch.randint(0, 30, (96, 1), generator=random)
    all_ = (start + 7 * torch.arange(13)[None]) % 30
    return all_[:, :-1], all_[:, 1:]


def next_word(net: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """The cross-entropy of the next word, at each place."""
    return F.cross_entropy(net(x), y.flatten())


def remembering() -> nn.Module:
    """An LSTM whose forget gates begin open."""
    net = Last(nn.LSTM)
    return with_(net, lambda one: one.rnn.bias_hh_l0[16:32].fill_(4.0))


def rotating() -> nn.Module:
    """A recurrent network whose state turns and doesn't shrink."""
    net = Last(nn.RNN, 24)
    return with_(net, lambda one: nn.init.orthogonal_(one.rnn.weight_hh_l0))


def small_and_deep() -> nn.Module:
    """Ten layers that begin with small weights, as language models do."""
    net = each(Reader(10), nn.Linear, lambda one: one.weight.normal_(0, 0.1))
    return each(net, nn.Embedding, lambda one: one.weight.normal_(0, 0.1))


RUNS = (
    Run(
        name="packed_lengths",
        kind="rnn",
        why="a packed series is no tensor",
        build=Packed,
        data=cut,
        losses=(entropy,),
        optimizers=adam(2e-2),
        batch=32,
        steps=25,
        first=("lstm.weight_ih_l0",),
    ),
    Run(
        name="gates_begin_open",
        kind="rnn",
        why="forget gates are flat at first, by design",
        build=remembering,
        data=waves(24),
        losses=(entropy,),
        optimizers=adam(1e-2),
        batch=32,
        first=("rnn.weight_ih_l0",),
    ),
    Run(
        name="sixty_turns",
        kind="rnn",
        why="sixty times the same matrix, which turns only",
        build=rotating,
        data=waves(60),
        losses=(entropy,),
        optimizers=adam(3e-3),
        batch=32,
        steps=25,
        first=("rnn.weight_ih_l0",),
    ),
    Run(
        name="two_ways_gru",
        kind="rnn",
        why="one direction has read a single step when the other is done",
        build=lambda: TwoWays(),
        data=waves(),
        losses=(entropy,),
        optimizers=adam(1e-2),
        batch=32,
        idle=("rnn.weight_hh_l0_reverse",),
        first=("rnn.weight_ih_l0", "rnn.weight_ih_l0_reverse"),
    ),
    Run(
        name="tied_and_causal",
        kind="transformer",
        why="weights used twice, scores of -inf",
        build=Tied,
        data=chains,
        losses=(next_word,),
        optimizers=adam(5e-3),
        batch=32,
    ),
    Run(
        name="mostly_padding",
        kind="transformer",
        why="three words, nine paddings",
        build=Masked,
        data=padded,
        losses=(entropy,),
        optimizers=adam(1e-2),
        batch=32,
        steps=40,
    ),
    Run(
        name="rare_words",
        kind="embedding",
        why="a step touches one row in ten",
        build=Bag,
        data=words(8, 3_000),
        losses=(entropy,),
        batch=32,
        steps=40,
        graph=False,
        optimizers=lambda net: (
            SparseAdam([net.table.weight], lr=2e-2),
            Adam(net.out.parameters(), lr=2e-2),
        ),
    ),
    Run(
        name="ten_small_layers",
        kind="transformer",
        why="deep, with small weights in every branch",
        build=small_and_deep,
        data=words(),
        losses=(entropy,),
        optimizers=adam(2e-3),
        batch=32,
        steps=25,
    ),
    Run(
        name="run_again_in_backward",
        kind="transformer",
        why="each layer is called twice a step",
        build=Again,
        data=words(),
        losses=(entropy,),
        optimizers=adam(5e-3),
        batch=32,
        steps=25,
    ),
    Run(
        name="embedding_before_a_sum",
        kind="embedding",
        why="padding counts for nothing in a sum",
        build=lambda: chain(
            embed=nn.Embedding(30, 12, padding_idx=0), sum=Sum(), out=nn.Linear(12, 2)
        ),
        data=padded,
        losses=(entropy,),
        optimizers=sgd(0.5),
        steps=40,
    ),
)
