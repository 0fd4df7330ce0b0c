"""`Graph`: the one object a user holds.

`_declared.py` holds declaring, asking and drawing; `_graph.py` fitting, running and training,
`_tracking.py` what a run directory keeps of a graph.
"""

from soma.graph._graph import Graph

__all__ = ["Graph"]
