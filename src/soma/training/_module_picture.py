"""The picture of a module that has not run: its parts as they are declared.

What flows between them only a run tells; in an `nn.Sequential` the order does.
"""

import itertools
from collections.abc import Iterator

from torch import nn
from torch.nn.parameter import is_lazy

from soma.draw import Arrow, Badge, Box, Diagram, Group, amount, diagram_picture, svg

_MOST = 60  # boxes; of a larger module the outermost parts are shown


def module_svg(name: str, module: nn.Module) -> str:
    """Return the parts of a module as SVG."""
    return svg(diagram_picture(module_diagram(name, module)))


def module_diagram(name: str, module: nn.Module) -> Diagram:
    """Return the parts of a module as boxes in frames, with arrows where their order is known."""
    leaves = sum(not any(part.children()) for part in module.modules())
    boxes, arrows, groups = _Parts(deep=leaves <= _MOST).of(module)
    parts = sum(1 for _ in module.modules()) - 1
    inside = f" in {parts} submodule{'' if parts == 1 else 's'}" if parts else ""
    return Diagram(
        title=name,
        subtitle=f"{_amount_of(module)} parameters{inside}",
        boxes=tuple(boxes),
        arrows=tuple(arrows),
        groups=tuple(groups),
    )


def _amount_of(module: nn.Module) -> str:
    """Return how many parameters a module has, as people write it."""
    known = [one for one in module.parameters() if not is_lazy(one)]
    return amount(sum(one.numel() for one in known))


class _Parts:
    """Gathers boxes, arrows and frames."""

    def __init__(self, *, deep: bool) -> None:
        self.deep = deep
        self.boxes: list[Box] = []
        self.arrows: list[Arrow] = []
        self.groups: list[Group] = []

    def of(self, module: nn.Module) -> tuple[list[Box], list[Arrow], list[Group]]:
        """Return what a module is drawn with."""
        if any(module.children()):
            self._add_children(module, "", None)
        else:
            self.boxes.append(_box("", type(module).__name__, module, None))
        return self.boxes, self.arrows, self.groups

    def _add_children(self, module: nn.Module, path: str, group: str | None) -> tuple[str, str]:
        """Add the parts of a module; return the keys of the first and the last box."""
        ends: list[tuple[str, str]] = []
        for name, child in module.named_children():
            key = f"{path}.{name}" if path else name
            if self.deep and any(child.children()):
                title = f"{name}: {type(child).__name__}"
                self.groups.append(
                    Group(key=key, title=title, parent=group, badges=tuple(_badges(child)))
                )
                ends.append(self._add_children(child, key, key))
            else:
                self.boxes.append(_box(key, name, child, group))
                ends.append((key, key))
        if isinstance(module, nn.Sequential):
            pairs = itertools.pairwise(ends)
            self.arrows += (Arrow(source=last, target=first) for (_, last), (first, _) in pairs)
        return ends[0][0], ends[-1][1]


def _box(key: str, title: str, module: nn.Module, group: str | None) -> Box:
    told = " ".join(module.extra_repr().split())
    parameters = any(True for _ in module.parameters())
    lines = [type(module).__name__, *([f"{_amount_of(module)} θ"] if parameters else [])]
    return Box(
        key=key,
        title=title,
        lines=tuple(lines),
        badges=tuple(_badges(module)),
        stroke="accent" if parameters else "line",
        tooltip=f"{key or title}: {type(module).__name__}({told})",
        group=group,
    )


def _badges(module: nn.Module) -> Iterator[Badge]:
    asked = [one.requires_grad for one in module.parameters()]
    if asked and not any(asked):
        yield Badge(text="■ frozen", ink="muted")
