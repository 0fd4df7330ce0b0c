"""The optimizers of a graph: one, or several by name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import LBFGS, Optimizer

from soma.errors import NoOptimizer, SomaError, did_you_mean, listing

Closure = Callable[[], object]
_ONE = "optimizer"


class Optimizers:
    """Steps and clears every optimizer that the graph knows."""

    def __init__(self) -> None:
        self.chosen_by_fit = False  # rather than by the user
        self._named: dict[str, Optimizer] = {}
        self._plain: tuple[Optimizer, ...] = ()  # all of them, unless one needs a closure

    def set(self, optimizer: object) -> None:
        """Take one optimizer, or a mapping of several by name, in place of the present ones."""
        given = optimizer if isinstance(optimizer, Mapping) else {_ONE: optimizer}
        named = {str(name): _checked(name, one) for name, one in given.items()}
        self.chosen_by_fit = False
        self._named = named
        needs_closure = any(isinstance(one, LBFGS) for one in named.values())
        self._plain = () if needs_closure else tuple(named.values())

    def get(self) -> "Optimizer | dict[str, Optimizer] | None":
        """Return what was set: one optimizer, a dict of several, or None."""
        if tuple(self._named) == (_ONE,):
            return self._named[_ONE]
        return dict(self._named) or None

    def named(self) -> Mapping[str, Optimizer]:
        """Return all by name, a single one too."""
        return dict(self._named)

    def __iter__(self) -> Iterator[Optimizer]:
        return iter(self._named.values())

    def __bool__(self) -> bool:
        return bool(self._named)

    def zero_grad(self) -> None:
        """Clear the gradients; nothing to do before there is an optimizer."""
        for optimizer in self._named.values():
            optimizer.zero_grad()

    def step(self, only: str | Sequence[str] | None, closure: Closure | None) -> None:
        """Step all optimizers, or those named in `only`, with a closure where one is given.

        Raises:
            NoOptimizer: there is none, or none of that name.
        """
        if only is None and closure is None and self._plain:
            for optimizer in self._plain:
                optimizer.step()
            return
        if not self._named:
            raise NoOptimizer(
                "`step` was called and this graph has no optimizer. Call "
                "`g.make_optimizer(torch.optim.Adam, lr=1e-3)` or `g.set_optimizer(optimizer)` "
                "before the loop."
            )
        for optimizer in self.chosen(only).values():
            if closure is not None:
                # The closure runs backward itself, also where the caller has gradients off.
                with torch.enable_grad():
                    optimizer.step(closure)  # type: ignore[arg-type]  # torch wants a float loss
            elif isinstance(optimizer, LBFGS):
                raise NoOptimizer(
                    "LBFGS evaluates the loss several times a step and needs a closure. Call "
                    "`g.step(closure=closure)`, where closure clears the gradients, runs forward "
                    "and backward, and returns the loss."
                )
            else:
                optimizer.step()

    def chosen(self, only: str | Sequence[str] | None) -> dict[str, Optimizer]:
        """Return all by name, or those named in `only`.

        Raises:
            NoOptimizer: there is none of that name.
        """
        if only is None:
            return dict(self._named)
        names = [only] if isinstance(only, str) else list(only)
        for name in names:
            if name not in self._named:
                raise NoOptimizer(
                    f"no optimizer `{name}`; this graph has {listing(self._named)}."
                    f"{did_you_mean(name, self._named)}"
                )
        return {name: self._named[name] for name in names}


def _checked(name: object, optimizer: Any) -> Optimizer:
    # By what it can do, not by its class: wrappers of other libraries are no subclasses.
    if callable(getattr(optimizer, "step", None)) and hasattr(optimizer, "param_groups"):
        return optimizer  # type: ignore[no-any-return]
    raise TypeError(
        f"optimizer `{name}` is {optimizer!r}; a torch.optim.Optimizer, or a dict of them, is "
        "wanted. `g.make_optimizer(cls, **options)` builds one."
    )


def backward(losses: object, *, retain_graph: bool) -> None:
    """Run autograd from one loss, a sequence or a mapping of several."""
    if isinstance(losses, Tensor):
        if retain_graph:
            losses.backward(retain_graph=True)  # type: ignore[no-untyped-call]
        else:
            losses.backward()  # type: ignore[no-untyped-call]
        return
    torch.autograd.backward(loss_tensors(losses), retain_graph=retain_graph or None)


def loss_tensors(losses: object) -> list[Tensor]:
    """Return the tensors of one loss, a sequence or a mapping of several.

    Raises:
        SomaError: it is none of these.
    """
    if isinstance(losses, Tensor):
        return [losses]
    several = list(losses.values()) if isinstance(losses, Mapping) else list(losses)  # type: ignore[call-overload]
    if not several or not all(isinstance(one, Tensor) for one in several):
        raise SomaError(f"`backward` got {losses!r}; a loss tensor, or several, are wanted.")
    return several
