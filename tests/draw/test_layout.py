"""Where boxes stand and lines run: nothing on anything, on a page that can be read."""

import subprocess
import sys
from itertools import pairwise

import graphlay
import pytest

from soma.draw._layout import places
from soma.draw._layout_plain import plain_places
from soma.draw._layout_rows import chain_order
from soma.draw._places import Block, Link, Wanted
from tests.draw.diagrams import (
    DRAWN,
    chain,
    crossings,
    fan,
    framed,
    overlapping,
    run_through,
    tangle,
    wanted_of,
)


@pytest.mark.parametrize("name", DRAWN)
def test_no_box_stands_on_another(name: str) -> None:
    """Boxes never overlap, whatever the graph."""
    wanted = wanted_of(DRAWN[name])

    assert overlapping(places(wanted), wanted) == []


@pytest.mark.parametrize("name", DRAWN)
def test_no_line_runs_through_a_box(name: str) -> None:
    """A line touches no box but the two that it joins."""
    wanted = wanted_of(DRAWN[name])

    assert run_through(places(wanted), wanted) == []


@pytest.mark.parametrize("name", set(DRAWN) - {"frames"})
def test_the_plain_layout_is_as_tidy(name: str) -> None:
    """Without graphlay too, nothing overlaps and no line runs through a box."""
    wanted = wanted_of(DRAWN[name])
    found = plain_places(wanted)

    assert (overlapping(found, wanted), run_through(found, wanted)) == ([], [])


@pytest.mark.parametrize("name", DRAWN)
def test_lines_end_at_their_boxes(name: str) -> None:
    """A line begins on the border of its source and ends on that of its target."""
    wanted = wanted_of(DRAWN[name])
    for found in (places(wanted), plain_places(wanted)):
        for route, link in zip(found.routes, wanted.links, strict=True):
            first, last = route.points[0], route.points[-1]
            for (x, y), end in ((first, link.source), (last, link.target)):
                area = found.areas[end]
                assert area
                assert area.x - 0.1 <= x <= area.x + area.width + 0.1
                assert area.y - 0.1 <= y <= area.y + area.height + 0.1


@pytest.mark.parametrize("count", [14, 40, 120])
def test_crossings_are_those_of_graphlay(count: int) -> None:
    """Our spacing and choice of direction add no crossing to what graphlay finds."""
    wanted = wanted_of(tangle(count))
    graph = graphlay.Graph()
    for at, block in enumerate(wanted.blocks):
        graph.node(at, width=block.size[0], height=block.size[1])
    for link in wanted.links:
        graph.edge(link.source, link.target)
    own = [
        [tuple((p["x"], p["y"]) for p in edge["points"]) for edge in drawn.edges]
        for way in ("leftright", "topbottom")
        for drawn in [graphlay.layout(graph, options={"direction": way})]
    ]
    ours = [route.points for route in places(wanted).routes]

    assert crossings(ours) <= max(map(crossings, own))


def test_a_long_chain_is_read_like_a_text() -> None:
    """Sixty boxes in a row fill a page in lines from left to right."""
    wanted = wanted_of(chain(60))
    found = places(wanted)
    areas = [area for area in found.areas if area]

    assert found.width <= 1100
    assert found.height <= 2500
    assert all(b.x > a.x or b.y > a.y for a, b in pairwise(areas))


def test_a_wide_fan_stands_upright() -> None:
    """Thirty branches do not make a picture that has to be scaled down."""
    assert places(wanted_of(fan(30))).width <= 1100


def test_only_a_chain_is_laid_in_rows() -> None:
    """A fork, two chains, a circle and a frame are no chain."""
    three = (Block(size=(10, 10)),) * 3
    fork = Wanted(blocks=three, links=(Link(source=0, target=1), Link(source=0, target=2)))
    apart = Wanted(blocks=three, links=(Link(source=0, target=1),))
    ring = Wanted(blocks=three, links=(Link(source=0, target=1), Link(source=1, target=0)))
    kinds = [chain_order(wanted) for wanted in (fork, apart, ring, wanted_of(framed()))]

    assert kinds == [None] * 4
    assert chain_order(wanted_of(chain(3))) == [0, 1, 2]


@pytest.mark.parametrize("layout", [places, plain_places])
def test_a_circle_is_drawn_as_well(layout: object) -> None:
    """A graph that turns out to have a cycle is drawn, not refused."""
    blocks = (Block(size=(40, 20)),) * 3
    links = tuple(Link(source=a, target=b) for a, b in ((0, 1), (1, 2), (2, 0)))
    wanted = Wanted(blocks=blocks, links=links)
    found = layout(wanted)  # type: ignore[operator]

    assert overlapping(found, wanted) == []


def test_pictures_need_no_graphlay() -> None:
    """Where graphlay cannot be imported, the plain layout draws, in a real process."""
    code = (
        "import sys; sys.modules['graphlay'] = None\n"
        "from tests.draw.diagrams import *\n"
        "from soma.draw import diagram_picture, svg\n"
        "print(len([svg(diagram_picture(shown)) for shown in DRAWN.values()]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.stdout.strip(), done.stderr) == (str(len(DRAWN)), "")


def test_frames_that_interleave_too_much_are_left_out() -> None:
    """A chain of 400 boxes that goes from frame to frame and back is drawn, without frames."""
    boxes = [Block(size=(60, 20), parent=400 + number % 3) for number in range(400)]
    links = tuple(Link(source=number, target=number + 1) for number in range(399))
    found = places(Wanted(blocks=(*boxes, *(Block(frame=True),) * 3), links=links))

    assert all(found.areas[:400])
    assert found.areas[400:] == (None, None, None)
