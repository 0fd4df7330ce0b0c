"""A run of one module that leaves no trace: modes, buffers and generators are put back."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Generator, Tensor, nn
from torch.nn.parameter import is_lazy

from soma.engine import generators_kept
from soma.training._called import called
from soma.training._calls import checked_pair, overrides_forward, wanted_of
from soma.training._convert import mapped, to_tensors, walk
from soma.training._filter import DifferentiableFilter


def trial_run(filter: DifferentiableFilter, x: object) -> object:
    """Return the live module's output for `x`, with the module in eval."""
    with generators_kept() as kept, torch.no_grad():
        before = _weights(filter._live)
        try:
            with module_kept(filter._live):
                return _run(filter, x)
        finally:
            # Weights that appear only in a run are drawn in it, so then the generators move on.
            kept.restores = before is not None and before == _weights(filter._live)


@contextmanager
def module_kept(module: nn.Module | None) -> Iterator[None]:
    """Put modes, buffers and a module's own generators back afterwards."""
    if module is None:
        yield
        return
    parts = [
        # A scripted module keeps its buffers itself, out of reach.
        (part, part.training, dict(part._buffers) if isinstance(part._buffers, dict) else {})
        for part in module.modules()
    ]
    values = [
        (one, one.clone()) for one in module.buffers() if not is_lazy(one) and not one.is_quantized
    ]
    generators = [
        (one, one.get_state())
        for part, _, _ in parts
        for one in vars(part).values()
        if isinstance(one, Generator)
    ]
    try:
        yield
    finally:
        for part, training, buffers in parts:
            part.training = training
            for name, buffer in buffers.items():
                if buffer is None or not is_lazy(buffer):
                    part._buffers[name] = buffer
        with torch.no_grad():
            for buffer, value in values:
                _put_back(buffer, value)
        for generator, state in generators:
            generator.set_state(state)


def _run(filter: DifferentiableFilter, x: object) -> object:
    module = filter._live
    if module is not None:
        module.eval()
    given = mapped(to_tensors(x, wanted_of(filter)), _copied)  # the module may work in place
    versions = _versions(given)
    if not overrides_forward(filter):
        assert module is not None
        output = called(module, given)
    else:
        was_training = filter.training
        filter.training = True  # so that it answers with tensors, whatever they are held in
        try:
            output = checked_pair(filter, filter.forward(given, None))[0]
        finally:
            filter.training = was_training
            if module is None and filter._live is not None:
                filter._live.train(was_training)
    filter._writes_input = _versions(given) != versions
    return output


def _copied(value: object) -> object:
    return value.clone() if isinstance(value, Tensor) else value


def _versions(value: object) -> list[int]:
    tensors = [one for one in walk(value) if isinstance(one, Tensor)]
    return [one._version for one in tensors if not one.is_inference()]


def _weights(module: nn.Module | None) -> list[tuple[int, bool]] | None:
    if module is None:
        return None
    return [(id(one), is_lazy(one)) for one in [*module.parameters(), *module.buffers()]]


def _put_back(buffer: Tensor, value: Tensor) -> None:
    changed = buffer.layout is not torch.strided or not torch.equal(buffer, value)
    if changed and buffer.shape == value.shape:
        buffer.copy_(value)
