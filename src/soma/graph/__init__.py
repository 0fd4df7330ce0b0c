"""`Graph`: the one object a user holds.

`_declared.py` holds declaring, asking and drawing; `_kept.py` states and files; `_graph.py`
fitting, running and training; `_tracking.py` what a run directory keeps of a graph,
`_preflight.py` a look before the first step.
"""

from soma.graph._graph import Graph
from soma.graph._preflight import preflight

__all__ = ["Graph", "preflight"]
