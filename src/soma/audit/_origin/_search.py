"""Finds where the first number that is not finite was made, by running the step again.

It is called when gradients or loss have gone bad and the optimizer has not stepped yet, so
weights are still those of the forward. Everything that a second run changes is put back.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import nn

from soma.audit._measure._tensors import numeric_tensors
from soma.audit._origin._kept_forward import Given, KeptForward
from soma.audit._origin._operations import Birth, OperationWatch, Value, restored, worst
from soma.engine import generators_kept
from soma.health import Origin, UnitId


def find_origin(
    step: int,
    calls: Sequence[KeptForward],
    modules: Mapping[str, nn.Module],
    units: Iterable[UnitId],
) -> Origin:
    """Return where a step went wrong.

    Args:
        step: its number.
        calls: the forwards of the step, in order.
        modules: every module that is watched, and all inside them, by id.
        units: the ids of the audited ones.
    """
    known = list(units)
    put_back = restored(modules.values())
    try:
        with generators_kept():
            return _found(step, calls, modules, known)
    finally:
        put_back()


def _found(
    step: int, calls: Sequence[KeptForward], modules: Mapping[str, nn.Module], units: list[UnitId]
) -> Origin:
    backwards: list[tuple[KeptForward, Given, OperationWatch]] = []
    for call in calls:
        watched, given = OperationWatch(modules), call.given()
        with call.as_it_was(), watched:
            call.outputs = dict(numeric_tensors(call.run(*given.args, **given.named)))
        bad = worst(call.outputs.values())
        if bad is not None:
            return _of_forward(step, given, watched.births, modules, units, bad)
        backwards.append((call, given, watched))
    for call, _, _ in reversed(backwards):
        bad = worst(call.gradients.values())
        if bad is not None and call is backwards[-1][0]:
            return _origin(
                step, None, "", "loss", bad, "the network's output is finite, its gradient is not"
            )
    for call, given, watched in reversed(backwards):
        births = _of_backward(call, given, watched, modules)
        if births:
            return _born(step, births[0], "backward", units)
    return _origin(
        step, None, "", "loss", "nan", "it did not happen again when the step was run anew"
    )


def _of_forward(
    step: int,
    given: Given,
    births: list[Birth],
    modules: Mapping[str, nn.Module],
    units: list[UnitId],
    bad: Value,
) -> Origin:
    if births:
        return _born(step, births[0], "forward", units)
    for place, module in modules.items():
        for name, weight in module.named_parameters(recurse=False):
            value = worst([weight.detach()])
            if value is not None:
                detail = f"parameter `{name}` of `{place}` is not finite before the step"
                return _origin(step, _unit(place, units), "", "weights", value, detail)
    came = worst(one for _, one in numeric_tensors([given.args, given.named]))
    if came is not None:
        return _origin(step, None, "", "data", came, "the input is not finite")
    return _origin(
        step, None, "", "forward", bad, "no operation of torch that could be seen made it"
    )


def _of_backward(
    call: KeptForward, given: Given, watched: OperationWatch, modules: Mapping[str, nn.Module]
) -> list[Birth]:
    roots = [
        (call.outputs[suffix], gradient)
        for suffix, gradient in call.gradients.items()
        if suffix in call.outputs and call.outputs[suffix].requires_grad
    ]
    weights = [one for module in modules.values() for one in module.parameters(recurse=False)]
    leaves = {id(one): one for one in (*given.leaves, *weights) if one.requires_grad}
    if not roots or not leaves:
        return []
    before = len(watched.births)
    with watched:
        # `grad` and not `backward`: nothing is added to any `.grad`, and no hook there runs.
        torch.autograd.grad(
            [output for output, _ in roots],
            list(leaves.values()),
            [gradient for _, gradient in roots],
            allow_unused=True,
        )
    return watched.births[before:]


def _born(step: int, birth: Birth, phase: str, units: list[UnitId]) -> Origin:
    where = f" in `{birth.place}`" if birth.place else ""
    verb = "gave" if phase == "forward" else "passed back"
    detail = f"`{birth.operation}`{where} {verb} {birth.value}"
    if birth.given:
        detail += f"; it was given {birth.given}"
    return _origin(step, _unit(birth.place, units), birth.operation, phase, birth.value, detail)


def _origin(
    step: int, unit: UnitId | None, operation: str, phase: str, value: Value, detail: str
) -> Origin:
    return Origin(
        step=step,
        unit=unit,
        operation=operation,
        phase=phase,  # type: ignore[arg-type]  # one of the literals above
        value=value,
        detail=detail,
    )


def _unit(place: str, units: list[UnitId]) -> UnitId | None:
    """Return the innermost audited unit around a module."""
    node, _, path = place.partition("/")
    around = [
        one
        for one in units
        if one.partition("/")[0] == node
        and (not (mine := one.partition("/")[2]) or path == mine or path.startswith(mine + "."))
    ]
    return max(around, key=len, default=None)
