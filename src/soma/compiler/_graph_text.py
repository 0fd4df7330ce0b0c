"""A graph as a tree of text: what runs after what, and side by side with what."""

import re

from soma.compiler._arrange import arranged
from soma.compiler._parts import Empty, Execute, Parallel, Part
from soma.core import NodeId, Topology, snake_case
from soma.draw import Tree

_LONGEST_LINE = 6  # nodes of a branch that are drawn in one line


def graph_text(topology: Topology, title: str) -> str:
    """Return a drawing of `topology` under `title`.

    A node is `id`, or `id (Class)` where its id does not tell the class. `← a, b` says what it
    reads, unless that is just what stands above it.
    """
    wiring = topology.wiring()
    steps = [
        Execute(node, wiring.predecessors[node], differentiable=False, uncached=None)
        for node in wiring.order
    ]
    drawing = _Drawing(topology)
    root = arranged(steps)
    parts = (root,) if isinstance(root, Execute | Parallel | Empty) else root.parts
    trees = drawing.drawn(parts, set())[0]
    ordered = frozenset(wiring.order)
    left_out = [node for node in topology.nodes if node not in ordered]
    if left_out:
        trees.append(Tree(f"in a cycle, or behind one: {', '.join(left_out)}"))
    return str(Tree(title, tuple(trees)))


class _Drawing:
    """Draws parts; each is told which nodes stand at the end of what is above it."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology

    def drawn(self, parts: tuple[Part, ...], above: set[NodeId]) -> tuple[list[Tree], set[NodeId]]:
        """Return a tree for each part of a sequence, and the nodes at its end."""
        trees = []
        for part in parts:
            if isinstance(part, Execute):
                trees.append(Tree(self.label(part, above)))
                above = {part.node}
            elif isinstance(part, Parallel):
                branches, ends = zip(*(self.branch(one, above) for one in part.parts), strict=True)
                trees.append(Tree("side by side", branches))
                above = {node for end in ends for node in end}
        return trees, above

    def branch(self, part: Part, above: set[NodeId]) -> tuple[Tree, set[NodeId]]:
        """Return one branch of a fork, in one line where it is a short chain."""
        parts = (part,) if isinstance(part, Execute | Empty) else part.parts
        trees, ends = self.drawn(parts, above)
        if len(trees) <= _LONGEST_LINE and all(not tree.children for tree in trees):
            return Tree(" → ".join(tree.label for tree in trees)), ends
        return Tree(trees[0].label, tuple(trees[1:])), ends

    def label(self, step: Execute, above: set[NodeId]) -> str:
        """Return a node's id, with its class and inputs where these do not go without saying."""
        node = self.topology.nodes[step.node]
        name = type(node.filter).__name__
        plain = re.sub(r"_\d+$", "", step.node)
        told = step.node if plain == snake_case(name) else f"{step.node} ({name})"
        told = told if node.target is None else f"{told} on {node.target}"
        known = not step.inputs or set(step.inputs) == above
        return told if known else f"{told} ← {', '.join(step.inputs)}"
