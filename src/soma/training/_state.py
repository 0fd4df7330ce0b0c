"""What a graph knows as a mapping: `{node: {name: tensor}}` for modules, states for the others."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from soma.core import NodeId
from soma.errors import NotMaterialized
from soma.training._checkpoint_spots import misfits, spots
from soma.training._elsewhere import StandIn, at_home
from soma.training._filter import DifferentiableFilter
from soma.training._trainer import Trainer

Weights = Mapping[str, Tensor]


def module_states(trainer: Trainer) -> dict[NodeId, dict[str, Tensor]]:
    """Return copies of the weights of every module that is built; one copy of what is tied."""
    copies: dict[int, Tensor] = {}
    # Held together: what is brought home is new, and an `id` is one's own only while it lives.
    modules = {
        node: _in_use(filter) for node, filter in trainer.filters if filter._live is not None
    }
    return {
        node: {
            name: copies.setdefault(id(spot.tensor), spot.tensor.detach().clone())
            for name, spot in spots(module).items()
        }
        for node, module in modules.items()
    }


def _in_use(filter: DifferentiableFilter) -> Any:
    """Return the live module, or its twin where the user has written to that."""
    twin = filter._twin
    if twin is not None and filter._is_edited():
        return twin
    return None if filter._live is None else at_home(filter._live)


def unfit_weights(trainer: Trainer, node: NodeId, weights: Mapping[str, object]) -> list[str]:
    """Say what keeps weights from being those of a node.

    Raises:
        NotMaterialized: its module has not been built.
    """
    live = dict(trainer.filters)[node]._live
    if live is None:
        raise NotMaterialized(
            f"`{node}` has no module yet that could take weights. Call `g.materialize(sample)` "
            "first."
        )
    if isinstance(live, StandIn):
        return _misfits_elsewhere(live, weights, node)
    return misfits(spots(live), weights, f"`{node}`")


def load_module_states(trainer: Trainer, states: Mapping[NodeId, Mapping[str, object]]) -> None:
    """Copy weights into the live modules; twins of before are no longer current."""
    elsewhere: dict[NodeId, dict[str, Tensor]] = {}
    with torch.no_grad():
        for node, filter in trainer.filters:
            weights = states.get(node)
            if weights is None or filter._live is None:
                continue
            if isinstance(filter._live, StandIn):
                elsewhere[node] = {
                    name: one for name, one in weights.items() if isinstance(one, Tensor)
                }
                filter._drop_twin()
                continue
            for name, spot in spots(filter._live).items():
                stored = weights.get(name)
                if isinstance(stored, Tensor) and stored.shape == spot.tensor.shape:
                    spot.tensor.copy_(stored)
            filter._drop_twin()
            trainer.runner.states.pop(node, None)
    if elsewhere and trainer.placement is not None:
        whole = all(
            filter._live is None or not unfit_weights(trainer, node, states.get(node, {}))
            for node, filter in trainer.filters
        )
        trainer.placement.restore(elsewhere, whole=whole)
    trainer.runner.changed()


def _misfits_elsewhere(module: StandIn, weights: Mapping[str, object], node: NodeId) -> list[str]:
    """Say which parameters of a module elsewhere are missing, or have another shape."""
    found = []
    for name, parameter in module.named_parameters():
        stored = weights.get(name)
        if not isinstance(stored, Tensor):
            found.append(f"`{node}` lacks `{name}`")
        elif stored.shape != parameter.shape:
            shapes = f"{tuple(stored.shape)}, and {tuple(parameter.shape)} is wanted"
            found.append(f"`{node}.{name}` has the shape {shapes}")
    return found
