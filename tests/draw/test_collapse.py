"""Huge diagrams: fewer boxes, said so, and nothing that matters lost."""

from dataclasses import replace

import pytest

from soma.draw import Badge, Box, Diagram, Group, Text, diagram_picture
from soma.draw._collapse import MOST_BOXES, collapsed
from tests.draw.diagrams import chain, diagram, layered, plain_boxes, tangle


def test_what_can_be_drawn_stays_as_it_is() -> None:
    """Up to 800 boxes are drawn one by one."""
    shown = chain(MOST_BOXES)

    assert collapsed(shown) is shown


def test_a_chain_becomes_its_ends_and_one_box() -> None:
    """The first and the last of a chain stay; what is between is counted."""
    titles = [box.title for box in collapsed(chain(10_000)).boxes]

    assert titles == ["node_0", "9,998 nodes", "node_9999"]


@pytest.mark.parametrize(
    "shown",
    [layered(10_000, 50), layered(5_000, 5), tangle(3_000), diagram(plain_boxes(5_000), [])],
    ids=["layers", "narrow", "tangle", "no arrows"],
)
def test_a_huge_graph_fits_and_counts_all_its_nodes(shown: Diagram) -> None:
    """Whatever its shape, at most 800 boxes are left, and they speak for every node."""
    fewer = collapsed(shown)
    counts = [box.title.removesuffix(" nodes").replace(",", "") for box in fewer.boxes]

    assert len(fewer.boxes) <= MOST_BOXES
    assert sum(int(text) if text.isdigit() else 1 for text in counts) == len(shown.boxes)
    assert {a.source for a in fewer.arrows} <= {box.key for box in fewer.boxes}


def test_a_dense_graph_is_bounded_too() -> None:
    """A few hundred boxes with an arrow for every pair end in few arrows."""
    ends = [(a, b) for b in range(300) for a in range(b)]
    fewer = collapsed(diagram(plain_boxes(300), ends))

    assert len(fewer.arrows) <= 2400


def test_frames_collapse_to_their_titles() -> None:
    """When chains do not help, a frame becomes one box with its name."""
    boxes = [Box(key=str(at), title=f"n{at}", group=f"g{at // 100}") for at in range(1000)]
    groups = tuple(Group(key=f"g{at}", title=f"layer.{at}") for at in range(10))
    ends = [(at, at + step) for at in range(998) for step in (1, 2)]
    fewer = collapsed(diagram(boxes, ends, groups=groups))

    assert [box.lines[0] for box in fewer.boxes] == [f"layer.{at}" for at in range(10)]
    assert {box.title for box in fewer.boxes} == {"100 nodes"}


def test_flags_survive_the_collapse() -> None:
    """A collapsed box counts the badges of its members and keeps the worst border."""
    shown = chain(1000)
    flag = Badge(text="▲ VANISHING", ink="warning")
    boxes = [
        replace(
            box, badges=(flag,) if at in (3, 500) else (), stroke="warning" if at == 3 else "line"
        )
        for at, box in enumerate(shown.boxes)
    ]
    middle = collapsed(replace(shown, boxes=tuple(boxes))).boxes[1]

    assert [badge.text for badge in middle.badges] == ["2\xd7 ▲ VANISHING"]
    assert middle.stroke == "warning"


def test_the_picture_says_that_it_collapsed() -> None:
    """A reader learns how many boxes became how many."""
    marks = diagram_picture(chain(10_000)).marks
    said = [mark.text for mark in marks if isinstance(mark, Text)]

    assert "collapsed from 10,000 boxes to 3" in said
