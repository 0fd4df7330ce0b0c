"""What moves the weights in a fit: the optimizers, and the schedulers of their learning rates."""

from collections.abc import Mapping
from typing import Protocol, cast
from warnings import warn

import torch
from torch.optim import LBFGS, Adam
from torch.optim.lr_scheduler import ReduceLROnPlateau

from soma.core import NodeId
from soma.errors import InvalidInput, SomaWarning, did_you_mean, listing
from soma.training._fit_unreached import users_level
from soma.training._optimizers import Optimizers
from soma.training._trainer import Trainer


class _Scheduler(Protocol):
    def step(self) -> None: ...


def choose_optimizer(trainer: Trainer, wanted: object) -> None:
    """Give the graph an optimizer, or several: what is wanted, what it has already, or Adam."""
    if wanted is None:
        # One that an earlier fit chose is made anew when the graph has other weights by now.
        ours = trainer.optimizers.chosen_by_fit
        spoilt = _is_spoilt(trainer)
        if spoilt:
            _warn_of_spoilt(made_anew=ours)
        if not trainer.optimizers or (ours and (spoilt or _unheld(trainer))):
            trainer.make_optimizer(Adam, {"lr": 1e-3, "fused": _can_fuse(trainer)})
            trainer.optimizers.chosen_by_fit = True
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


def _is_spoilt(trainer: Trainer) -> bool:
    """Whether an optimizer remembers gradients that were not finite, of weights that are."""
    remembered = [
        value
        for optimizer in trainer.optimizers
        for kept in getattr(optimizer, "state", {}).values()
        for value in kept.values()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    ]
    if all(bool(value.isfinite().all()) for value in remembered):
        return False
    return all(bool(weight.isfinite().all()) for _, weight in trainer.named_parameters())


def _warn_of_spoilt(*, made_anew: bool) -> None:
    done = (
        "It is made anew."
        if made_anew
        else "Give `fit` a new one, as `optimizer=lambda parameters: ...`, or load its state too."
    )
    warn(
        "the optimizer of the training before remembers gradients that were NaN or infinite, "
        f"and would spoil the weights, which are finite, in its first step. {done}",
        SomaWarning,
        stacklevel=users_level(),
    )


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
    held = _held(trainer)
    if weights and held and not weights & held:
        raise InvalidInput(
            "the optimizer holds none of this graph's weights, so training would change nothing. "
            "Make it of `g.parameters()` once the graph is built, or pass a function: "
            "`optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1)`."
        )
    left_out = _unheld(trainer)
    if left_out:
        warn(
            f"the optimizer holds no weight of {listing(left_out)}, so nothing there will learn. "
            "Make one of `g.parameters()`, or call `requires_grad_(False)` on what is to stay.",
            SomaWarning,
            stacklevel=users_level(),
        )


def _held(trainer: Trainer) -> set[int]:
    return {
        id(weight)
        for optimizer in trainer.optimizers
        for group in optimizer.param_groups
        for weight in group["params"]
    }


def _unheld(trainer: Trainer) -> list[NodeId]:
    """Return the nodes that have trainable weights, none of which any optimizer holds."""
    held = _held(trainer)
    found = []
    for node, filter in trainer.filters:
        parts = filter._live.parameters() if filter._live is not None else ()
        trainable = [id(one) for one in parts if one.requires_grad]
        if trainable and held.isdisjoint(trainable):
            found.append(node)
    return found
