"""On a CUDA device: the modules move, the user's tensors do not."""

import pytest

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
