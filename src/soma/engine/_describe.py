"""Says in a few words what a value is, for errors: its type and shape, never its content."""

from collections.abc import Mapping
from itertools import islice

_MOST_PARTS = 8


def describe(value: object, *, depth: int = 2) -> str:
    """Return for instance `Tensor of float32, shape (32, 8)` or `list of 5`."""
    try:
        return _described(value, depth)
    except Exception:  # what is said about an error must not raise another one
        return type(value).__name__


def _described(value: object, depth: int) -> str:
    name = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
        return f"{name}{f' of {dtype}' if dtype else ''}, shape {tuple(shape)}"
    if isinstance(value, Mapping) and depth:
        first = islice(value.items(), _MOST_PARTS)
        parts = [f"{key!r}: {describe(part, depth=depth - 1)}" for key, part in first]
        return f"{name} {{{'; '.join(parts)}{'; …' if len(value) > _MOST_PARTS else ''}}}"
    if type(value) is tuple and 0 < len(value) <= _MOST_PARTS and depth:
        return f"tuple ({'; '.join(describe(part, depth=depth - 1) for part in value)})"
    if isinstance(value, list | tuple | set | str | bytes | Mapping):
        return f"{name} of {len(value)}"
    return "None" if value is None else name
