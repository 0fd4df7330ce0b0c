"""A training step with one node on a worker over the same step written with torch's RPC.

By hand the same modules stand in two processes, torch's distributed autograd goes back through
them, and the worker copies the gradients of the context and steps an Adam of its own. Both run
in turn on one connection, to one worker process, with one torch thread each.

Messages go through shared memory on one machine, where the system counts no bytes. So the
program counts what torch's RPC pickler makes of each message that it sends and gets: the pickle
and the tensors beside it. The two gradients of a backward go past the pickler, and are the same
tensors both ways.
"""

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
from measure import ratio, verdict
from torch import nn
from torch.distributed.rpc import internal
from torch.nn import functional as F

from soma import DifferentiableFilter, Graph
from soma.distributed import local_cluster
from soma.distributed._current import current_connection

torch.set_num_threads(1)
PICKLER = internal._internal_rpc_pickler
HELD: dict[str, object] = {}


class Linear(DifferentiableFilter):
    """A linear layer."""

    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], self.width)


def hand_build(width: int) -> None:
    """Build the module and its optimizer on the worker."""
    torch.set_num_threads(1)
    HELD["module"] = module = nn.Linear(width, width)
    HELD["optimizer"] = torch.optim.Adam(module.parameters(), lr=1e-3)


def hand_forward(x):
    """Call the module on the worker."""
    return HELD["module"](x)


def hand_step(context: int) -> None:
    """Step on the worker with the gradients of a context."""
    gradients = dist_autograd.get_gradients(context)
    for weight in HELD["module"].parameters():
        weight.grad = gradients.get(weight)
    HELD["optimizer"].step()


def measured(worker: str, width: int, batch: int) -> None:
    """Print the ratio for one size."""
    x, y = torch.randn(batch, width), torch.randn(batch, width)
    g = Graph.somatize(Linear(width=width) >> Linear(width=width).at(worker) >> Linear(width=width))
    g.materialize(x).train().make_optimizer(torch.optim.Adam, lr=1e-3)
    address = current_connection()._address(worker)
    first, last = nn.Linear(width, width), nn.Linear(width, width)
    optimizer = torch.optim.Adam([*first.parameters(), *last.parameters()], lr=1e-3)
    rpc.rpc_sync(address, hand_build, (width,))

    def through_the_graph():
        with g.context() as ctx:
            g.zero_grad()
            out, _ = g.forward(x)
            g.backward(ctx, F.mse_loss(out, y))
        g.step(ctx)

    def by_hand():
        with dist_autograd.context() as context:
            hidden = first(x)
            out = last(rpc.rpc_sync(address, hand_forward, (hidden,)))
            dist_autograd.backward(context, [F.mse_loss(out, y)])
            gradients = dist_autograd.get_gradients(context)
            for weight in (*first.parameters(), *last.parameters()):
                weight.grad = gradients[weight]
            there = rpc.rpc_async(address, hand_step, (context,))
            optimizer.step()
            there.wait()

    through_the_graph()
    found = ratio(through_the_graph, by_hand, rounds=21, round_seconds=0.15)
    print(f"{width:5d} wide, batch {batch:4d}   {verdict(found, 1.10)}")
    graph, hand = (moved(one) for one in (through_the_graph, by_hand))
    print(f"{'':23s}{graph[0]:,.0f} bytes a step over {hand[0]:,.0f}, ", end="")
    print(f"in {graph[1]:g} messages over {hand[1]:g}")


class Counted:
    """Counts the messages that this process sends and gets while it is entered, and their bytes."""

    def __init__(self) -> None:
        self.bytes = self.messages = 0

    def __enter__(self):
        self._serialize, self._deserialize = PICKLER.serialize, PICKLER.deserialize
        PICKLER.serialize, PICKLER.deserialize = self._sent, self._got
        return self

    def __exit__(self, *_):
        del PICKLER.serialize, PICKLER.deserialize

    def _sent(self, value):
        data, tensors = self._serialize(value)
        self._count(data, tensors)
        return data, tensors

    def _got(self, data, tensors):
        self._count(data, tensors)
        return self._deserialize(data, tensors)

    def _count(self, data, tensors) -> None:
        self.messages += 1
        self.bytes += len(data) + sum(one.nbytes for one in tensors)


def moved(step, steps: int = 20) -> tuple[float, float]:
    """Return bytes and messages of a step, beside the gradients of a backward."""
    with Counted() as counted:
        for _ in range(steps):
            step()
    return counted.bytes / steps, counted.messages / steps


if __name__ == "__main__":
    with local_cluster(1) as (name,):
        print("training step, one of three nodes on a worker, over torch's RPC by hand")
        for width, batch in [(8, 32), (256, 64), (1024, 128)]:
            measured(name, width, batch)
