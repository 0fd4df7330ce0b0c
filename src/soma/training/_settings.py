"""What a module's answers depend on beside its weights: plain attributes of its parts, and hooks.

`build_module` sets them, and a filter's identity tells of that. What a user changes afterwards, as
a temperature or the mode of a dropout, only the module itself tells.
"""

from itertools import chain
from operator import attrgetter, is_, methodcaller

from torch import Tensor, nn

from soma.training._twin import place_of

_PLAIN = (bool, int, float, complex, str, bytes, type(None))

_VALUES, _VERSION = methodcaller("values"), attrgetter("_version")

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

    __slots__ = ("_hooks", "_objects", "_placed", "_places", "_spaces", "_tensors", "_versions")

    def __init__(self, module: nn.Module) -> None:
        parts = [*module.modules()]
        # Where one of these is exchanged for another one, the first of its part tells.
        self._spaces = [
            space
            for part in parts
            for space in (vars(part), part._parameters, part._buffers, part._modules)
        ]
        self._hooks = [
            hooks for part in parts for hooks in (part._forward_pre_hooks, part._forward_hooks)
        ]
        self._tensors = [*module.parameters(), *module.buffers()]
        self._placed = [one for one in self._tensors if place_of(one)]
        self._objects = self._seen()
        self._versions = [*map(_VERSION, self._tensors)]
        self._places = [*map(Tensor.data_ptr, self._placed)]

    def holds(self) -> bool:
        """Whether no attribute, weight or part was exchanged, and no weight written to."""
        objects = self._seen()
        return (
            len(objects) == len(self._objects)
            and all(map(is_, objects, self._objects))
            and [*map(_VERSION, self._tensors)] == self._versions
            and [*map(Tensor.data_ptr, self._placed)] == self._places
        )

    def is_hooked(self) -> bool:
        """Whether a hook of somebody else than torch waits for calls of the module or a part."""
        return any(self._hooks) and any(
            not (getattr(hook, "__module__", "") or type(hook).__module__).startswith("torch.")
            for hooks in self._hooks
            for hook in hooks.values()
        )

    def _seen(self) -> list[object]:
        return [*chain.from_iterable(map(_VALUES, self._spaces))]


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(one, _PLAIN) for one in value)
    return isinstance(value, _PLAIN)
