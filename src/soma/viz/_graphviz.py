"""A graph as DOT text, for Graphviz and all that reads its language."""

from soma.core import ModuleFlow
from soma.draw import Box
from soma.tracking import GraphRecord
from soma.viz._mermaid import encoded, plain_diagram


def graphviz(drawn: GraphRecord | ModuleFlow) -> str:
    """Return a graph, or the inside of a module, as a directed graph in DOT."""
    diagram = plain_diagram(drawn)
    ids = {box.key: f"n{index}" for index, box in enumerate(diagram.boxes)}
    lines = [
        "digraph {",
        '    node [shape=box, style="rounded", fontname="sans-serif"]',
        *(f'    {ids[box.key]} [label="{_label(box)}"]' for box in diagram.boxes),
    ]
    for arrow in diagram.arrows:
        facts = [f'label="{encoded(arrow.label, "&#")}"'] if arrow.label else []
        facts += ["style=dashed", "color=red"] if arrow.dashed else []
        said = f" [{', '.join(facts)}]" if facts else ""
        lines.append(f"    {ids[arrow.source]} -> {ids[arrow.target]}{said}")
    return "\n".join([*lines, "}", ""])


def _label(box: Box) -> str:
    return "\\n".join(encoded(text, "&#") for text in (box.title, *box.lines))
