"""`Graph`: the one object a user holds.

`_declared.py` holds declaring, asking and drawing; `_graph.py` fitting, running and training.
"""

from soma.graph._graph import Graph

__all__ = ["Graph"]
