"""Charts as static pictures: nothing is clipped, nothing is lost, nothing runs."""

from xml.etree import ElementTree

import pytest

from soma.draw import Dot, Line, Rectangle, Text, text_width
from soma.viz import Axis, Block, Blocks, Cells, Chart, Figure, Panel, Remark, Series
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


def cells(*values: float, parts: tuple[int, ...] = ()) -> Chart:
    """Return a chart with a table whose rows all hold `values`."""
    axis = Axis(kind="category", categories=tuple(f"{LONG}{n}†" for n in range(len(values))))
    table = Cells(rows=(values,) * len(values), parts=parts, empty=LONG)
    return Chart(title="T", panels=(Panel(title="t", x=axis, y=axis, cells=table),))


def remarks(*texts: str) -> Chart:
    """Return a chart with a lane for each remark, and a dot in it."""
    lanes = tuple(map(float, range(len(texts))))
    panel = Panel(
        title="",
        x=Axis(kind="log"),
        y=Axis(kind="category", categories=tuple(f"lane {lane}" for lane in lanes)),
        series=(Series(name="s", x=(1e-9,) * len(texts), y=lanes, ink="series1", joined=False),),
        remarks=tuple(Remark(text=text, ink="warning") for text in texts),
    )
    return Chart(title="T", panels=(panel,))


@pytest.mark.parametrize("width", [700, 1000, 1400])
@pytest.mark.parametrize(
    "chart",
    [
        *(lines(1.0, 2.0, others=4), lines(1e-30, NAN, 2e-30, name=LONG), bars("a", LONG)),
        *(bars("é✓"), cells(*[0.5] * 64), cells(0.5, NAN, -1.0), remarks("a", LONG, f"{LONG} b")),
    ],
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
@pytest.mark.parametrize(
    "chart",
    [
        *(lines(1.0, 2.0, name=LONG, others=5), bars("a", LONG, "b"), cells(*[0.5] * 64)),
        *(cells(0.5, NAN), remarks("a b " * 30, "a b " * 30, LONG)),
    ],
)
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


def test_cells_of_a_table() -> None:
    """Each number has a strength, the two signs a colour each, what is none a third."""
    chart = cells(1.0, -0.5, NAN)
    marks = chart_picture(chart, 900).marks
    drawn = [mark for mark in marks if isinstance(mark, Rectangle) and "†: " in (mark.title or "")]
    strengths = {(mark.fill, mark.opacity) for mark in drawn}

    assert len(drawn) == 9
    assert strengths == {("series1", 1.0), ("series2", 0.5), ("grid", 1.0)}
    assert any(": -0.50" in (mark.title or "") for mark in drawn)


def test_parts_of_a_table() -> None:
    """A line parts the rows, and another the columns."""
    whole = chart_picture(cells(1.0, 0.5, 0.5), 900).marks
    parted = chart_picture(cells(1.0, 0.5, 0.5, parts=(1,)), 900).marks

    assert len(parted) == len(whole) + 2


def test_a_remark_too_long_is_told_in_full() -> None:
    """It takes two lines, and all of it where a pointer rests."""
    marks = chart_picture(remarks(f"{LONG} {LONG}"), 700).marks

    assert f"{LONG} {LONG}" in {mark.title for mark in marks if isinstance(mark, Rectangle)}


@pytest.mark.parametrize(
    ("start", "said", "anchor"),
    [
        (0.0, "DEAD · since 0", "start"),
        (9.8, "DEAD · since 0", "end"),
        (9.0, "DEAD · since 0", "end"),
    ],
)
def test_words_of_a_short_block(start: float, said: str, anchor: str) -> None:
    """They stand before it where the plot ends behind it."""
    block = Block(lane=0, start=start, end=10.0, text=said)
    panel = Panel(
        title="",
        x=Axis(kind="integer", ends=(0.0, 10.0)),
        y=Axis(kind="category", categories=("a",)),
        blocks=(Blocks(name="b", ink="bad", blocks=(block,)),),
    )
    marks = chart_picture(Chart(title="T", panels=(panel,)), 700).marks
    (word,) = [mark for mark in marks if isinstance(mark, Text) and mark.text == said]

    assert word.anchor == anchor


def test_words_that_do_not_fit_lose_their_end() -> None:
    """What stands after the last dot is left out first."""
    block = Block(lane=0, start=0.0, end=10.0, text=f"DEAD · in post · {LONG * 3}")
    panel = Panel(
        title="",
        x=Axis(kind="integer"),
        y=Axis(kind="category", categories=("a",)),
        blocks=(Blocks(name="b", ink="bad", blocks=(block,)),),
    )
    marks = chart_picture(Chart(title="T", panels=(panel,)), 700).marks

    assert "DEAD · in post" in {mark.text for mark in marks if isinstance(mark, Text)}


def test_zero_on_a_log_scale() -> None:
    """It is a gap with a sign at the lower edge, and not the end of the scale."""
    line = Series(name="g", x=(0.0, 1.0, 2.0), y=(1e-3, 0.0, 1e-2), ink="series1")
    panel = Panel(title="g", x=Axis(kind="integer"), y=Axis(kind="log"), series=(line,))
    marks = chart_picture(Chart(title="T", panels=(panel,))).marks

    assert "g: 0 at 1" in {mark.title for mark in marks if isinstance(mark, Rectangle)}
    assert "0.001" in {mark.text for mark in marks if isinstance(mark, Text)}
