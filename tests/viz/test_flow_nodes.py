"""The picture of a flow: what its nodes are, which ways were gone, what waits."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from click.testing import CliRunner

import soma
from soma.cli import main
from soma.tracking import AskedLine
from soma.viz import graph_svg
from soma.viz._graph_picture import NodeNote, graph_diagram
from soma.viz._notes import graph_notes
from soma.viz.figures import gantt_info
from tests.viz.flows_made import FLOW, flown, judging
from tests.viz.records import PIPELINE


def notes(view: soma.RunView) -> dict[str, NodeNote]:
    """Return what a run says of its nodes."""
    return graph_notes(view._record, [])


def test_kinds_are_told_apart_by_words() -> None:
    """Each node of a flow has a badge that names its kind; a node of a graph has none."""
    badges = {box.key: [one.text for one in box.badges] for box in graph_diagram(FLOW, {}).boxes}

    assert badges["tune"] == ["↻ agent"]
    assert badges["judge"] == ["⟲ loop"]
    assert badges["which"] == ["◆ condition"]
    assert badges["grade"] == ["✎ LLM"]
    assert badges["mail"] == ["ƒ tool"]
    assert badges["out"] == ["⇅ IO"]
    assert badges["keep"] == ["Σ graph"]
    assert not [box.badges for box in graph_diagram(PIPELINE, {}).boxes if box.badges]


def test_the_ways_are_counted(tmp_path: Path) -> None:
    """Arrows into a case say how often it was chosen; one never chosen is dashed, box and all."""
    diagram = graph_diagram(FLOW, notes(flown(tmp_path)))
    ways = {arrow.target: (arrow.label, arrow.dashed) for arrow in diagram.arrows if arrow.label}
    boxes = {box.key: box for box in diagram.boxes}

    assert ways == {
        "judge.fix": ("3 rounds", False),
        "which.good.praise": ("good ×1", False),  # noqa: RUF001
        "which.bad.blame": ("bad: not taken", True),
    }
    assert boxes["which.bad.blame"].dashed
    assert boxes["judge"].lines == ("500 ms", "again ×2 · done ×1")  # noqa: RUF001


def test_the_way_past_all_cases_is_named(tmp_path: Path) -> None:
    """It has the labels that give the value on, where a run has told them."""

    def past(routes: dict[str, int]) -> tuple[str, bool]:
        note = {"which": NodeNote(routes=routes)} if routes else {}
        edges = (*FLOW.edges, ("which", "approve"))
        arrows = graph_diagram(replace(FLOW, edges=edges), note).arrows
        return next((one.label, one.dashed) for one in arrows if one.target == "approve"
                    and one.source == "which")  # fmt: skip

    assert past({}) == ("otherwise", False)
    assert past({"good": 1, "bad": 0, "else": 2}) == ("else ×2", False)  # noqa: RUF001
    assert past({"good": 1, "bad": 0, "else": 0}) == ("else: not taken", True)


def test_parts_are_frames(tmp_path: Path) -> None:
    """A case of a condition and the body of a loop are frames, and name their nodes shortly."""
    diagram = graph_diagram(FLOW, {})
    frames = {group.key: group.title for group in diagram.groups}
    titles = {box.title: frames[box.group] for box in diagram.boxes if box.group}

    assert titles == {"fix": "judge", "praise": "which · good", "blame": "which · bad"}
    ElementTree.fromstring(graph_svg(FLOW))


def test_a_node_that_waits_says_so(tmp_path: Path) -> None:
    """A question without an answer stands on its node, and in the text."""
    asked = AskedLine(at="keep/ask", request="r", node="keep", question="Keep it?", start=1.0)
    view = flown(tmp_path, [asked])
    listed = CliRunner().invoke(main, ["runs", "--plain", "--root", str(tmp_path)]).output
    box = next(box for box in graph_diagram(FLOW, notes(view)).boxes if box.key == "keep")

    assert "■ waits for an answer" in [badge.text for badge in box.badges]
    assert not box.dashed
    assert "keep (Computation) ← out  waits for an answer" in view.to_text()
    assert "open_questions=1" in listed


def test_lines_of_text_tell_turns_and_routes(tmp_path: Path) -> None:
    """`soma graph` prints turns, tokens and routes beside the nodes."""
    text = flown(tmp_path).to_text()

    assert "tune (Agent)  3 turns · 5,580 tokens, 500 ms" in text
    assert "judge (Loop) ← tune  again ×2 · done ×1, 500 ms" in text  # noqa: RUF001


def test_a_timeline_shows_turns_and_tools(tmp_path: Path) -> None:
    """A node that asks a model has a bar for each reply, and a lane for each of its tools."""
    info = gantt_info(flown(tmp_path)._record)
    bars = [(bar.node, bar.phase, bar.failed) for bar in info.bars if bar.node.startswith("tune")]

    assert info.nodes[:4] == ("tune", "tune ƒ train", "tune ƒ health", "judge")
    assert bars == [
        *[("tune", "model", False)] * 3,
        ("tune ƒ health", "tool", False),
        ("tune ƒ train", "tool", False),
        ("tune ƒ train", "tool", True),
    ]


def test_lists_and_cards_tell_turns_and_tokens(tmp_path: Path) -> None:
    """`soma runs`, the list in a notebook and the card of a run count turns and tokens."""
    view = flown(tmp_path, judging())
    listed = CliRunner().invoke(main, ["runs", "--plain", "--root", str(tmp_path)]).output

    assert "turns=7 tokens=7,620" in listed
    assert "turns=7 tokens=7,620" in soma.runs(tmp_path)._repr_html_()
    assert "<b>7,620</b><span>tokens</span>" in view._repr_html_()
