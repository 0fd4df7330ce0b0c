"""Charts as static pictures: nothing is clipped, nothing is lost, nothing runs."""

from xml.etree import ElementTree

import pytest

from soma.draw import Dot, Line, Rectangle, Text, text_width
from soma.viz import Axis, Block, Blocks, Chart, Figure, Panel, Series
from soma.viz._chart_picture import chart_picture

NAN, INFINITE = float("nan"), float("inf")
LONG = "a_name_that_somebody_has_generated_from_a_configuration/of_many_words" * 3


def lines(*values: float, name: str = "loss", others: int = 0) -> Chart:
    """Return a chart of one panel with a line or more."""
    steps = tuple(float(step) for step in range(len(values)))
    series = [Series(name=f"{name}{index or ''}", x=steps, y=values, ink="series1")
              for index in range(1 + others)]  # fmt: skip
    panel = Panel(title=name, x=Axis(title="step", kind="integer"), y=Axis(), series=tuple(series))
    return Chart(title=name, panels=(panel,) * 3, note=f"{LONG} twice")


def bars(*names: str) -> Chart:
    """Return a chart with a lane for each name."""
    blocks = tuple(
        Block(lane=lane, start=lane, end=lane + 1.5, text="1.5 s", tooltip=name)
        for lane, name in enumerate(names)
    )
    groups = (
        Blocks(name="fit", ink="series1", blocks=blocks),
        Blocks(name=f"fit of {LONG}", ink="series1", blocks=blocks, style="hollow"),
        Blocks(name="fit, failed", ink="bad", blocks=blocks, style="failed"),
    )
    axis = Axis(kind="category", categories=names)
    return Chart(
        title="T", panels=(Panel(title="", x=Axis(kind="seconds"), y=axis, blocks=groups),)
    )


@pytest.mark.parametrize("width", [700, 1000, 1400])
@pytest.mark.parametrize(
    "chart",
    [lines(1.0, 2.0, others=4), lines(1e-30, NAN, 2e-30, name=LONG), bars("a", LONG), bars("é✓")],
)
def test_nothing_is_clipped(chart: Chart, width: int) -> None:
    """Every text, line and block lies inside the page, at any width."""
    picture = chart_picture(chart, width)
    for mark in picture.marks:
        if isinstance(mark, Text):
            wide = text_width(mark.text, mark.size, bold=mark.bold)
            left = mark.x - {"start": 0, "middle": wide / 2, "end": wide}[mark.anchor]
            assert left >= 0
            assert left + wide <= width + 0.5
            assert mark.size <= mark.y <= picture.height
        if isinstance(mark, Rectangle):
            assert 0 <= mark.x <= mark.x + mark.width <= width


@pytest.mark.parametrize("width", [320, 700, 1400])
@pytest.mark.parametrize("chart", [lines(1.0, 2.0, name=LONG, others=5), bars("a", LONG, "b")])
def test_no_text_lies_on_another(chart: Chart, width: int) -> None:
    """Titles, legend and labels keep apart."""
    boxes = []
    for mark in chart_picture(chart, width).marks:
        if isinstance(mark, Text):
            wide = text_width(mark.text, mark.size, bold=mark.bold)
            left = mark.x - {"start": 0, "middle": wide / 2, "end": wide}[mark.anchor]
            boxes.append((left, mark.y - mark.size * 0.75, left + wide, mark.y, mark.text))
    boxes = [box for box in boxes if box[4] not in ("1.5 s", "✕")]  # on blocks that overlap here
    clashes = [
        (one[4], other[4])
        for index, one in enumerate(boxes)
        for other in boxes[:index]
        if one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
    ]

    assert clashes == []


def test_a_gap_where_there_is_no_number() -> None:
    """NaN parts the line, and it and the infinities have a sign each."""
    picture = chart_picture(lines(1.0, 2.0, NAN, 3.0, 2.0, INFINITE, -INFINITE, 1.0))
    series = [mark for mark in picture.marks if isinstance(mark, Line) and mark.title == "loss"]
    signs = [mark.text for mark in picture.marks if isinstance(mark, Text)]
    titles = {mark.title for mark in picture.marks if isinstance(mark, Rectangle)}

    assert [len(line.points) for line in series[:2]] == [2, 2]
    assert any(isinstance(mark, Dot) for mark in picture.marks)
    assert {"✕", "▲", "▼"} <= set(signs)
    assert {"loss: NaN at 2", "loss: Infinity at 5", "loss: -Infinity at 6"} <= titles


def test_a_shortened_name_is_told_in_full() -> None:
    """A lane whose name is too long keeps all of it for a pointer that rests there."""
    picture = chart_picture(bars("a", LONG))

    assert LONG in {mark.title for mark in picture.marks if isinstance(mark, Rectangle)}


def test_several_flags_in_one_cell_stay_visible() -> None:
    """A cell of a table parts into as many blocks as it has flags, each with its sign."""
    flags = [Blocks(name=name, ink="warning",
                    blocks=(Block(lane=0, start=index / 3 - 0.5, end=(index + 1) / 3 - 0.5,
                                  text=name[0]),))
             for index, name in enumerate(("VANISHING", "DEAD", "NAN"))]  # fmt: skip
    across = Axis(kind="category", categories=("step 1",))
    down = Axis(kind="category", categories=("encoder",))
    panel = Panel(title="Health", x=across, y=down, blocks=tuple(flags))
    texts = [m.text for m in chart_picture(Chart(title="H", panels=(panel,))).marks
             if isinstance(m, Text)]  # fmt: skip

    assert {"V", "D", "N", "VANISHING", "DEAD", "NAN", "step 1", "encoder"} <= set(texts)


@pytest.mark.parametrize(
    "chart", [lines(1.0, name="<b>\x00&\x1b[2J]]>"), bars("<script>", "\ud800")]
)
def test_svg_is_well_formed(chart: Chart) -> None:
    """Whatever a name holds, the picture is XML without an element of its own."""
    tree = ElementTree.fromstring(Figure(chart).to_svg())
    names = {element.tag.partition("}")[2] for element in tree.iter()}

    assert names <= {"svg", "title", "desc", "style", "g", "path", "rect", "text", "circle"}


def test_an_empty_chart_says_so() -> None:
    """Without panels there is a sentence."""
    assert "nothing was recorded" in Figure(Chart(title="T", panels=())).to_svg()


def test_a_chart_says_in_words_what_is_drawn() -> None:
    """Lines and lanes are named for those who do not see them; an empty chart says so."""
    assert chart_picture(bars("scale", "head"), 900).description.startswith("fit, fit of ")
    assert chart_picture(bars("scale", "head"), 900).description.endswith("of scale, head")
    assert "loss. loss" in chart_picture(lines(1.0, 0.5), 900).description
    assert chart_picture(Chart(title="T", panels=()), 900).description == "nothing was recorded"
