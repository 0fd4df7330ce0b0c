"""Names the nodes that no gradient reaches, and says why that probably is."""

from collections.abc import Collection
from inspect import currentframe
from warnings import warn

from soma.core import NodeId, Topology
from soma.errors import GradientWarning, listing
from soma.training._trainer import Trainer


def warn_of_unreached(trainer: Trainer, with_loss: Collection[NodeId]) -> None:
    """Warn once of all nodes whose weights got no gradient; called after a backward."""
    unreached = []
    for node, filter in trainer.filters:
        held = filter._live.parameters() if filter._live is not None else ()
        # A weight of a stand-in has its gradient where the module is.
        weights = [one for one in held if one.requires_grad and not one.is_meta]
        if weights and all(one.grad is None for one in weights):
            unreached.append(node)
    if unreached:
        topology = trainer.runner.topology
        reasons = [f"\n  `{node}`: {_reason(topology, node, with_loss)}" for node in unreached]
        warn(
            f"no loss reaches {listing(unreached)}: the weights there got no gradient in the "
            f"first step and do not learn.{''.join(reasons)}",
            GradientWarning,
            stacklevel=users_level(),
        )


def users_level() -> int:
    """Return the `stacklevel` at which a warning of our caller points at the user's line."""
    frame, level = currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("soma."):
        frame, level = frame.f_back, level + 1
    return level


def _reason(topology: Topology, node: NodeId, with_loss: Collection[NodeId]) -> str:
    successors = topology.wiring().successors
    reached: dict[NodeId, None] = {node: None}
    cuts: dict[NodeId, None] = {}
    walk = [node]
    for one in walk:  # grows while it is walked
        for after in successors[one]:
            if not topology.nodes[after].filter.meta().differentiable:
                cuts[after] = None
            elif after not in reached:
                reached[after] = None
                walk.append(after)
    leaves = [one for one in reached if not successors[one]]
    if not leaves:
        return (
            f"cut off by {listing(cuts)}, which no gradient passes. Put it before the modules, or "
            "say `_differentiable = True` where it works on tensors throughout."
        )
    if not any(leaf in with_loss for leaf in leaves):
        return (
            f"no target for its {'leaf' if len(leaves) == 1 else 'leaves'} {listing(leaves)}. Give "
            f"one in `y={{{leaves[0]!r}: …}}`, or freeze the node with `requires_grad_(False)`."
        )
    return (
        "its output has no part in the loss. Look for a `detach`, a `no_grad`, or an input that "
        "is not used in what comes after it."
    )
