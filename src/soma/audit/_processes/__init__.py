"""An audit over several processes.

`_outpost.py` measures modules of a graph where they are, and `_elsewhere.py` puts the numbers of
such modules together with those of the process that trains. `_ranks.py` is something else: it
brings together what the ranks of a data-parallel training have measured, each for itself.
"""

__all__: list[str] = []  # what is in here is for the audit alone
