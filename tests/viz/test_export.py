"""Graphs as Mermaid and DOT text."""

import re

import pytest

from soma.viz._graphviz import graphviz
from soma.viz._mermaid import encoded, mermaid
from tests.viz.records import ENCODER, HOSTILE_GRAPH, PIPELINE


def test_mermaid_is_a_flowchart() -> None:
    """Nodes come with their words, edges by number."""
    lines = mermaid(PIPELINE).splitlines()

    assert lines[0] == "flowchart TD"
    assert lines[6] == ('    n5["backbone<br/>Backbone #183; trainable<br/>8.2k θ"]')
    assert lines[-1] == "    n5 --> n7"


def test_graphviz_is_a_directed_graph() -> None:
    """DOT names the same nodes and edges."""
    lines = graphviz(PIPELINE).splitlines()

    assert (lines[0], lines[-1]) == ("digraph {", "}")
    assert lines[2] == '    n0 [label="load_audio\\nLoadAudio &#183; stateless"]'
    assert lines[-2] == "    n5 -> n7"


def test_cuts_are_dashed_in_both() -> None:
    """An edge that stops the gradient is dashed and labelled."""
    assert '    n6 -. "#9986; detach" .-> n7' in mermaid(ENCODER).splitlines()
    assert '    n6 -> n7 [label="&#9986; detach", style=dashed, color=red]' in graphviz(ENCODER)


@pytest.mark.parametrize("write", [mermaid, graphviz])
def test_hostile_names_break_no_line(write: object) -> None:
    """A name adds no line, and no sign of the language gets out of its label."""
    plain = write(PIPELINE)  # type: ignore[operator]
    text = write(HOSTILE_GRAPH)  # type: ignore[operator]
    extra = len(HOSTILE_GRAPH.nodes) + len(HOSTILE_GRAPH.edges)
    labels = re.findall(r'"([^"]*)"', text)
    own = re.compile(r"<br/>|\\n|&?#\d+;")
    rest = "".join(own.sub("", label) for label in labels)

    known = len(PIPELINE.nodes) + len(PIPELINE.edges)
    assert len(text.splitlines()) - extra == len(plain.splitlines()) - known
    assert not set(rest) & set("<>&#;\"'\\`[](){}|\n\x00\u2028\u202e")
    assert not any(line.lstrip().startswith("click") for line in text.splitlines())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. clean", "1#46; clean"),
        ("__main__", "#95;#95;main#95;#95;"),
        ("dense_2, 1.5 ms", "dense_2, 1.5 ms"),
    ],
)
def test_a_label_is_no_markdown(text: str, expected: str) -> None:
    """What Mermaid would take for a list or for emphasis is spelled out, and nothing else."""
    assert encoded(text, "#") == expected
