"""An encoder of several branches, each with a fault, seen from outside."""

import torch
from torch import nn

from soma import DifferentiableFilter
from tests.audit.flows import arrows, edges, in_training, node, traced


class Encoder(DifferentiableFilter):
    """Two senses that are joined, a trunk, and a context that is multiplied away."""

    def build_module(self, input_shape):
        trunk = [layer for _ in range(2) for layer in (nn.Linear(32, 32), nn.Tanh())]
        return nn.ModuleDict(
            {
                "branches": nn.ModuleDict(
                    {
                        sense: nn.Sequential(nn.Linear(16, 16), nn.ReLU())
                        for sense in ("audio", "text")
                    }
                ),
                "mix": nn.Identity(),
                "post": nn.Sequential(nn.Linear(32, 32), nn.ReLU()),
                "trunk": nn.Sequential(*trunk),
                "ctx": nn.Linear(32, 32),
                "head": nn.Linear(32, 8),
            }
        )

    def output_shape(self, input_shape):
        return (8,)

    def forward(self, x, state=None):
        x = torch.as_tensor(x, dtype=torch.float32)
        self.materialize(tuple(x.shape[1:]))
        m = self._module
        audio = m["branches"]["audio"](x[:, :16])
        text = m["branches"]["text"](x[:, 16:])
        mixed = m["mix"](torch.cat([audio, text], dim=1))
        deep = m["trunk"](m["post"](mixed))
        return m["head"](deep + 0.0 * m["ctx"](mixed)), {}


EXPECTED = """
    input > getitem_1 > branches.audio.0 > branches.audio.1 > cat_1,
    input > getitem_2 > branches.text.0 > branches.text.1 > cat_1,
    cat_1 > mix > post.0 > post.1 > trunk.0 > trunk.1 > trunk.2 > trunk.3 > add_1,
    mix > ctx > mul_1 > add_1 > head > output
"""


def test_the_flow_of_an_encoder() -> None:
    """Senses join in the mix, and the context joins the trunk before the head."""
    x = torch.randn(4, 32)
    flow = traced(in_training(Encoder(), x), x, x)

    assert edges(flow) == arrows(EXPECTED)
    assert {one.share for one in (*flow.nodes, *flow.edges)} == {1.0}
    assert (flow.class_name, flow.calls, flow.note) == ("Encoder", 2, None)
    assert (flow.parameters, node(flow, "ctx").parameters) == (5032, 1056)


def test_an_array_goes_in() -> None:
    """An input that is an array is followed into the tensor that is made of it."""
    x = torch.randn(4, 32).numpy()

    assert edges(traced(in_training(Encoder(), x), x)) == arrows(EXPECTED)
