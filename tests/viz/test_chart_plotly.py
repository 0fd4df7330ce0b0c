"""Charts by Plotly: what it is told is plain, whole and inert."""

import json

import pytest

from soma.viz import Axis, Block, Blocks, Cells, Chart, Figure, Panel, Remark, Series
from soma.viz._chart_plotly import chart_json
from soma.viz._plotly_traces import inert

HOSTILE = "<a href='javascript:x'>y</a> $e=mc^2$ &lt; %{x}"


def chart() -> Chart:
    """Return a chart with a panel of lines and one of blocks, with hostile names."""
    line = Series(name=HOSTILE, x=(0.0, 1.0, 2.0), y=(1.0, float("nan"), 1e308), ink="series1")
    block = Block(lane=0, start=0.0, end=90.0, text=HOSTILE, tooltip=f"{HOSTILE}\n{HOSTILE}")
    group = Blocks(name=HOSTILE, ink="bad", blocks=(block,), style="hollow")
    lanes = Axis(kind="category", categories=(HOSTILE,))
    steps = Axis(title=HOSTILE, kind="integer")
    return Chart(
        title=HOSTILE,
        note=HOSTILE,
        panels=(
            Panel(title=HOSTILE, x=steps, y=Axis(), series=(line, line)),
            Panel(title=HOSTILE, x=Axis(kind="seconds"), y=lanes, blocks=(group,), note=HOSTILE),
        ),
    )


def texts(value: object) -> list[str]:
    """Return every text in a figure."""
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else []


def test_names_are_inert() -> None:
    """No name becomes a tag, an entity or a formula."""
    found = texts(chart_json(chart()))

    assert not [text for text in found if "<a" in text or "$" in text or "&lt; %" in text]
    assert inert("<b> $x$ &amp;") == "&lt;b&gt; &#36;x&#36; &amp;amp;"


def test_it_is_strict_json() -> None:
    """No NaN or infinity is in it: browsers refuse them."""
    json.dumps(chart_json(chart()), allow_nan=False)


def test_the_page_shines_through() -> None:
    """Without template and with a clear ground a figure fits a light page and a dark one."""
    layout = chart_json(chart())["layout"]

    assert layout["template"] == {}
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"


def test_steps_stay_whole() -> None:
    """A step axis has integer ticks."""
    axis = chart_json(chart())["layout"]["xaxis"]

    assert (axis["dtick"], axis["tickformat"]) == (1, ",d")


def test_times_are_counted_in_their_unit() -> None:
    """Ninety seconds are drawn as such, and the axis names the unit."""
    figure = chart_json(chart())
    bars = figure["data"][-1]

    assert (bars["base"], bars["x"]) == ([0.0], [90.0])
    assert figure["layout"]["xaxis2"]["title"]["text"] == " (s)"


def test_plotly_accepts_it() -> None:
    """It is a valid figure, and changes no default of the user's."""
    io = pytest.importorskip("plotly.io")
    before = io.templates.default, io.renderers.default
    figure = Figure(chart()).to_plotly()

    assert len(figure.data) == 5  # two lines, each with its sign, and the blocks
    assert (io.templates.default, io.renderers.default) == before


def table() -> Chart:
    """Return a chart with a table and with remarks, all of hostile names."""
    axis = Axis(kind="category", categories=(HOSTILE, "b", "c"))
    cells = Cells(rows=((1.0, -0.5, float("nan")),) * 3, parts=(1,), empty=HOSTILE)
    panel = Panel(title="t", x=axis, y=axis, cells=cells, remarks=(Remark(text=HOSTILE),) * 3)
    return Chart(title="T", panels=(panel,))


def test_a_table_is_a_heat_map() -> None:
    """Numbers as they are, none where there is none, rows downwards, and lines between parts."""
    figure = chart_json(table())
    (trace,) = figure["data"]

    assert trace["z"] == [[1.0, -0.5, None]] * 3
    assert (trace["zmin"], trace["zmax"]) == (-1, 1)
    assert figure["layout"]["yaxis"]["range"] == [2.5, -0.5]
    assert figure["layout"]["xaxis"]["range"] == [-0.5, 2.5]
    assert len(figure["layout"]["shapes"]) == 2


def test_names_in_a_table_are_inert() -> None:
    """No name of a row, of a cell or of a remark becomes a tag."""
    found = texts(chart_json(table()))

    assert not [text for text in found if "<a" in text or "$" in text]
    json.dumps(chart_json(table()), allow_nan=False)


def test_words_beside_a_block() -> None:
    """What has no room on a block stands beside it."""
    block = Block(lane=0, start=9.9, end=10.0, text="DEAD")
    panel = Panel(
        title="",
        x=Axis(kind="integer", ends=(0.0, 10.0)),
        y=Axis(kind="category", categories=("a",)),
        blocks=(Blocks(name="b", ink="bad", blocks=(block,)),),
    )
    bars, words = chart_json(Chart(title="T", panels=(panel,)))["data"]

    assert bars["text"] == [""]
    assert (words["text"], words["textposition"]) == ([" DEAD "], ["middle left"])
