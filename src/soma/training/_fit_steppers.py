"""What moves the weights in a fit: the optimizers, and the schedulers of their learning rates."""

from collections.abc import Mapping
from typing import Protocol, cast

import torch
from torch.optim import LBFGS, Adam
from torch.optim.lr_scheduler import ReduceLROnPlateau

from soma.errors import InvalidInput, did_you_mean, listing
from soma.training._optimizers import Optimizers
from soma.training._trainer import Trainer


class _Scheduler(Protocol):
    def step(self) -> None: ...


def choose_optimizer(trainer: Trainer, wanted: object) -> None:
    """Give the graph an optimizer, or several: what is wanted, what it has already, or Adam."""
    if wanted is None:
        if not trainer.optimizers:
            trainer.make_optimizer(Adam, {"lr": 1e-3, "fused": _can_fuse(trainer)})
    elif isinstance(wanted, Mapping) or _is_made(wanted, "param_groups"):
        trainer.optimizers.set(wanted)
    elif callable(wanted):
        trainer.make_optimizer(wanted, {})
    else:
        raise TypeError(
            f"`optimizer` is {wanted!r}; a torch.optim.Optimizer, a dict of them, or a function "
            "of the parameters is wanted, for instance "
            "`functools.partial(torch.optim.SGD, lr=0.1)`."
        )
    _check_weights(trainer)


def needs_closure(optimizers: Optimizers) -> bool:
    """Whether some optimizer runs forward and backward itself, several times a step."""
    return any(isinstance(one, LBFGS) for one in optimizers)


class Schedulers:
    """Learning rate schedulers, stepped once an epoch."""

    def __init__(self, wanted: object, optimizers: Optimizers) -> None:
        self._all = [] if wanted is None else _made(wanted, optimizers)
        for scheduler in self._all:
            moved = getattr(scheduler, "optimizer", None)
            if moved is not None and all(moved is not one for one in optimizers):
                raise InvalidInput(
                    f"the {type(scheduler).__name__} moves the learning rate of an optimizer that "
                    "this graph does not use. Pass that one as `optimizer` too, or make the "
                    "scheduler by a function: `scheduler=lambda optimizer: StepLR(optimizer, 10)`."
                )

    def step(self, loss: float) -> None:
        """End an epoch; `loss` is what a plateau is looked for in."""
        for scheduler in self._all:
            if isinstance(scheduler, ReduceLROnPlateau):
                scheduler.step(loss)
            else:
                scheduler.step()


def _made(wanted: object, optimizers: Optimizers) -> list[_Scheduler]:
    present = optimizers.get()
    if isinstance(wanted, Mapping):
        named = present if isinstance(present, dict) else {}
        for name in wanted:
            if name not in named:
                raise InvalidInput(
                    f"`scheduler` names {name!r}, and the optimizers of this graph are "
                    f"{listing(named) or 'not named'}.{did_you_mean(str(name), named)}"
                )
        return [_one(one, named[name]) for name, one in wanted.items()]
    if isinstance(present, dict) and not _is_made(wanted, "step"):
        raise InvalidInput(
            f"this graph has the optimizers {listing(present)}, and one `scheduler` function "
            "cannot tell which to schedule. Give a dict of schedulers by the same names."
        )
    return [_one(wanted, present)]


def _one(wanted: object, optimizer: object) -> _Scheduler:
    scheduler = wanted
    if not _is_made(wanted, "step"):
        scheduler = wanted(optimizer) if callable(wanted) else None
    if not hasattr(scheduler, "step"):
        raise TypeError(
            f"`scheduler` is {wanted!r}; a learning rate scheduler, or a function that makes one "
            "of the optimizer, is wanted."
        )
    return cast(_Scheduler, scheduler)


def _is_made(value: object, attribute: str) -> bool:
    return not isinstance(value, type) and hasattr(value, attribute)


def _can_fuse(trainer: Trainer) -> bool:
    """Whether all weights can be moved by one kernel, which halves the step of a small net."""
    weights = [weight for _, weight in trainer.named_parameters()]
    return {weight.device.type for weight in weights} in ({"cpu"}, {"cuda"}) and all(
        weight.is_floating_point()
        and weight.layout is torch.strided
        and weight.device == weights[0].device
        for weight in weights
    )


def _check_weights(trainer: Trainer) -> None:
    """Refuse optimizers that hold nothing of this graph."""
    weights = {id(weight) for _, weight in trainer.named_parameters()}
    held = {
        id(weight)
        for optimizer in trainer.optimizers
        for group in optimizer.param_groups
        for weight in group["params"]
    }
    if weights and held and not weights & held:
        raise InvalidInput(
            "the optimizer holds none of this graph's weights, so training would change nothing. "
            "Make it of `g.parameters()` once the graph is built, or pass a function: "
            "`optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1)`."
        )
