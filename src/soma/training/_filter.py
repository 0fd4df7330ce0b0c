"""`DifferentiableFilter`: a filter with a torch module inside.

The module lives on the filter as `_module`. `_trainer.py` runs it in a graph; a filter also
works alone, by `materialize` and `forward`.
"""

from collections.abc import Mapping
from itertools import count
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from soma.core import Filter
from soma.errors import InvalidOutput, NotMaterialized
from soma.training._convert import kind_of, mirrored, to_tensors, wanted_by
from soma.training._shape import Shapes
from soma.training._twin import frozen_twin
from soma.training._weights import load_weights

Aux = dict[str, object]


class DifferentiableFilter(Filter):
    """A step with weights, trained with the rest of the graph.

    >>> class Dense(DifferentiableFilter):
    ...     def build_module(self, input_shape):
    ...         return nn.Linear(input_shape[-1], self.width)
    >>> layer = Dense(width=2)
    >>> layer.materialize((3,))
    Linear(in_features=3, out_features=2, bias=True)
    >>> output, aux = layer.forward(torch.zeros(5, 3))
    >>> output.shape
    torch.Size([5, 2])

    Override `forward` for what a plain call of the module does not do: several inputs,
    auxiliary signals. Shapes have no batch axis; a fan-in gets a dict of shapes.
    """

    _kind: ClassVar[str | None] = "trainable"
    _differentiable: ClassVar[bool] = True
    _has_module: ClassVar[bool] = True

    training: bool = False

    # Counts every module that is built or exchanged anywhere, so that a graph sees at one glance
    # whether what it has lowered is still true.
    _exchanges: ClassVar["count[int]"] = count(1)
    _last_exchange: ClassVar[int] = 0

    _built_for: Shapes = None
    _live: nn.Module | None = None
    _twin: nn.Module | None = None
    _uses_twin: bool = False
    _loaded: tuple[object, nn.Module] | None = None

    def build_module(self, input_shape: Shapes) -> nn.Module:
        """Return the module, new; called once.

        Args:
            input_shape: the shape of one sample, without the batch axis; a dict of shapes at
                a fan-in; None where the input has no shape.
        """
        raise NotImplementedError(
            f"`{type(self).__name__}` does not define `build_module(self, input_shape)`."
        )

    def output_shape(self, input_shape: Shapes) -> Shapes:
        """Return the shape of one output sample, or None to let a run of the module tell."""
        return None

    def forward(self, x: object, state: object = None) -> tuple[object, Aux]:
        """Return `(output, aux)`.

        In training the output is a tensor with its autograd history and `state` is ignored. In
        eval nothing is recorded, the output is of the kind of `x` (tensor, array, list), and a
        state with `weights_b64` takes the place of the module's own weights.
        """
        if self.training:
            module = self._built()
            return module(to_tensors(x, wanted_by(module))), {}
        module = self._with_weights_of(state)
        with torch.no_grad():
            output = module(to_tensors(x, wanted_by(module)))
        return mirrored(output, kind_of(x)), {}

    def compute_loss(self, out: object, y: object, aux: Aux) -> Tensor:
        """Return the loss of this node's output; `Graph.fit` uses it where it is overridden."""
        raise NotImplementedError(f"`{type(self).__name__}` does not define `compute_loss`.")

    def materialize(self, input_shape: Shapes) -> nn.Module:
        """Build the module for samples of `input_shape`, unless it is built; return it."""
        if self._live is None:
            module = self.build_module(input_shape)
            self._built_for = input_shape
            if not isinstance(module, nn.Module):
                raise InvalidOutput(
                    f"`{type(self).__name__}.build_module` returned {module!r}; a "
                    "torch.nn.Module is wanted."
                )
            self._module = module.train(self.training)
        assert self._module is not None
        return self._module

    def train(self, mode: bool = True) -> Self:
        """Set the mode of this filter and of its module."""
        self.training = mode
        if self._live is not None:
            self._live.train(mode)
        return self

    def eval(self) -> Self:
        """Set this filter and its module to eval."""
        return self.train(mode=False)

    def _description(self) -> str:
        name = type(self).__name__
        shape = self._built_for
        return f"{name}, built for samples of shape {shape}" if shape is not None else name

    @property
    def _module(self) -> nn.Module | None:
        """The module in use: the live one, or its frozen twin after `Graph.freeze`."""
        return self._twin if self._uses_twin else self._live

    @_module.setter
    def _module(self, module: nn.Module | None) -> None:
        self._live = module
        self._twin = None
        self._use_twin(use=False)

    def _use_twin(self, *, use: bool) -> None:
        self._uses_twin = use and self._twin is not None
        DifferentiableFilter._last_exchange = next(DifferentiableFilter._exchanges)

    def _built(self) -> nn.Module:
        if self._module is None:
            raise NotMaterialized(
                f"`{type(self).__name__}` has no module yet. Call `g.materialize(sample)`, or "
                "`materialize(input_shape)` on the filter."
            )
        return self._module

    def _with_weights_of(self, state: object) -> nn.Module:
        module = self._built()
        if not isinstance(state, Mapping) or "weights_b64" not in state:
            return module
        weights = state["weights_b64"]
        if self._loaded is None or self._loaded[0] != weights:
            twin = frozen_twin(module, {})
            load_weights(twin, weights)
            self._loaded = (weights, twin)
        return self._loaded[1]
