"""Entries and members of a bundle become the modules of a graph again.

Modules are built by `build_module`, as the first time, and then take the stored weights: all of
them, each in its own type, tied where they were tied.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from soma.checkpoint import LoadedNode, Reader
from soma.core import NodeId
from soma.errors import CheckpointError
from soma.training._checkpoint_spots import Placing, misfits, passing_spots, spots
from soma.training._checkpoint_tensors import Viewed, read
from soma.training._checkpoint_write import ModuleEntry, Place, held_modules
from soma.training._filter import DifferentiableFilter
from soma.training._trainer import Trainer
from soma.training._twin import frozen_twin

Problem = Callable[[str], None]


class WeightsReader:
    """Reads the modules of one graph."""

    def __init__(self, reader: Reader, problem: Problem) -> None:
        self._reader = reader
        self._problem = problem
        self._entries = {
            node.id: {name: msgspec.convert(one, ModuleEntry) for name, one in node.weights.items()}
            for node in reader.manifest.nodes
        }
        self._viewed: Viewed = {}
        for entries in self._entries.values():
            for entry in entries.values():
                self._viewed |= entry.viewed
        self._members: dict[str, dict[str, Tensor]] = {}
        self._objects: dict[Place, Tensor] = {}
        self._placing = Placing()
        self._memo: dict[int, object] = {}  # of the twins, which share what the modules share

    def tensors(self, node: NodeId) -> dict[str, Any]:
        """Return a module's weights by name; one tensor wherever they were one."""
        own = self._entries[node].get("")
        return {} if own is None else self._tensors(own.weights)

    def _tensors(self, weights: Mapping[str, Place]) -> dict[str, Any]:
        found = {}
        for name, place in weights.items():
            member, key, which = place
            if place not in self._objects:
                if member not in self._members:
                    data = self._reader.member(member)
                    self._members[member] = read(data, self._viewed.get(member, {}))
                if key not in self._members[member]:
                    self._problem(f"the member {member!r} lacks `{key}`")
                    continue
                tensor = self._members[member][key]
                self._objects[place] = tensor if which == 0 else tensor.detach()
            found[name] = self._objects[place]
        return found

    def build(self, node: LoadedNode, device: torch.device | str | None) -> None:
        """Build the modules of a node and give them their weights.

        Raises:
            CheckpointError: its class builds no module any more.
        """
        entries = dict(self._entries[node.id])
        own = entries.pop("", None)
        filter = node.filter
        if own is not None:
            if not isinstance(filter, DifferentiableFilter) or own.built_for is None:
                raise CheckpointError(
                    f"`{node.id}` has weights, and `{type(filter).__name__}` has no module."
                )
            shape: Any = self._reader.value(own.built_for)
            live = filter.materialize(shape).to(device=device)
            self._fill(live, own, node.saved.weights, f"`{node.id}`")
            filter._writes_input = own.writes_input
        held = held_modules(filter)
        for name in sorted(entries.keys() | held):
            told = f"`{name}` of `{node.id}`"
            if name not in held:
                self._problem(f"{told} is stored, and its constructor makes no such module")
            elif name not in entries:
                self._problem(f"{told} is not stored")
            else:
                entry = entries[name]
                module = held[name].to(device=device)
                self._fill(module, entry, self._tensors(entry.weights), told)

    def freeze(self, trainer: Trainer, node: LoadedNode) -> None:
        """Give a node the frozen twin that it had, once all modules have their weights."""
        entry = self._entries[node.id].get("")
        filter = node.filter
        if entry is None or entry.twin is None or not isinstance(filter, DifferentiableFilter):
            return
        assert filter._live is not None
        twin = frozen_twin(filter._live, self._memo)
        if entry.twin.edited:
            filter._set_twin(twin)
        places = spots(twin)
        with torch.no_grad():
            for name, tensor in self._tensors(entry.twin.weights).items():
                if name not in places:
                    self._problem(f"the twin of `{node.id}` has no `{name}`")
                    continue
                target = places[name].tensor
                if target.dtype == tensor.dtype and target.shape == tensor.shape:
                    target.copy_(tensor)
                else:
                    target.data = tensor.to(target.device, copy=True)
        _set_modes(twin, entry.twin.training)
        if not entry.twin.edited:
            filter._set_twin(twin)
        trainer.runner.states[node.id] = filter._twin_state

    def _fill(
        self, module: nn.Module, entry: ModuleEntry, weights: Mapping[str, Any], told: str
    ) -> None:
        places = spots(module)
        for name, spot in places.items():
            if is_lazy(spot.tensor) and isinstance(weights.get(name), Tensor):
                spot.tensor.materialize(weights[name].shape)
        for problem in misfits(places, weights, told):
            self._problem(problem)
        fixed = set(entry.fixed)
        for name, spot in places.items():
            stored = weights.get(name)
            if isinstance(stored, Tensor) and stored.shape == spot.tensor.shape:
                self._placing.put(spot, stored, asks=name not in fixed)
        passing = passing_spots(module)
        for name, kind in entry.passing.items():
            dtype = getattr(torch, kind, None)
            if name in passing and isinstance(dtype, torch.dtype):
                passing[name].set(passing[name].tensor.to(dtype))
        more: Any = {} if entry.more is None else self._reader.value(entry.more)
        wanted = module.state_dict().keys() - places
        for name in wanted ^ set(more):
            self._problem(f"the extra state `{name}` of {told} is in the bundle or the class alone")
        if more:
            module.load_state_dict({name: more[name] for name in wanted & set(more)}, strict=False)
        _set_modes(module.eval(), entry.training)


def _set_modes(module: nn.Module, training: list[str]) -> None:
    asked = set(training)
    for name, part in module.named_modules():
        if name in asked:
            part.training = True
