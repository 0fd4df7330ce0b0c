"""The picture of a plan: its steps, what they read, and which stretches gradients pass."""

from collections.abc import Iterator

from soma.compiler._parts import Composite, Empty, Execute, Part
from soma.draw import Arrow, Badge, Box, Diagram, Group, Sample, diagram_picture, svg


def plan_svg(root: Part, mode: str, count: int) -> str:
    """Return a plan of `count` nodes as SVG."""
    return svg(diagram_picture(plan_diagram(root, mode, count)))


def plan_diagram(root: Part, mode: str, count: int) -> Diagram:
    """Return a plan as boxes and arrows; a differentiable stretch stands in a frame."""
    steps = list(_placed(root))
    groups = dict.fromkeys(group for _, group in steps if group is not None)
    return Diagram(
        title="ExecutionPlan",
        subtitle=f"{mode}, {count} node{'' if count == 1 else 's'}",
        boxes=tuple(_box(step, group) for step, group in steps),
        arrows=tuple(
            Arrow(source=one, target=step.node) for step, _ in steps for one in step.inputs
        ),
        groups=tuple(Group(key=group, title="differentiable") for group in groups),
        legend=(Sample(text="not stored", ink="line", dashed=True),)
        if any(step.uncached for step, _ in steps)
        else (),
    )


def _placed(root: Part) -> Iterator[tuple[Execute, str | None]]:
    """Give every step with the stretch that it stands in, named by the stretch's first node."""
    pending: list[tuple[Part, str | None]] = [(root, None)]
    while pending:
        part, group = pending.pop()
        if isinstance(part, Execute):
            yield part, group
        elif not isinstance(part, Empty):
            if isinstance(part, Composite) and group is None:
                group = f"stretch {_first(part)}"
            pending += [(inner, group) for inner in reversed(part.parts)]


def _first(part: Part) -> str:
    while not isinstance(part, Execute | Empty):
        part = part.parts[0]
    return part.node if isinstance(part, Execute) else ""


def _box(step: Execute, group: str | None) -> Box:
    return Box(
        key=step.node,
        title=step.node,
        badges=(Badge(text="∂ differentiable", ink="muted"),)
        if step.differentiable and group is None
        else (),
        stroke="accent" if step.differentiable else "line",
        dashed=step.uncached is not None,
        tooltip=f"{step.node}: not stored, {step.uncached}" if step.uncached else step.node,
        group=group,
    )
