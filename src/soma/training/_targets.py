"""Targets: which leaf gets which, as tensors that a loss can take."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from soma.core import NodeId
from soma.errors import InvalidInput, did_you_mean, listing
from soma.training._convert import with_parts
from soma.training._filter import DifferentiableFilter
from soma.training._shape import as_int64, numbers_of, readable
from soma.training._trainer import Trainer

Targets = Mapping[NodeId, object]


@dataclass(frozen=True, slots=True)
class Addressees:
    """The leaves of a graph, the device that each one's output is on, and who shares a `y`."""

    devices: Mapping[NodeId, torch.device]
    sharing: tuple[NodeId, ...]

    @classmethod
    def of(cls, trainer: Trainer) -> "Addressees":
        """Look at the built modules of a graph."""
        topology = trainer.runner.topology
        leaves = topology.wiring().leaves
        learning = tuple(
            leaf for leaf in leaves if topology.nodes[leaf].filter.meta().differentiable
        )
        last = [parameter.device for _, parameter in trainer.named_parameters()][-1:]
        device = last[0] if last else torch.get_default_device()
        filters = dict(trainer.filters)
        devices = {leaf: _device(filters.get(leaf)) or device for leaf in leaves}
        # A leaf that no gradient passes learns nothing from targets that were not meant for it.
        return cls(devices, learning or leaves)

    def targets(self, y: object) -> Targets:
        """Return the targets of each leaf: all of `y`, or what a dict has for it.

        Raises:
            InvalidInput: a dict that names something that is no leaf.
        """
        if y is None:
            return {}
        if not isinstance(y, Mapping):
            devices = {self.devices[leaf] for leaf in self.sharing}
            made = {device: as_target(y, device) for device in devices}
            return {leaf: made[self.devices[leaf]] for leaf in self.sharing}
        check_leaves(y, self.devices, "`y`")
        return {
            leaf: as_target(target, self.devices[leaf])
            for leaf, target in y.items()
            if target is not None
        }


def check_leaves(named: Mapping[NodeId, object], leaves: Collection[NodeId], what: str) -> None:
    """Refuse a dict by leaf that names something else."""
    for name in named:
        if name not in leaves:
            raise InvalidInput(
                f"{what} names {name!r}, which is no leaf of this graph; its leaves are "
                f"{listing(leaves)}.{did_you_mean(str(name), leaves)}"
            )


def as_target(value: object, device: torch.device) -> object:
    """Return numbers as a tensor: integers of int64, floats of the default dtype.

    Tensors are the user's and stay as they are; so does what holds no numbers.

    Raises:
        InvalidInput: integers that do not fit int64.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, tuple):
        return with_parts(value, [as_target(part, device) for part in value])
    if isinstance(value, list) and value and all(isinstance(part, Tensor) for part in value):
        same = len({part.shape for part in value}) == 1
        return torch.stack(value) if same else value
    array = numbers_of(value)
    if array is None or array.dtype.kind == "c":
        return value
    if array.dtype.kind == "f":
        return torch.tensor(readable(array), dtype=torch.get_default_dtype(), device=device)
    return torch.tensor(as_int64(array), device=device)


def _device(filter: DifferentiableFilter | None) -> torch.device | None:
    if filter is None or filter._live is None:
        return None
    return next((parameter.device for parameter in filter._live.parameters()), None)
