"""The numbers of parameters: norms of values, of gradients and of what a step changes.

`_weights.py` measures them in a step, and `_metrics.py` makes the metrics of a unit of them.
"""

__all__: list[str] = []  # what is in here is for the audit alone
