"""Batches of which all rows but the first are others, whatever containers they come in."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from soma.core import Inputs


def with_others_replaced(value: object) -> object:
    """Return a batch whose first row is as it was, and all others are like the second.

    They stay rows of the data: made-up ones may be nothing that a model can take. In another
    order alone they would leave sums over the batch as they were.
    """
    return _mapped(value, _replaced)


def first_rows_of(output: object) -> list[Tensor]:
    """Return the first row of every tensor, array and list in an output."""
    return [torch.as_tensor(one[0]) for one in _parts(output) if len(one)]


def _replaced(rows: Any) -> Any:
    chosen = [0] + [1] * (len(rows) - 1)
    return [rows[place] for place in chosen] if isinstance(rows, list) else rows[chosen]


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _parts(part)
    elif isinstance(value, list) or bool(getattr(value, "shape", None)):
        yield value


def _mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, Inputs):
        return Inputs({name: _mapped(part, function) for name, part in value.items()})
    if isinstance(value, dict):
        return {name: _mapped(part, function) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_mapped(part, function) for part in value)
    return (
        function(value) if isinstance(value, list) or bool(getattr(value, "shape", None)) else value
    )
