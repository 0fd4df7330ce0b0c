"""What a run directory says of its graph, and what a picture of a graph is made of."""

from dataclasses import dataclass

from soma.core import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """One node, as data."""

    id: NodeId
    class_name: str  # `StandardScaler`
    kind: str  # `stateless`, `trainable`, `opaque`
    has_module: bool
    parameters: int | None  # elements; None: no module, or it is not built
    trainable: int | None
    config: dict[str, str]  # constructor arguments, shortened for people
    doc: str  # first line of the class's docstring, may be empty
    target: str | None = None  # the worker that it runs on; None: the process of the graph


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRecord:
    """Nodes in topological order, and the edges between them."""

    name: str
    nodes: tuple[NodeRecord, ...]
    edges: tuple[tuple[NodeId, NodeId], ...]
