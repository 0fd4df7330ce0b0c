"""Pictures of diagrams: labels inside their boxes, frames around theirs, and all of it the same."""

import os
import subprocess
import sys
from hashlib import sha256
from itertools import combinations, pairwise
from pathlib import Path
from xml.dom import minidom

import pytest

from soma.draw import (
    Arrow,
    Box,
    Diagram,
    Picture,
    Rectangle,
    Sample,
    Text,
    diagram_picture,
    svg,
    text_width,
)
from tests.draw.diagrams import DRAWN, HOSTILE, chain, diagram, framed, layered, plain_boxes

GOLDEN = Path(__file__).parent / "golden"


def texts(picture: Picture) -> list[Text]:
    """Return the texts of a picture."""
    return [mark for mark in picture.marks if isinstance(mark, Text)]


@pytest.mark.parametrize("name", DRAWN)
def test_every_label_lies_in_its_box(name: str) -> None:
    """The words of a box end before its border, by the widest font there is."""
    picture = diagram_picture(DRAWN[name])
    boxes: dict[str, Rectangle] = {}
    for mark in picture.marks:
        if isinstance(mark, Rectangle) and mark.key is not None:
            boxes.setdefault(mark.key, mark)
    for text in texts(picture):
        if text.key is not None:
            box, wide = boxes[text.key], text_width(text.text, text.size, bold=text.bold)
            left = text.x - wide / 2 if text.anchor == "middle" else text.x
            assert box.x + 6 <= left
            assert left + wide <= box.x + box.width - 6
            assert box.y + text.size * 0.8 <= text.y <= box.y + box.height - 3


@pytest.mark.parametrize("name", DRAWN)
def test_everything_lies_on_the_page(name: str) -> None:
    """No mark reaches over the edge of its picture."""
    picture = diagram_picture(DRAWN[name])
    for text in texts(picture):
        wide = text_width(text.text, text.size, bold=text.bold)
        left = text.x - wide / 2 if text.anchor == "middle" else text.x
        assert left >= 0
        assert left + wide <= picture.width
        assert text.y <= picture.height


@pytest.mark.parametrize("name", DRAWN)
def test_no_words_lie_on_words(name: str) -> None:
    """Texts that share a line stand beside each other."""
    spans = []
    for text in texts(diagram_picture(DRAWN[name])):
        wide = text_width(text.text, text.size, bold=text.bold)
        left = text.x - wide / 2 if text.anchor == "middle" else text.x
        spans.append((left, left + wide, text.y - 0.7 * text.size, text.y + 0.2 * text.size))
    covered = [
        (a, b)
        for a, b in combinations(spans, 2)
        if a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
    ]

    assert covered == []


def test_a_frame_holds_what_belongs_to_it() -> None:
    """A frame goes round its boxes and round the frames in it, with room for its title."""
    picture = diagram_picture(framed())
    first = {m.key: m for m in reversed(picture.marks) if isinstance(m, Rectangle) and m.key}
    pairs = (("both", "left"), ("both", "right"), ("left", "0"), ("right", "3"), ("wide", "6"))
    for outer, inner in pairs:
        a, b = first[outer], first[inner]
        assert a.x < b.x
        assert a.y + 22 < b.y
        assert b.x + b.width < a.x + a.width
        assert b.y + b.height < a.y + a.height


def test_a_long_name_is_shortened_in_its_middle_and_told_in_full() -> None:
    """Sixty characters keep their head and tail in the box, and all of them in the tooltip."""
    name = "resnet_backbone_with_a_feature_pyramid_and_attention_block_12"
    picture = diagram_picture(diagram([Box(key="a", title=name)], []))
    (box,) = [m for m in picture.marks if isinstance(m, Rectangle) and m.key == "a"]
    (shown,) = [text.text for text in texts(picture) if text.key == "a"]

    assert shown.startswith("resnet")
    assert shown.endswith("block_12")
    assert "…" in shown
    assert name in (box.title or "")


