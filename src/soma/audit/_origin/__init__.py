"""Where the first number was made that is not finite.

`_search.py` runs the forwards of a step, `_kept_forward.py`, and their backwards again, while
`_operations.py` looks at each operation.
"""

__all__: list[str] = []  # what is in here is for the audit alone
