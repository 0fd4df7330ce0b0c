"""`DifferentiableFilter`: a filter with a torch module inside.

The module lives on the filter as `_module`. `_trainer.py` runs it in a graph; a filter also
works alone, by `materialize` and `forward`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from threading import RLock
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from soma.core import Filter
from soma.errors import InvalidOutput, NotMaterialized
from soma.training._convert import kind_of, mirrored, to_tensors, wanted_by, wants_gradient
from soma.training._module_picture import module_svg
from soma.training._shape import Shapes
from soma.training._twin import Marks, at_rest, carry_over, frozen_twin, same_layout
from soma.training._weights import ModuleState, load_weights

# Threads may share a filter, and while one has its module replaced the others wait.
_REPLACING = RLock()

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
    _twin_state: ModuleState | None = None
    _twin_marks: Marks | None = None  # as the twin was made
    _uses_twin: bool = False
    _loaded: tuple[object, nn.Module] | None = None
    _replacement: nn.Module | None = None
    _current: nn.Module | None = None  # of the three above, the one in use
    _writes_input: bool = False  # found out when the module was first run
    _in_a_module: bool = False  # a copy that `g.module()` runs: gradients live in eval too

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
        eval nothing is recorded, unless `x` asks for a gradient; the output is of the kind of `x`
        (tensor, array, list), and a state with `weights_b64` takes the place of the module's own
        weights.
        """
        if self.training or self._in_a_module:
            module = self._built()
            return module(to_tensors(x, wanted_by(module))), {}
        module = self._with_weights_of(state)
        if wants_gradient(x) and torch.is_grad_enabled():
            return at_rest(module)(to_tensors(x, wanted_by(module))), {}
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
            self._module = module
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

    def _repr_html_(self) -> str | None:
        return None if self._live is None else module_svg(type(self).__name__, self._live)

    def _description(self) -> str:
        name = super()._description()
        shape = self._built_for
        return f"{name}, built for samples of shape {shape}" if shape is not None else name

    @property
    def _module(self) -> nn.Module | None:
        """The module in use: the live one, or its frozen twin after `Graph.freeze`."""
        return self._current

    @_module.setter
    def _module(self, module: nn.Module | None) -> None:
        self._live = None if module is None else module.train(self.training)
        self._drop_twin()

    def _set_twin(self, twin: nn.Module) -> None:
        """Use a frozen twin from now on, until it is dropped or the live module is wanted."""
        self._twin, self._twin_marks, self._twin_state = twin, Marks(twin), ModuleState(twin)
        self._use_twin(use=True)

    def _drop_twin(self) -> None:
        self._twin = self._twin_marks = self._twin_state = None
        self._use_twin(use=False)

    def _move(self, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        """Move the module and its frozen twin, which is not a user's writing to the twin."""
        was_edited = self._is_edited()
        for module in (self._live, self._twin):
            if module is not None:
                module.to(device=device, dtype=dtype)
        if self._twin is not None and not was_edited:
            self._twin_marks = Marks(self._twin)

    def _is_edited(self) -> bool:
        """Whether a user has written to the frozen twin, as `_module`, since it was made."""
        return self._twin_marks is not None and not self._twin_marks.hold()

    def _bring_back_live(self) -> None:
        """Use the live module, with what a user wrote to the twin as `_module` meanwhile."""
        if self._twin is not None and self._live is not None and self._is_edited():
            if same_layout(self._twin, self._live):
                carry_over(self._twin, self._live)
                self._drop_twin()
            else:
                self._module = self._twin  # it was given other parts
        elif self._uses_twin:
            self._use_twin(use=False)

    def _frozen_state(self) -> ModuleState | None:
        """Return the state that an overridden `forward` is given; None for live weights."""
        return self._twin_state if self._uses_twin and self._replacement is None else None

    @contextmanager
    def _module_replaced(self, module: nn.Module) -> Iterator[None]:
        """Let `_module` be another one inside, for a `forward` that asks for it."""
        with _REPLACING:
            self._replacement = self._current = module
            try:
                yield
            finally:
                self._replacement = None
                self._current = self._twin if self._uses_twin else self._live

    def _use_twin(self, *, use: bool) -> None:
        self._uses_twin = use and self._twin is not None
        self._current = self._twin if self._uses_twin else self._live
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
        if state is self._twin_state and self._uses_twin:
            return module  # its own weights
        weights = state["weights_b64"]
        if self._loaded is None or self._loaded[0] != weights:
            twin = frozen_twin(module, {})
            load_weights(twin, weights)
            self._loaded = (weights, twin)
        return self._loaded[1]
