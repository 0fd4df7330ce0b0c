"""What the compiler looks for: one function for each idea, from facts to diagnostics.

A new check is a new file and its name below.
"""

from soma.compiler.checks._cycles import cycles
from soma.compiler.checks._declarations import declarations, signatures, updates
from soma.compiler.checks._empty import empty
from soma.compiler.checks._fitted_on_untrained import fitted_on_untrained
from soma.compiler.checks._gradient import gradient
from soma.compiler.checks._orchestration import orchestration
from soma.compiler.checks._repeated_links import repeated_links
from soma.compiler.checks._shared_filters import shared_filters
from soma.compiler.checks._unconnected import unconnected
from soma.compiler.checks._unknown_nodes import unknown_nodes

__all__ = [
    "ERRORS",
    "REMARKS",
    "STRUCTURE",
    "cycles",
    "declarations",
    "empty",
    "fitted_on_untrained",
    "gradient",
    "orchestration",
    "repeated_links",
    "shared_filters",
    "signatures",
    "unconnected",
    "unknown_nodes",
    "updates",
]

# What nodes and links alone can do wrong, in a flow too.
STRUCTURE = (empty, unknown_nodes, repeated_links, cycles, shared_filters)
ERRORS = (
    *STRUCTURE,
    orchestration,
    declarations,
    signatures,
    updates,
)
# These read a graph in which no error was found.
REMARKS = (gradient, fitted_on_untrained, unconnected)
