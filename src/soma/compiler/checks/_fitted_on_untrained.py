"""`fit` comes before training, so what it sees below a module comes from initial weights."""

from soma.compiler._facts import Facts
from soma.core import Diagnostic, Label, NodeId, has_module, needs_fit


def fitted_on_untrained(facts: Facts) -> list[Diagnostic]:
    """A warning for each filter that fits on what a module, at any distance above, gives."""
    module_above: dict[NodeId, NodeId] = {}
    found = []
    for node in facts.wiring.order:
        sources = facts.wiring.predecessors[node]
        filter = facts.topology.nodes[node].filter
        module = next((module_above[one] for one in sources if one in module_above), None)
        if needs_fit(filter) and module is not None:
            found.append(_warning(facts, node, module, adjacent=module in sources))
        if has_module(filter):
            module_above[node] = node
        elif module is not None:
            module_above[node] = module
    return found


def _warning(facts: Facts, node: NodeId, module: NodeId, *, adjacent: bool) -> Diagnostic:
    label, above = facts.labels[node], facts.labels[module]
    drawn = (above, label) if adjacent else (above, "…", label)
    return Diagnostic(
        level="warning",
        code="fitted-on-untrained",
        node=node,
        message=f"`{label}` is fitted before `{above}` is trained",
        position=facts.positions[node],
        drawn=drawn,
        marked=(len(drawn) - 1, len(drawn)),
        remarks=(
            "This filter is fitted once, on what the initial weights give.",
            f"Training changes what [{above}] gives; the fitted state stays.",
        ),
        labels=(Label(node=node, role="fault"),),
        help=f"Move it above [{above}], or train and freeze [{above}] in a graph of its own and "
        "fit this filter on what that gives.",
    )
