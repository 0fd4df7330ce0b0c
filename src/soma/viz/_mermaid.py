"""A graph as Mermaid text, for places that draw it: GitHub, GitLab, many wikis."""

from dataclasses import replace

from soma.core import ModuleFlow
from soma.draw import Box, Diagram, one_line
from soma.tracking import GraphRecord
from soma.viz._flow_picture import flow_diagram
from soma.viz._graph_picture import graph_diagram

_PLAIN = " ,"
_PLAIN_WITHIN = "_."  # at the edge of a word they are Markdown: a list, or emphasis


def mermaid(drawn: GraphRecord | ModuleFlow) -> str:
    """Return a graph, or the inside of a module, as a Mermaid flowchart."""
    diagram = plain_diagram(drawn)
    ids = {box.key: f"n{index}" for index, box in enumerate(diagram.boxes)}
    lines = ["flowchart TD"]
    lines += (f'    {ids[box.key]}["{_label(box)}"]' for box in diagram.boxes)
    for arrow in diagram.arrows:
        line, said = ("-.->", "-. {} .->") if arrow.dashed else ("-->", "-- {} -->")
        label = f'"{encoded(arrow.label, "#")}"'
        join = said.format(label) if arrow.label else line
        lines.append(f"    {ids[arrow.source]} {join} {ids[arrow.target]}")
    return "\n".join(lines) + "\n"


def plain_diagram(drawn: GraphRecord | ModuleFlow) -> Diagram:
    """Return the boxes and arrows of either, without notes of a run."""
    if isinstance(drawn, ModuleFlow):
        return flow_diagram(drawn, {})
    diagram = graph_diagram(drawn, {})
    # No frame says here what a node is a part of.
    boxes = tuple(replace(box, title=box.key) for box in diagram.boxes)
    return replace(diagram, boxes=boxes)


def encoded(text: str, before: str) -> str:
    """Return `text` with a numeric entity for each sign that could mean something."""
    around = f" {one_line(text)} "
    return "".join(
        char
        if char.isalnum()
        or char in _PLAIN
        or (char in _PLAIN_WITHIN and previous.isalnum() and following.isalnum())
        else f"{before}{ord(char)};"
        for previous, char, following in zip(around, around[1:-1], around[2:], strict=False)
    )


def _label(box: Box) -> str:
    return "<br/>".join(encoded(text, "#") for text in (box.title, *box.lines))
