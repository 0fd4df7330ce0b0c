"""What a node is called in sentences and drawings."""

from collections import Counter
from collections.abc import Iterable, Mapping

from soma.core import NodeId, Topology
from soma.draw import printable


def node_labels(topology: Topology) -> Mapping[NodeId, str]:
    """Return each node's label: its class, `Linear (linear_2)` where that is not unique."""
    classes = {
        node.id: printable(type(node.filter).__name__) or node.id
        for node in topology.nodes.values()
    }
    uses = Counter(classes.values())
    return {node: name if uses[name] == 1 else f"{name} ({node})" for node, name in classes.items()}


def boxed(labels: Iterable[str], *, most: int = 4) -> str:
    """Return labels as `[A], [B] and [C]`, cut after `most` of them."""
    boxes = [f"[{label}]" for label in labels]
    if len(boxes) > most:
        boxes[most:] = [f"{len(boxes) - most} more"]
    if len(boxes) < 2:
        return "".join(boxes)
    return f"{', '.join(boxes[:-1])} and {boxes[-1]}"