def test_a_label_of_an_arrow_lies_on_no_box() -> None:
    """Labels of arrows get room between the boxes."""
    boxes = plain_boxes(4)
    arrows = tuple(
        Arrow(source=boxes[a].key, target=boxes[b].key, label="✂ detach", ink="bad", dashed=True)
        for a, b in ((0, 1), (0, 2), (1, 3), (2, 3), (0, 3))
    )
    picture = diagram_picture(Diagram(title="cut", boxes=tuple(boxes), arrows=arrows))
    areas = [m for m in picture.marks if isinstance(m, Rectangle) and m.key is not None]
    labels = [text for text in texts(picture) if text.text == "✂ detach"]

    assert len(labels) == 5
    for text in labels:
        half = text_width(text.text, text.size) / 2
        for area in areas:
            beside = text.x + half <= area.x or text.x - half >= area.x + area.width
            assert beside or text.y <= area.y or text.y - text.size >= area.y + area.height


def test_a_legend_says_what_was_given() -> None:
    """The entries of a legend stand below the boxes; without entries there is none."""
    legend = (Sample(text="failed", ink="bad"), Sample(text="cut", ink="bad", arrow=True))
    boxes = (Box(key="a", title="a"),)
    said = texts(diagram_picture(Diagram(title="", boxes=boxes, arrows=(), legend=legend)))
    plain = texts(diagram_picture(Diagram(title="", boxes=boxes, arrows=())))

    assert [text.text for text in said] == ["a", "failed", "cut"]
    assert [text.text for text in plain] == ["a"]


def test_an_empty_diagram_is_a_picture() -> None:
    """Nothing to draw makes a small picture with a title."""
    picture = diagram_picture(Diagram(title="nothing", boxes=(), arrows=()))

    assert [text.text for text in texts(picture)] == ["nothing"]
    assert minidom.parseString(svg(picture))


@pytest.mark.parametrize("name", DRAWN)
def test_the_svg_is_well_formed(name: str) -> None:
    """Every picture parses as XML, with hostile names in it too, and holds no script."""
    page = minidom.parseString(svg(diagram_picture(DRAWN[name])).encode())
    names = {element.tagName for element in page.getElementsByTagName("*")}
    handlers = [
        attribute
        for element in page.getElementsByTagName("*")
        for attribute in dict(element.attributes.items())
        if attribute.startswith("on") or attribute.endswith("href")
    ]

    known = {"svg", "title", "desc", "style", "g", "rect", "path", "polygon", "text", "circle"}
    assert names <= known
    assert handlers == []


def test_hostile_names_are_read_as_they_are() -> None:
    """A name comes back from the parsed SVG as it was, without what may not be shown."""
    boxes = [Box(key="a", title=HOSTILE[2]), Box(key=HOSTILE[0], title=HOSTILE[3])]
    page = minidom.parseString(svg(diagram_picture(diagram(boxes, []))))
    said = [node.firstChild.data for node in page.getElementsByTagName("text")]
    keys = [node.getAttribute("data-node") for node in page.getElementsByTagName("g")]

    assert said == ["tried", HOSTILE[2], "controlnul"]
    assert keys == ["a", HOSTILE[0]]


def test_the_same_diagram_makes_the_same_bytes() -> None:
    """Another process with another hash seed draws the very same pictures."""
    code = "from tests.draw.test_diagram_picture import fingerprint\nprint(fingerprint())"
    seeds = ("1", "2")
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in seeds
    }

    assert found == {fingerprint()}


def fingerprint() -> str:
    """Return a hash over all pictures, a collapsed one among them."""
    shown = [*DRAWN.values(), layered(1000, 10)]
    return sha256("".join(svg(diagram_picture(one)) for one in shown).encode()).hexdigest()


@pytest.mark.parametrize("name", ["eight", "frames", "hostile"])
def test_pictures_are_as_they_were(name: str) -> None:
    """Golden pictures: a change of looks is seen, and agreed to by replacing the file."""
    golden = (GOLDEN / f"{name}.svg").read_text("utf-8")

    assert svg(diagram_picture(DRAWN[name])) + "\n" == golden


def test_neighbours_in_a_chain_are_joined() -> None:
    """A chain of n boxes has n - 1 arrows, each with a head."""
    page = minidom.parseString(svg(diagram_picture(chain(5))))

    assert len(page.getElementsByTagName("polygon")) == len(list(pairwise(range(5))))
