"""What a graph knows as a mapping: `{node: {name: tensor}}` for modules, states for the others."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from soma.core import NodeId
from soma.errors import NotMaterialized
from soma.training._checkpoint_spots import misfits, spots
from soma.training._filter import DifferentiableFilter
from soma.training._trainer import Trainer
from soma.training._twin import marks

Weights = Mapping[str, Tensor]


def module_states(trainer: Trainer) -> dict[NodeId, dict[str, Tensor]]:
    """Return copies of the weights of every module that is built; one copy of what is tied."""
    copies: dict[int, Tensor] = {}
    return {
        node: {
            name: copies.setdefault(id(spot.tensor), spot.tensor.detach().clone())
            for name, spot in spots(_in_use(filter)).items()
        }
        for node, filter in trainer.filters
        if filter._live is not None
    }


def _in_use(filter: DifferentiableFilter) -> Any:
    """Return the live module, or its twin where the user has written to that."""
    twin = filter._twin
    return twin if twin is not None and marks(twin) != filter._twin_marks else filter._live


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
    return misfits(spots(live), weights, f"`{node}`")


def load_module_states(trainer: Trainer, states: Mapping[NodeId, Mapping[str, object]]) -> None:
    """Copy weights into the live modules; twins of before are no longer current."""
    with torch.no_grad():
        for node, filter in trainer.filters:
            weights = states.get(node)
            if weights is None or filter._live is None:
                continue
            for name, spot in spots(filter._live).items():
                stored = weights.get(name)
                if isinstance(stored, Tensor) and stored.shape == spot.tensor.shape:
                    spot.tensor.copy_(stored)
            filter._drop_twin()
            trainer.runner.states.pop(node, None)
    trainer.runner.changed()
