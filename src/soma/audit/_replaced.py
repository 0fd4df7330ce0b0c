"""Modules that were put in after an audit had begun: it says that it did not measure them."""

from collections.abc import Iterator

from torch import nn
from torch.nn.parameter import is_lazy

from soma.audit._parameters._weights import Weights
from soma.audit._spots import named_modules, unwrapped
from soma.audit._step._recorder import Recorder

REPLACED = "replaced"
_MOST = 6  # names that are told


def mark_replaced(recorder: Recorder) -> None:
    """Mark the spots whose module is no longer there; note what came with nobody to look at it."""
    spots, notes = recorder.spots, recorder.measurements.notes
    roots = {spot.node: spot.module for spot in spots if not spot.path and spot.elsewhere is None}
    for node, root in roots.items():
        if root is None:
            continue
        now: dict[str, nn.Module] = {}
        for path, module in named_modules(root):
            now.setdefault(path, unwrapped(module))
        mine = [spot for spot in spots if spot.node == node]
        for spot in mine:
            if spot.module is None or spot.unobserved is not None or not spot.path:
                continue
            if now.get(spot.path) is not unwrapped(spot.module):
                spot.unobserved = REPLACED
        if new := [*_unknown(now, recorder.weights)]:
            names = ", ".join(f"`{one}`" for one in new[:_MOST])
            note = f"put into `{node}` after the audit began, and not measured: {names}"
            if note not in notes:
                notes.append(note)


def _unknown(now: dict[str, nn.Module], weights: Weights) -> Iterator[str]:
    """Give the paths of modules with parameters that the audit does not know."""
    for path, module in now.items():
        own = [one for one in module.parameters(recurse=False) if not is_lazy(one)]
        if len(weights.known(own)) < len(own):
            yield path
