"""Graphs as pictures: what a node is, what happened to it, readable without colour."""

import re
from dataclasses import replace
from xml.dom import minidom

import pytest

from soma.core import NodeId
from soma.draw import Box
from soma.tracking._graph_record import GraphRecord
from soma.viz._graph_picture import NodeNote, amount, graph_diagram, graph_svg
from tests.viz.records import HOSTILE_GRAPH, PIPELINE, node


def box(name: str, notes: dict[NodeId, NodeNote] | None = None) -> Box:
    """Return the box of one node of the pipeline."""
    shown = graph_diagram(PIPELINE, notes or {})
    (found,) = [each for each in shown.boxes if each.key == name]
    return found


def test_a_node_says_what_it_is() -> None:
    """A box shows id, class, kind, parameters and time."""
    shown = box("backbone", {NodeId("backbone"): NodeNote(seconds=0.0123, status="ran")})

    assert shown.title == "backbone"
    assert shown.lines == ("Backbone · trainable", "8.2k θ · 12.3 ms")
    assert box("embed").lines == ("Embed · opaque",)


@pytest.mark.parametrize(
    ("note", "words"),
    [
        (NodeNote(status="failed"), ["✕ failed"]),
        (NodeNote(status="not run"), ["○ not run"]),
        (NodeNote(status="ran", cached="miss"), []),
        (NodeNote(cached="hit"), ["● from cache"]),
        (NodeNote(cached="mixed"), ["◐ partly from cache"]),
        (NodeNote(flags=("NAN", "VANISHING")), ["▲ NAN", "▲ VANISHING"]),
        (NodeNote(status="failed", flags=("NAN",), cached="mixed"), 3),
    ],
)
def test_what_happened_is_said_in_words(note: NodeNote, words: list[str] | int) -> None:
    """Every state has a sign and a word of its own, not a colour alone."""
    said = [badge.text for badge in box("fuse", {NodeId("fuse"): note}).badges]

    assert (len(said) if isinstance(words, int) else said) == words


def test_all_flags_of_a_node_are_shown() -> None:
    """Many flags make a taller box, and none is dropped."""
    flags = tuple(f"FLAG_{number}" for number in range(9))
    text = graph_svg(PIPELINE, {NodeId("mfcc"): NodeNote(flags=flags)})

    assert re.findall(r"▲ (FLAG_\d)<", text) == list(flags)


def test_a_frozen_module_says_so() -> None:
    """Parameters of which none trains are called frozen."""
    frozen = replace(node("head", parameters=100), trainable=0)
    (shown,) = graph_diagram(GraphRecord(name="", nodes=(frozen,), edges=()), {}).boxes

    assert [badge.text for badge in shown.badges] == ["■ frozen"]


def test_the_tooltip_tells_why() -> None:
    """What does not fit a box is in its tooltip: arguments, description, reason."""
    note = NodeNote(cached="miss", why="its code changed")
    told = box("mfcc", {NodeId("mfcc"): note}).tooltip

    assert told.split("\n") == [
        "mfcc: Mfcc, trainable",
        "Does something.",
        "seed = 0",
        "computed, not found in the cache",
        "its code changed",
    ]


def test_the_legend_names_what_occurs() -> None:
    """A plain graph needs no entry for failures; a failed one has it."""
    plain = [sample.text for sample in graph_diagram(PIPELINE, {}).legend]
    notes = {
        NodeId("fuse"): NodeNote(status="failed"),
        NodeId("reg_head"): NodeNote(status="not run"),
    }
    failed = [sample.text for sample in graph_diagram(PIPELINE, notes).legend]

    assert plain == ["learns from data"]
    assert failed == ["learns from data", "failed", "not run"]


def test_a_click_finds_the_node() -> None:
    """Each box is a group that carries the id of its node."""
    page = minidom.parseString(graph_svg(PIPELINE))
    keys = [group.getAttribute("data-node") for group in page.getElementsByTagName("g")]

    assert keys == [each.id for each in PIPELINE.nodes]


def test_hostile_names_stay_text() -> None:
    """Names with markup, controls and quotes make a well-formed picture without elements."""
    text = graph_svg(HOSTILE_GRAPH, {HOSTILE_GRAPH.nodes[0].id: NodeNote(flags=("<script>",))})
    tags = {each.tagName for each in minidom.parseString(text).getElementsByTagName("*")}

    assert tags.isdisjoint({"script", "img", "a", "foreignObject"})


def test_an_empty_graph_is_a_picture() -> None:
    """A graph without nodes is drawn as its title."""
    assert "0 nodes" in graph_svg(GraphRecord(name="empty", nodes=(), edges=()))


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (99_960, "100k"),
        (999_999, "1.0M"),
        (7 * 10**9, "7.0B"),
    ],
)
def test_amounts_are_short(count: int, text: str) -> None:
    """Parameters are counted in k, M, B and T."""
    assert amount(count) == text
