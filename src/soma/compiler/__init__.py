"""From a topology to a plan: what is wrong with it, what is worth knowing, how it will run.

Start with `_compiler.py`. The engine, one floor up, runs a plan.
"""

from soma.compiler._arrange import arranged
from soma.compiler._compiler import Compiler, HasTopology, refusal, structural_errors
from soma.compiler._graph_text import graph_text
from soma.compiler._labels import boxed, node_labels
from soma.compiler._mode import CompileMode
from soma.compiler._parts import Composite, Empty, Execute, Parallel, Part, Remote, Sequence
from soma.compiler._plan import ExecutionPlan

__all__ = [
    "CompileMode",
    "Compiler",
    "Composite",
    "Empty",
    "Execute",
    "ExecutionPlan",
    "HasTopology",
    "Parallel",
    "Part",
    "Remote",
    "Sequence",
    "arranged",
    "boxed",
    "graph_text",
    "node_labels",
    "refusal",
    "structural_errors",
]
