"""Which modules of a model an audit watches when a training library holds the model."""

from collections.abc import Iterable, Iterator

from torch import nn

from soma.errors import InvalidInput, did_you_mean, listing


def parts_of(model: nn.Module, paths: Iterable[str] | None) -> dict[str, nn.Module]:
    """Return modules by name: those at some dotted paths, or the children of a model.

    Of a `ModuleList` and its like, which are never called themselves, the members count as
    children. A model without children stands for itself, by the name of its class.

    Raises:
        InvalidInput: there is no submodule at a path.
    """
    if isinstance(paths, str):
        raise InvalidInput(f"`modules` is {paths!r}; names are wanted, as `[{paths!r}]`.")
    if paths is None:
        return dict(_called(model, "")) or {type(model).__name__.lower(): model}
    known = dict(model.named_modules())
    for path in paths:
        if path not in known or not path:
            children = [name for name, _ in model.named_children()]
            raise InvalidInput(
                f"`modules` names {path!r}, and {type(model).__name__} has no such submodule; at "
                f"the top it has {listing(children)}.{did_you_mean(path, known)}"
            )
    return {path: known[path] for path in paths}


def _called(model: nn.Module, prefix: str) -> Iterator[tuple[str, nn.Module]]:
    for name, child in model.named_children():
        if type(child).forward is nn.Module.forward:
            yield from _called(child, f"{prefix}{name}.")
        else:
            yield prefix + name, child
