"""On a CUDA device: the modules move, the user's tensors do not."""

from pathlib import Path

import pytest
import torch

from soma import Graph
from tests.training.filters import Dense, data

pytestmark = pytest.mark.gpu
X, Y = data()


def test_modules_move_and_lists_follow_them() -> None:
    """Lists and arrays become tensors where the module is, and come back as they were."""
    g = Graph.somatize(Dense(3))
    g.materialize(X)
    g.to("cuda").freeze()

    assert g.forward(X.cuda()).is_cuda
    assert type(g.forward(X.tolist())) is list
    assert type(g.forward(X.numpy())) is type(X.numpy())


def test_a_tensor_elsewhere_keeps_the_error_of_torch() -> None:
    """A tensor on the CPU is not moved for the user; the note names the node."""
    g = Graph.somatize(Dense(3))
    g.materialize(X)
    g.to("cuda").train()
    with pytest.raises(RuntimeError, match="device") as caught:
        g.forward(X)
    assert "`dense`" in caught.value.__notes__[0]


def test_a_graph_on_a_gpu_is_saved_and_goes_on(tmp_path: Path) -> None:
    """A file from a GPU loads without one; with `device` training goes on there, bit for bit."""
    x, y = (one.cuda() for one in data())
    torch.manual_seed(0)
    g = Graph.somatize(Dense(8) >> Dense(3), cache=None).materialize(x.cpu()).to("cuda").train()
    g.make_optimizer(torch.optim.Adam)

    def steps(g: Graph) -> None:
        for _ in range(5):
            g.zero_grad()
            g.backward(None, torch.nn.functional.mse_loss(g.forward(x)[0], y))
            g.step()

    steps(g)
    g.save(tmp_path / "g.soma", optimizer=True)
    h = Graph.load(tmp_path / "g.soma", device="cuda").train()
    steps(g)
    steps(h)

    assert all(map(torch.equal, g.parameters(), h.parameters()))
    assert {one.device.type for one in Graph.load(tmp_path / "g.soma").parameters()} == {"cpu"}
