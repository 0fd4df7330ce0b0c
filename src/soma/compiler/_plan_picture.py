"""The picture of a plan: its steps, what they read, and which stretches gradients pass."""

from collections.abc import Iterator

from soma.compiler._parts import Composite, Empty, Execute, Part, Remote
from soma.draw import Arrow, Badge, Box, Diagram, Group, Sample, diagram_picture, svg


def plan_svg(root: Part, mode: str, count: int) -> str:
    """Return a plan of `count` nodes as SVG."""
    return svg(diagram_picture(plan_diagram(root, mode, count)))


def plan_diagram(root: Part, mode: str, count: int) -> Diagram:
    """Return a plan as boxes and arrows; a differentiable stretch stands in a frame."""
    steps = list(_placed(root))
    groups = dict.fromkeys(group for _, group, _ in steps if group is not None)
    return Diagram(
        title="ExecutionPlan",
        subtitle=f"{mode}, {count} node{'' if count == 1 else 's'}",
        boxes=tuple(_box(step, group, target) for step, group, target in steps),
        arrows=tuple(
            Arrow(source=one, target=step.node) for step, _, _ in steps for one in step.inputs
        ),
        groups=tuple(Group(key=group, title="differentiable") for group in groups),
        legend=(Sample(text="not stored", ink="line", dashed=True),)
        if any(step.uncached for step, _, _ in steps)
        else (),
    )


def _placed(root: Part) -> Iterator[tuple[Execute, str | None, str | None]]:
    """Give every step with the stretch it stands in, named by its first node, and its worker."""
    pending: list[tuple[Part, str | None, str | None]] = [(root, None, None)]
    while pending:
        part, group, target = pending.pop()
        if isinstance(part, Execute):
            yield part, group, target
        elif not isinstance(part, Empty):
            if isinstance(part, Composite) and group is None:
                group = f"stretch {_first(part)}"
            if isinstance(part, Remote):
                target = part.target
            pending += [(inner, group, target) for inner in reversed(part.parts)]


def _first(part: Part) -> str:
    while not isinstance(part, Execute | Empty):
        part = part.parts[0]
    return part.node if isinstance(part, Execute) else ""


def _box(step: Execute, group: str | None, target: str | None) -> Box:
    badges = []
    if step.differentiable and group is None:
        badges.append(Badge(text="∂ differentiable", ink="muted"))
    if target is not None:
        badges.append(Badge(text=f"⇄ on {target}", ink="muted"))
    return Box(
        key=step.node,
        title=step.node,
        badges=tuple(badges),
        stroke="accent" if step.differentiable else "line",
        dashed=step.uncached is not None,
        tooltip=f"{step.node}: not stored, {step.uncached}" if step.uncached else step.node,
        group=group,
    )
