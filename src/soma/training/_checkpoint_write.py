"""The modules of a graph become entries and members of a bundle.

An entry says of each weight in which member it stands, so that what is one weight in two places
is stored once. `_checkpoint_read.py` reads them.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from soma.checkpoint import StoredValue, Writer
from soma.core import Filter, Node, NodeId
from soma.engine import describe
from soma.errors import CheckpointError
from soma.training._checkpoint_spots import memory, passing_spots, same_bits, spots
from soma.training._checkpoint_tensors import Viewed, written
from soma.training._elsewhere import at_home
from soma.training._filter import DifferentiableFilter
from soma.training._trainer import Trainer
from soma.training._twin import same_weights

# A member, a name in it, and which of the tensors that share this memory: 0 is the first.
Place = tuple[str, str, int]


class TwinEntry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A frozen twin: the places of what differs from the live module."""

    weights: dict[str, Place] = {}
    edited: bool = False  # by the user, since it was made
    training: list[str] = []


class ModuleEntry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A module, or one that a filter holds beside its own."""

    weights: dict[str, Place]
    viewed: Viewed = {}
    fixed: list[str] = []  # weights that ask for no gradient
    passing: dict[str, str] = {}  # types of the buffers that are built again
    training: list[str] = []  # parts that are in training while the graph is in eval
    more: StoredValue | None = None  # what `get_extra_state` and the like gave
    built_for: StoredValue | None = None
    writes_input: bool = False
    twin: TwinEntry | None = None


def held_modules(filter: Filter) -> dict[str, nn.Module]:
    """Return the modules that a filter holds in attributes of its own, or is."""
    own = {"_live", "_twin", "_replacement", "_current"}
    found = {
        name: value
        for name, value in vars(filter).items()
        if isinstance(value, nn.Module) and name not in own
    }
    if isinstance(filter, nn.Module):
        found["."] = filter
    return found


class WeightsWriter:
    """Writes the modules of one graph."""

    def __init__(self, trainer: Trainer, writer: Writer) -> None:
        self._trainer = trainer
        self._writer = writer
        self._places: dict[int, Place] = {}
        self._kept: list[nn.Module] = []  # an `id` is a tensor's own only while that lives
        self._by_memory: dict[object, Place] = {}
        self._shared: dict[object, int] = {}

    def entries(self) -> dict[NodeId, dict[str, Any]]:
        """Return the entries of every node that has any.

        Raises:
            CheckpointError: weights that no file can hold.
        """
        found = {}
        for number, node in enumerate(self._trainer.runner.topology.nodes.values()):
            entries = {name: msgspec.to_builtins(one) for name, one in self._node(number, node)}
            if entries:
                found[node.id] = entries
        return found

    def _node(self, number: int, node: Node) -> Iterator[tuple[str, ModuleEntry]]:
        filter, told = node.filter, f"`{node.id}` ({node.filter._description()})"
        if isinstance(filter, DifferentiableFilter) and filter._live is not None:
            live = at_home(filter._live)
            self._kept.append(live)
            yield "", self._own(f"n/{number:04}", filter, live, told)
        for part, (name, module) in enumerate(held_modules(filter).items(), 1):
            entry = self._entry(f"n/{number:04}.{part}", module, f"`{name}` of {told}")
            yield name, entry

    def _own(
        self, place: str, filter: DifferentiableFilter, live: nn.Module, told: str
    ) -> ModuleEntry:
        entry = self._entry(place, live, told)
        shape = filter._built_for
        entry.built_for = self._writer.value(f"{place}.shape", shape, f"the shape of {told}")
        entry.writes_input = filter._writes_input
        twin = filter._twin
        if twin is not None and (filter._uses_twin or same_weights(live, twin)):
            differing = {
                name: spot.tensor
                for name, spot in spots(twin).items()
                if name not in entry.weights or not same_bits(spot.tensor, spots(live)[name].tensor)
            }
            entry.twin = TwinEntry(
                weights=self._stored(f"{place}.twin", differing, entry.viewed, told),
                edited=filter._is_edited(),
                training=_in_training(twin),
            )
        return entry

    def _entry(self, place: str, module: nn.Module, told: str) -> ModuleEntry:
        tensors = {name: spot.tensor for name, spot in spots(module).items()}
        viewed: Viewed = {}
        places = self._stored(place, tensors, viewed, told)
        more = {name: value for name, value in module.state_dict().items() if name not in tensors}
        return ModuleEntry(
            weights=places,
            viewed=viewed,
            fixed=[name for name, one in tensors.items() if not one.requires_grad],
            passing={
                name: str(spot.tensor.dtype).removeprefix("torch.")
                for name, spot in passing_spots(module).items()
            },
            training=[] if self._trainer.training else _in_training(module),
            more=self._writer.value(f"{place}.more", more, f"the extra state of {told}")
            if more
            else None,
        )

    def _stored(
        self, place: str, tensors: dict[str, Tensor], viewed: Viewed, told: str
    ) -> dict[str, Place]:
        """Return where each tensor stands; those that stand nowhere yet become one member."""
        member = f"{place}.safetensors"
        new, places = {}, {}
        for name, tensor in tensors.items():
            if id(tensor) not in self._places:
                _check(name, tensor, told)
                key = memory(tensor)
                first = self._by_memory.get(key)
                if first is None:
                    new[name] = tensor
                    self._by_memory[key] = (member, name, 0)
                    self._places[id(tensor)] = (member, name, 0)
                else:
                    self._shared[key] = self._shared.get(key, 0) + 1
                    self._places[id(tensor)] = (*first[:2], self._shared[key])
            places[name] = self._places[id(tensor)]
        if new:
            try:
                data, odd = written(new)
            except Exception as error:  # the library raises its own kinds
                raise CheckpointError(f"the weights of {told} cannot be saved: {error}") from error
            if odd:
                viewed[member] = odd
            self._writer.member(member, [data])
        return places


def _in_training(module: nn.Module) -> list[str]:
    return [name for name, part in module.named_modules() if part.training]


def _check(name: str, tensor: Tensor, told: str) -> None:
    plain = isinstance(tensor, nn.Parameter) or type(tensor) in (Tensor, nn.Buffer)
    if is_lazy(tensor) or tensor.is_meta:
        raise CheckpointError(
            f"`{name}` of {told} has no values yet. Call `g.materialize(sample)` before `save`."
        )
    if not plain or tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        raise CheckpointError(
            f"`{name}` of {told} is {describe(tensor)}, of layout {tensor.layout}, which a bundle "
            "cannot hold. Keep it dense, or make it a buffer with `persistent=False` that "
            "`build_module` fills."
        )
