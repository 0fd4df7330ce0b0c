"""Filters that the tests of this folder are made of."""

import torch
from torch import Tensor, nn

from soma import DifferentiableFilter, Filter


class Dense(DifferentiableFilter):
    """One linear layer, with or without an activation."""

    def __init__(self, width: int, activation: type[nn.Module] | None = None) -> None:
        super().__init__(width=width, activation=activation)

    def build_module(self, input_shape):
        linear = nn.Linear(input_shape[-1], self.width)
        return linear if self.activation is None else nn.Sequential(linear, self.activation())

    def output_shape(self, input_shape):
        return (self.width,)


class Wrap(DifferentiableFilter):
    """Any module, made by a function of the input shape."""

    def __init__(self, make) -> None:
        super().__init__(make=make)

    def build_module(self, input_shape):
        return self.make(input_shape)


class Concatenate(DifferentiableFilter):
    """A fan-in: joins what its predecessors give, then a linear layer."""

    def __init__(self, width: int) -> None:
        super().__init__(width=width)

    def build_module(self, input_shape):
        return nn.Linear(sum(shape[-1] for shape in input_shape.values()), self.width)

    def forward(self, x, state=None):
        joined = torch.cat([torch.as_tensor(part) for part in x.values()], dim=1)
        return self._module(joined), {}


class Gated(DifferentiableFilter):
    """A layer that shows its gate."""

    def __init__(self, width: int) -> None:
        super().__init__(width=width)

    def build_module(self, input_shape):
        return nn.ModuleDict(
            {
                "value": nn.Linear(input_shape[-1], self.width),
                "gate": nn.Linear(input_shape[-1], self.width),
            }
        )

    def forward(self, x, state=None):
        gate = torch.sigmoid(self._module["gate"](x))
        return self._module["value"](x) * gate, {"gate": gate}


class Standardize(Filter):
    """A plain scaler of tensors that lets gradients through."""

    _differentiable = True

    def fit(self, x, y=None):
        return {"mean": x.mean(0), "std": x.std(0)}

    def forward(self, x, state):
        return (x - state["mean"]) / state["std"]


class Rounded(Filter):
    """A step that no gradient passes."""

    _kind = "opaque"

    def forward(self, x, state):
        return torch.round(x * 4) / 4


def data(
    rows: int = 64, columns: int = 6, targets: int = 3, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Return inputs and targets, the same at every call."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, columns, generator=generator)
    return x, torch.randn(rows, targets, generator=generator)
