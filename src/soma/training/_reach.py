"""Whether the gradient of an output gets back to an input."""

from torch import Tensor

from soma.training._convert import walk


def reaches(output: object, given: object) -> bool:
    """Whether every tensor in `given` that asks for a gradient has one coming from `output`."""
    asking = [one for one in _tensors(given) if one.requires_grad]
    if not asking:
        return True
    seen: set[object] = set()
    # An input that comes out as it went in has no history of its own.
    leaves = {id(one) for one in _tensors(output)}
    pending = [one.grad_fn for one in _tensors(output)]
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


def _tensors(value: object) -> list[Tensor]:
    return [one for one in walk(value) if isinstance(one, Tensor)]
