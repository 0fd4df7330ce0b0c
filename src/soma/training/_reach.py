"""Whether the gradient of an output gets back to an input."""

from collections.abc import Iterator, Mapping

from torch import Tensor


def reaches(output: object, given: object) -> bool:
    """Whether every tensor in `given` that asks for a gradient has one coming from `output`."""
    asking = [one for one in _tensors(given) if one.requires_grad]
    if not asking:
        return True
    seen: set[object] = set()
    leaves: set[int] = set()
    pending = [one.grad_fn for one in _tensors(output)]
    # An input that comes out as it went in has no history of its own.
    leaves.update(id(one) for one in _tensors(output))
    while pending:
        step = pending.pop()
        if step is None or step in seen:
            continue
        seen.add(step)
        variable = getattr(step, "variable", None)
        if variable is not None:
            leaves.add(id(variable))
        pending += [before for before, _ in step.next_functions]
    return all(id(one) in leaves or (one.grad_fn in seen) for one in asking)


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _tensors(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)
