"""What a module's answers depend on beside its weights: plain attributes of its parts, and hooks.

`build_module` sets them, and a filter's identity tells of that. What a user changes afterwards, as
a temperature or the mode of a dropout, only the module itself tells.
"""

from itertools import chain
from operator import is_

from torch import Tensor, nn

from soma.training._twin import place_of

_PLAIN = (bool, int, float, complex, str, bytes, type(None))

Settings = tuple[tuple[str, tuple[tuple[str, object], ...]], ...]


def settings(module: nn.Module) -> Settings:
    """Return the class and the plain attributes of each part, its mode among them."""
    return tuple(
        (
            type(part).__qualname__,
            tuple((name, value) for name, value in vars(part).items() if _is_plain(value)),
        )
        for part in module.modules()
    )


class Look:
    """A module at one moment: tells at little cost whether all about it is the same object yet."""

    __slots__ = ("_objects", "_parts", "_tensors", "_traces")

    def __init__(self, module: nn.Module) -> None:
        self._parts = [*module.modules()]
        self._tensors = [*module.parameters(), *module.buffers()]
        self._objects = self._seen()
        self._traces = [*map(_trace, self._tensors)]

    def holds(self) -> bool:
        """Whether no attribute, weight or part was exchanged, and no weight written to."""
        objects = self._seen()
        return (
            len(objects) == len(self._objects)
            and all(map(is_, objects, self._objects))
            and [*map(_trace, self._tensors)] == self._traces
        )

    def is_hooked(self) -> bool:
        """Whether a hook of somebody else than torch waits for calls of the module or a part."""
        return any(
            not (getattr(hook, "__module__", "") or type(hook).__module__).startswith("torch.")
            for part in self._parts
            if part._forward_hooks or part._forward_pre_hooks
            for hook in (*part._forward_hooks.values(), *part._forward_pre_hooks.values())
        )

    def _seen(self) -> list[object]:
        return [
            *chain.from_iterable(
                chain(
                    vars(part).values(),
                    part._parameters.values(),
                    part._buffers.values(),
                    part._modules.values(),
                )
                for part in self._parts
            )
        ]


def _trace(tensor: Tensor) -> tuple[int, int]:
    return tensor._version, place_of(tensor)


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(one, _PLAIN) for one in value)
    return isinstance(value, _PLAIN)
