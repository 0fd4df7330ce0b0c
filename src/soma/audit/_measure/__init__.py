"""The numbers of one tensor: an output, a gradient, the channels of either.

`_measures.py` is asked; `_layout.py` says which numbers there are. On a CPU they are at hand at
once, on other devices they wait in a `Row` on a `Board`, `_boards.py`, until they are read.
"""

__all__: list[str] = []  # what is in here is for the audit alone
