"""What is checked: a copy of a model that may be run, trained and thrown away."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Protocol

import torch
from torch import Tensor, nn


class Subject(Protocol):
    """A model with its loss. Every call is on a copy, so nothing of the user's changes."""

    name: str

    def copy(self) -> "Subject":
        """Return another copy, as it was at the start."""
        ...

    def modules(self) -> Iterator[tuple[str, nn.Module]]:
        """Give every module that trains, with the name that messages use."""
        ...

    def answer(self, x: object) -> object:
        """Return the output in eval, without autograd."""
        ...

    def outputs_and_loss(self, x: object, y: object) -> tuple[object, Tensor]:
        """Return the output in training, with its autograd history, and its loss."""
        ...

    def loss_of(self, output: object, y: object) -> Tensor:
        """Return the loss of an output made up by the caller."""
        ...


class ModuleSubject:
    """A module of torch, and a loss `(output, y) -> tensor of one number`."""

    def __init__(self, module: nn.Module, loss: Callable[[object, object], Tensor]) -> None:
        self.name = type(module).__name__
        self._module = deepcopy(module, computed_by_hooks(module))
        self._loss = loss

    def copy(self) -> "ModuleSubject":
        """Return another copy, as it was at the start."""
        return ModuleSubject(self._module, self._loss)

    def modules(self) -> Iterator[tuple[str, nn.Module]]:
        """Give the module itself."""
        yield self.name, self._module

    def answer(self, x: object) -> object:
        """Return the output in eval, without autograd."""
        with torch.no_grad():
            return self._module.eval()(x)

    def outputs_and_loss(self, x: object, y: object) -> tuple[object, Tensor]:
        """Return the output in training, with its autograd history, and its loss."""
        output = self._module.train()(x)
        return output, self.loss_of(output, y)

    def loss_of(self, output: object, y: object) -> Tensor:
        """Return the loss of an output made up by the caller."""
        return self._loss(output, y)


def computed_by_hooks(module: nn.Module) -> dict[int, object]:
    """Return copies of what hooks left in a module at its last call, as a memo of `deepcopy`.

    Old weight normalisation leaves a weight with a history there, which `deepcopy` refuses.
    """
    held = (value for part in module.modules() for value in vars(part).values())
    return {
        id(value): value.detach().clone()
        for value in held
        if isinstance(value, Tensor) and not value.is_leaf
    }


def named_parameters(subject: Subject) -> Iterator[tuple[str, nn.Parameter]]:
    """Give every parameter once, by module and name."""
    seen: set[int] = set()
    for owner, module in subject.modules():
        for name, parameter in module.named_parameters():
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield f"{owner}.{name}", parameter
