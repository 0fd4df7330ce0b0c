"""What ran inside the module of a node, and how values flowed from one step to the next.

The path of one traced turn begins in `_tracer.py`, which names the files that follow.
"""

__all__: list[str] = []  # what is in here is for the audit alone
