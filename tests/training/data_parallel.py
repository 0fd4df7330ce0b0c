"""One of two processes that train the module of one graph side by side; a script."""

import json
import os
import sys

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from soma import Graph
from tests.training.filters import Concatenate, Dense, Gated

X = torch.linspace(-1, 1, 32).reshape(8, 4)
Y = X[:, :2] * 2


def graph() -> Graph:
    """Return a graph that is the same in every process."""
    torch.manual_seed(0)
    return Graph.somatize((Gated(3) | Dense(2)) >> Concatenate(2)).materialize(X)


def train(module: nn.Module, x: Tensor, y: Tensor) -> None:
    """Take three steps by a loss that has a part for an auxiliary tensor."""
    module.train()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(3):
        output, aux = module(x)
        optimizer.zero_grad()
        (nn.functional.mse_loss(output, y) + aux["gated"]["gate"].mean()).backward()
        optimizer.step()


def main(rank: int, meeting: str) -> None:
    """Train on a half of the data, and tell what the graph answers afterwards."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    distributed.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=2)
    g = graph()
    train(DistributedDataParallel(g.module()), X[rank::2], Y[rank::2])
    distributed.destroy_process_group()
    sys.stdout.write(json.dumps(g.eval().forward(X).tolist()))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
