"""The inside of each module, as it was executed."""

from typing import NamedTuple

from markupsafe import Markup

from soma.draw import counted
from soma.viz._flow_picture import flow_svg
from soma.viz._notes import flow_notes
from soma.viz.report._facts import Facts
from soma.viz.report._fill import fill, picture
from soma.viz.report._section import Section

_WHOLE = 800  # boxes of a picture, as of a graph
_OPEN = 80  # boxes of a picture that is shown unasked
_MOST = 40  # pictures


class Inside(NamedTuple):
    """The inside of one node."""

    node: str
    class_name: str
    drawing: Markup
    open: bool


def inside_section(facts: Facts) -> Section | None:
    """Return a picture for each module; None where none was recorded."""
    if not facts.modules:
        return None
    shown = facts.modules[:_MOST]
    left_out = [
        f"The picture of the inside of {flow.node} draws its {len(flow.nodes):,} calls as fewer "
        "boxes."
        for flow in shown
        if len(flow.nodes) > _WHOLE
    ]
    if len(shown) < len(facts.modules):
        left_out.append(
            f"{len(shown)} of {len(facts.modules):,} insides are drawn; the data holds all."
        )
    return Section(
        key="inside",
        title="Inside the modules",
        count=counted(len(facts.modules), "module"),
        body=fill(
            "inside.jinja",
            insides=[
                Inside(
                    flow.node,
                    flow.class_name,
                    picture(flow_svg(flow, flow_notes(flow.node, facts.unit_flags))),
                    len(flow.nodes) <= _OPEN,
                )
                for flow in shown
            ],
        ),
        left_out=tuple(left_out),
    )
