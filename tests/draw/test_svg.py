"""Pictures as SVG text: whole, self-contained, and no trouble to its neighbours on a page."""

import re
from xml.dom import minidom

import pytest

from soma.draw import Dot, Line, Mark, Picture, Rectangle, Text, svg


def drawn(*marks: Mark, title: str = "tried", description: str = "") -> str:
    """Return the SVG of a few marks."""
    picture = Picture(width=80, height=40, marks=marks, title=title, description=description)
    return svg(picture)


def element(name: str, text: str) -> minidom.Element:
    """Return the first element of a name."""
    return minidom.parseString(text).getElementsByTagName(name)[0]


def test_it_names_and_describes_itself() -> None:
    """A screen reader gets the title and the description."""
    page = element("svg", drawn(title="a & b", description="two <boxes>"))
    ids = page.getAttribute("aria-labelledby").split()
    said = {n.getAttribute("id"): n.firstChild.data for n in page.childNodes[:2]}

    assert page.getAttribute("role") == "img"
    assert [said[name] for name in ids] == ["a & b", "two <boxes>"]


def test_two_pictures_share_no_id() -> None:
    """Different pictures have different ids, and all rules begin with the id of their own."""
    one, other = drawn(Dot(x=1, y=1)), drawn(Dot(x=2, y=1))
    ids = [set(re.findall(r' id="([^"]+)"', text)) for text in (one, other)]
    (name,) = re.findall(r'<svg [^>]*? id="([^"]+)"', one)
    rules = element("style", one).firstChild.data

    assert not ids[0] & ids[1]
    assert all(f"#{name}" in rule for rule in re.findall(r"([^{}]+)\{[^{}]*\}", rules))


def test_it_follows_the_page() -> None:
    """Dark colours apply where the machine or an ancestor says dark; light can be forced."""
    rules = element("style", drawn(Dot(x=1, y=1))).firstChild.data

    assert "@media(prefers-color-scheme:dark)" in rules
    assert '[data-theme="dark"]' in rules
    assert '[data-theme="light"]' in rules


def test_it_asks_for_nothing_from_outside() -> None:
    """No link, no import, no font, no script."""
    text = drawn(Text(x=1, y=1, text="x"), Line(points=((0, 0), (9, 9)), arrow=True, title="t"))

    assert not re.search(r"href|url\(|@import|@font-face|<script", text)
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]


@pytest.mark.parametrize(
    "char", ["\x00", "\x01", "\x0b", "\x7f", "\ud800", "\u2028", "\ufffe", "\u202e"]
)
def test_what_xml_forbids_is_dropped(char: str) -> None:
    """Control characters, lone surrogates and marks that turn text round leave no trace."""
    text = drawn(Text(x=1, y=1, text=f"a{char}b", key=f"k{char}"), title=f"t{char}")

    assert element("text", text).firstChild.data == "ab"
    assert element("g", text).getAttribute("data-node") == "k"


def test_marks_of_one_key_are_one_group_with_one_tooltip() -> None:
    """A click anywhere on a box finds its key, a pointer anywhere on it the tooltip."""
    box = Rectangle(x=0, y=0, width=9, height=9, fill="box", title="why", key="a")
    group = element("g", drawn(box, Text(x=1, y=1, text="x", key="a"), Dot(x=5, y=5)))

    assert group.getAttribute("data-node") == "a"
    assert [child.tagName for child in group.childNodes] == ["title", "rect", "text"]
    assert not group.getElementsByTagName("rect")[0].childNodes


def test_bars_of_one_key_keep_their_own_tooltips() -> None:
    """Two rectangles of one node with different titles tell both."""
    bars = [
        Rectangle(x=x, y=0, width=9, height=9, fill="box", title=f"turn {x}", key="a")
        for x in (0, 20)
    ]
    titles = minidom.parseString(drawn(*bars)).getElementsByTagName("title")

    assert [node.firstChild.data for node in titles] == ["tried", "turn 0", "turn 20"]


@pytest.mark.parametrize("smooth", [True, False])
def test_a_line_ends_in_a_head_of_its_own(smooth: bool) -> None:
    """An arrow head is a polygon at the last point, not a marker shared by name."""
    line = Line(points=((0, 0), (20, 0), (20, 30)), arrow=True, smooth=smooth)
    text = drawn(line)

    assert element("polygon", text).getAttribute("points").startswith("20,30 ")
    assert ("Q" in element("path", text).getAttribute("d")) is smooth


def test_coordinates_are_short() -> None:
    """A coordinate has at most one decimal, and no minus zero."""
    text = element("circle", drawn(Dot(x=1 / 3, y=-0.01, radius=2)))

    assert [text.getAttribute(name) for name in ("cx", "cy", "r")] == ["0.3", "0", "2"]
