"""The optimizers of a graph as data: their class, groups of weights by name, and what they hold.

An optimizer is made again by its constructor and then given groups and state as they were, in
their own types.
"""

from collections.abc import Mapping
from functools import partial
from inspect import signature
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from soma.checkpoint import Allowed, Reader, StoredValue, Writer
from soma.errors import CheckpointError, NoOptimizer
from soma.training._elsewhere import Held
from soma.training._trainer import Trainer


class OptimizerEntry(msgspec.Struct, kw_only=True):
    """One optimizer."""

    class_module: str
    class_name: str
    contents: StoredValue  # defaults, groups with names of weights, state by name


class TrainingEntry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What goes on in a training loop."""

    steps: int = 0
    optimizers: dict[str, OptimizerEntry] = {}
    chosen_by_fit: bool = False


def training_entry(trainer: Trainer, writer: Writer, *, optimizer: bool) -> Any:
    """Return the entry of a graph's training.

    Raises:
        CheckpointError: an optimizer cannot be saved.
        NoOptimizer: one was to be saved, and there is none.
    """
    entry = TrainingEntry(steps=trainer.steps)
    if optimizer:
        if not trainer.optimizers:
            raise NoOptimizer(
                "`save(optimizer=True)` was called and this graph has no optimizer. Call "
                "`g.make_optimizer(...)` before, or leave `optimizer=True` out."
            )
        entry.chosen_by_fit = trainer.optimizers.chosen_by_fit
        names = {id(one): name for name, one in trainer.named_parameters()}
        named = trainer.optimizers.named()
        away = {} if trainer.placement is None else trainer.placement.optimizer_states(named)
        for number, (name, one) in enumerate(named.items()):
            held = away.get(name, {})
            entry.optimizers[name] = _entry(writer, f"o/{number:04}", name, one, names, held)
    return msgspec.to_builtins(entry)


def _entry(
    writer: Writer,
    place: str,
    name: str,
    optimizer: Optimizer,
    names: Mapping[int, str],
    away: Mapping[nn.Parameter, Held],
) -> OptimizerEntry:
    cls = type(optimizer)
    if not isinstance(optimizer, Optimizer):
        raise CheckpointError(
            f"optimizer `{name}` is a `{cls.__name__}`, which is no torch.optim.Optimizer. Save "
            "without `optimizer=True`, and its `state_dict()` yourself."
        )

    def named(parameter: Tensor) -> str:
        if id(parameter) not in names:
            raise CheckpointError(
                f"optimizer `{name}` holds a tensor of shape {tuple(parameter.shape)} that is a "
                "weight of no node, so it cannot be saved with the graph. Make it part of a "
                "module, or save the optimizer's `state_dict()` yourself."
            )
        return names[id(parameter)]

    groups = []
    for group in optimizer.param_groups:
        options = {key: _at_rest(value) for key, value in group.items() if key != "params"}
        groups.append((options, [named(one) for one in group["params"]]))
    state = {
        named(parameter): {
            key: (_beside(value, parameter), _at_rest(value)) for key, value in held.items()
        }
        for parameter, held in optimizer.state.items()
    }
    state |= {named(parameter): dict(held) for parameter, held in away.items()}
    defaults = {key: _at_rest(value) for key, value in optimizer.defaults.items()}
    contents = writer.value(place, (defaults, groups, state), f"optimizer `{name}`")
    return OptimizerEntry(
        class_module=cls.__module__, class_name=cls.__qualname__, contents=contents
    )


def _at_rest(value: Any) -> Any:
    """Return a value with tensors in main memory; where they belong is told beside."""
    return _each_tensor(value, lambda one: one.detach().cpu())


def _each_tensor(value: Any, change: Any) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if type(value) is dict:
        return {key: _each_tensor(one, change) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_each_tensor(one, change) for one in value)
    return value


def _beside(value: Any, parameter: Tensor) -> bool:
    """Whether what an optimizer holds for a weight moves with it from device to device."""
    return not isinstance(value, Tensor) or value.device == parameter.device


def load_training(trainer: Trainer, entry: Any, reader: Reader, allowed: Allowed) -> None:
    """Give a graph the optimizers that were saved.

    Raises:
        CheckpointError: a class is not allowed, or cannot be made again.
    """
    training = msgspec.convert(entry, TrainingEntry)
    trainer.steps = training.steps
    if not training.optimizers:
        return
    weights = dict(trainer.named_parameters())
    made = {
        name: _made(name, one, weights, reader, allowed)
        for name, one in training.optimizers.items()
    }
    trainer.optimizers.set(made)
    trainer.optimizers.chosen_by_fit = training.chosen_by_fit


def _made(
    name: str,
    entry: OptimizerEntry,
    weights: Mapping[str, nn.Parameter],
    reader: Reader,
    allowed: Allowed,
) -> Optimizer:
    cls: Any = allowed.subclass(entry.class_module, entry.class_name, Optimizer)
    contents: Any = reader.value(entry.contents)
    defaults, groups, state = contents
    try:
        taken = signature(cls.__init__).parameters
        held = [{"params": [weights[one] for one in names]} for _, names in groups]
        optimizer: Optimizer = cls(
            held, **{key: value for key, value in defaults.items() if key in taken}
        )
        optimizer.defaults = defaults
        for group, (options, _) in zip(optimizer.param_groups, groups, strict=True):
            params = group["params"]
            group.clear()
            group |= {"params": params, **options}
        optimizer.state.clear()
        for weight, parts in state.items():
            optimizer.state[weights[weight]] = _at(weights[weight].device, parts)
    except Exception as error:
        raise CheckpointError(
            f"optimizer `{name}` cannot be made again: {type(error).__name__}: {error}. Save "
            "without `optimizer=True`, and its `state_dict()` yourself."
        ) from error
    return optimizer


def _at(device: torch.device, parts: Mapping[str, tuple[bool, Any]]) -> dict[str, Any]:
    """Return what an optimizer holds for a weight, with what moves with the weight beside it."""
    # Copied to where torch puts tensors: sums may differ in the last bit where memory begins at
    # another place, as in the middle of a file.
    there, here = partial(Tensor.to, device=device, copy=True), partial(Tensor.to, copy=True)
    return {
        key: _each_tensor(value, there if moves else here) for key, (moves, value) in parts.items()
    }
