"""The places in modules where weights stand, and putting stored tensors there.

What was one parameter in two places becomes one again, what shared memory shares it again, and
what was two becomes two; types and `requires_grad` are those that were stored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Spot:
    """A name in a module under which it holds a tensor."""

    held: dict[str, Tensor | None]
    name: str

    @property
    def tensor(self) -> Tensor:
        """The tensor that stands there."""
        tensor = self.held[self.name]
        assert tensor is not None
        return tensor

    def set(self, tensor: Tensor) -> None:
        """Put another tensor there."""
        self.held[self.name] = tensor


def spots(module: nn.Module) -> dict[str, Spot]:
    """Return the places of the parameters and buffers that are saved, by full name."""
    return dict(_spots(module, persistent=True))


def passing_spots(module: nn.Module) -> dict[str, Spot]:
    """Return the places of the buffers that are not saved, but built again."""
    return dict(_spots(module, persistent=False))


def _spots(module: nn.Module, *, persistent: bool) -> Iterator[tuple[str, Spot]]:
    for prefix, part in module.named_modules(remove_duplicate=False):
        at = f"{prefix}." if prefix else ""
        passing = part._non_persistent_buffers_set
        if persistent:
            for name, one in part._parameters.items():
                if one is not None:
                    yield at + name, Spot(part._parameters, name)
        for name, buffer in part._buffers.items():
            if buffer is not None and (name in passing) != persistent:
                yield at + name, Spot(part._buffers, name)


def memory(tensor: Tensor) -> object:
    """Return what two tensors share that are the same memory, seen in the same way."""
    if tensor.numel() == 0:
        return id(tensor)
    return tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()


class Placing:
    """Puts stored tensors into modules; one for all modules that may share weights."""

    def __init__(self) -> None:
        self._owners: dict[int, Tensor] = {}  # by stored tensor: the one that took its values
        self._by_memory: dict[object, Tensor] = {}  # by stored memory: the first of it
        self._taken: dict[object, Tensor] = {}  # by memory in the modules
        self._kept: list[Tensor] = []  # an id is one object's for as long as that lives

    def put(self, spot: Spot, stored: Tensor, *, asks: bool) -> None:
        """Let a place hold a stored tensor; `asks` is its `requires_grad`."""
        owner = self._owners.get(id(stored))
        if owner is not None:
            if spot.tensor is not owner:
                spot.set(owner)
            return
        target = spot.tensor
        if memory(target) in self._taken:  # built tied, and saved untied
            if self._taken[memory(target)] is target:
                target = _fresh(target)
                spot.set(target)
            else:
                target.data = target.detach().clone()
        sharing = self._by_memory.get(memory(stored))
        with torch.no_grad():
            if sharing is not None:
                target.data = sharing.data
            elif target.dtype == stored.dtype:
                target.copy_(stored)
            else:
                target.data = stored.to(target.device, copy=True)
        if target.dtype.is_floating_point or target.dtype.is_complex:
            target.requires_grad_(asks)
        self._owners[id(stored)] = target
        self._by_memory.setdefault(memory(stored), target)
        self._taken[memory(target)] = target
        self._kept += [stored, target]


def _fresh(tensor: Tensor) -> Tensor:
    copy = tensor.detach().clone()
    return nn.Parameter(copy, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else copy


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same bits, NaN and -0.0 among them."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    first, second = (each.detach().cpu().contiguous().reshape(-1) for each in (one, other))
    return torch.equal(first.view(torch.uint8), second.view(torch.uint8))


def misfits(places: Mapping[str, Spot], weights: Mapping[str, object], told: str) -> list[str]:
    """Say what stored weights lack, have too much of, or have in another shape."""
    found = [f"{told} lacks `{name}`" for name in places if name not in weights]
    found += [f"{told} has `{name}`, which its module has not" for name in weights.keys() - places]
    for name, spot in places.items():
        stored = weights.get(name)
        if stored is not None and not isinstance(stored, Tensor):
            found.append(f"`{name}` of {told} is no tensor")
        elif stored is not None and stored.shape != spot.tensor.shape:
            found.append(
                f"`{name}` of {told} has shape {tuple(stored.shape)}, and the module has "
                f"{tuple(spot.tensor.shape)}"
            )
    return found
