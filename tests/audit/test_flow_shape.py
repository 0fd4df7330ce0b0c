"""Branches, joins, and what a reader takes for one box."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.audit.flows import Join, arrows, edges, flow_of, node


def test_fork_join_and_dict() -> None:
    """Branches, an in-place activation, a join and each part of a dict are followed."""
    assert edges(flow_of(Join())) == arrows(
        "input > left > act > cat_1, input > right > cat_1,"
        "cat_1 > head > output.logits, cat_1 > output.code"
    )


def test_boxes_tell_their_size() -> None:
    """A box has its parameters, those that learn, its shape and its arguments."""
    module = Join()
    module.left.weight.requires_grad_(False)
    left = node(flow_of(module), "left")

    assert (left.kind, left.label, left.path, left.share) == ("module", "Linear", "left", 1.0)
    assert (left.parameters, left.trainable, left.shape) == (21, 3, (4, 3))
    assert left.detail == "in_features=6, out_features=3, bias=True"


def test_a_lone_layer() -> None:
    """A module without submodules is one box, named for its class."""
    assert edges(flow_of(nn.Linear(6, 2))) == arrows("input > Linear > output")


def test_twice_called() -> None:
    """A module called twice is two boxes, and a shared one keeps its first name."""
    layer = nn.Linear(6, 6)
    flow = flow_of(nn.Sequential(layer, nn.Tanh(), layer))

    assert edges(flow) == arrows("input > 0 > 1 > 0#2 > output")


def test_transformer_encoder() -> None:
    """Attention is one box, and the sums around it are seen."""
    layer = nn.TransformerEncoderLayer(6, 2, dim_feedforward=8, batch_first=True)
    flow = flow_of(
        nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), torch.randn(2, 5, 6)
    )
    expected = (
        "input > S.self_attn > S.dropout1 > add_1, input > add_1 > S.norm1,"
        "S.norm1 > S.linear1 > relu_1 > S.dropout > S.linear2 > S.dropout2 > add_2,"
        "S.norm1 > add_2 > S.norm2 > output"
    )

    assert edges(flow) == arrows(expected.replace("S.", "layers.0."))


def test_packed_sequences() -> None:
    """A flow goes through a `PackedSequence`."""

    def forward(module, x):
        packed = pack_padded_sequence(x, [3, 2], batch_first=True)
        states, (last, _) = module["lstm"](packed)
        padded, _ = pad_packed_sequence(states, batch_first=True)
        return padded.sum(1) + module["head"](last[0])

    module = nn.ModuleDict({"lstm": nn.LSTM(6, 4, batch_first=True), "head": nn.Linear(4, 4)})
    flow = flow_of(module, torch.randn(2, 3, 6), forward)

    assert arrows("pack_padded_sequence_1 > lstm, lstm > getitem_1 > head > add_1") <= edges(flow)
    assert ("sum_1", "add_1", None) in edges(flow)


def test_weights_used_by_hand() -> None:
    """An operation on weights counts them, and says which they are."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.code = nn.Linear(6, 3)

        def forward(self, x):
            return F.linear(self.code(x), self.code.weight.t())

    flow = flow_of(Tied())

    assert edges(flow) == arrows("input > code > linear_1 > output, t_1 > linear_1")
    assert (node(flow, "t_1").parameters, node(flow, "t_1").detail) == (18, "uses code.weight")


def test_writing_in_place() -> None:
    """What is written into a part of a tensor flows on from the whole."""

    def forward(module, x):
        room = torch.zeros(4, 12)
        room[:, :6] = x
        room[:, 6:].add_(module["a"](x))
        return room * 2

    flow = flow_of(nn.ModuleDict({"a": nn.Linear(6, 6)}), function=forward)

    assert edges(flow) == arrows(
        "input > setitem_1, input > a > add__1, setitem_1 > getitem_1 > add__1,"
        "setitem_1 > mul_1 > output, add__1 > mul_1"
    )


def test_attention_in_eval_is_one_box() -> None:
    """Attention in eval is not looked into, since looking would change its kernels."""

    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(6, 2, batch_first=True)

        def train(self, mode=True):
            self.layer.eval()
            return self

        def forward(self, x):
            return self.layer(x)

    flow = flow_of(Frozen(), torch.randn(2, 5, 6))

    assert edges(flow) == arrows("input > Frozen > output")
    assert flow.note == "attention in eval, which tracing would slow down: only its ends were seen"


def test_compiled_and_scripted_are_one_box() -> None:
    """Compiled and scripted modules are not looked into, and the flow says so."""
    with pytest.deprecated_call():
        script = torch.jit.script(nn.Linear(6, 2))
    scripted = flow_of(nn.Sequential(script))
    compiled = nn.Sequential(torch.compile(nn.Linear(6, 2), backend="eager"))

    assert (scripted.note, edges(scripted)) == (
        "scripted: only its ends were seen",
        arrows("input > Sequential > output"),
    )
    assert flow_of(compiled).note == "compiled: only its ends were seen"


def test_a_transform_is_passed_by() -> None:
    """Inside `vmap` nothing is looked at, and the flow says so."""
    flow = flow_of(nn.Linear(6, 2), function=lambda module, x: torch.func.vmap(module)(x))

    assert flow.note == "inside a `torch.func` transform nothing was seen"


def test_too_many_steps() -> None:
    """A flow stops growing at two thousand steps, and says so."""

    def forward(module, x):
        for _ in range(2100):
            x = x + 1
        return module(x)

    flow = flow_of(nn.Linear(6, 2), function=forward)

    assert len(flow.nodes) <= 2001
    assert flow.note == "more than 2000 steps; the rest is not shown"
