"""What a report says, word for word."""

import html
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from soma.draw import cells
from soma.health import AuditReport, Measurements, judge
from tests.health.hand import flags, layers, measured, snapshots, unit
from tests.health.stories import RELU, STORIES

TEXTS = dict(
    part.split("\n", 1)
    for part in (Path(__file__).parent / "stories.txt").read_text("utf-8").split("=== ")[1:]
)
HOSTILE = "net/<b>\x1b[2J\n\u202e" + "x" * 300


def report(found: Measurements) -> AuditReport:
    """Return the report on a run."""
    return AuditReport(judge(found))


@pytest.mark.parametrize("story", STORIES, ids=lambda one: one.__name__)
def test_the_whole_text(story: Callable[[], Measurements]) -> None:
    """A finding reads as `stories.txt` has it, to the letter."""
    assert report(story()).pretty() == TEXTS[story.__name__].rstrip("\n")


@pytest.mark.parametrize("story", STORIES, ids=lambda one: one.__name__)
def test_no_line_is_wider_than_100_columns(story: Callable[[], Measurements]) -> None:
    """Reports fit a terminal."""
    assert max(map(cells, report(story()).pretty().splitlines())) <= 100


def hostile() -> Measurements:
    """A run whose names try to break out."""
    units = [*layers()[:1], unit(HOSTILE, 1, class_name="<script>" + "C" * 200, source="\x07m.py"),
             *RELU[3:]]  # fmt: skip
    return measured({HOSTILE: {"out_grad_norm": 1e-9}}, units=units)


def test_hostile_names_are_printable() -> None:
    """No name moves a cursor, ends a line or widens it."""
    text = report(hostile()).pretty()

    assert all(line.isprintable() for line in text.splitlines())
    assert max(map(cells, text.splitlines())) <= 100
    assert "VANISHING" in text


class Tags(HTMLParser):
    """Collects the names of the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Take a name."""
        self.names.add(tag)


def test_a_notebook_shows_a_table_and_no_name_is_markup() -> None:
    """Only our own elements come out, whatever the names hold."""
    tags = Tags()
    tags.feed(report(hostile())._repr_html_())

    assert tags.names == {"div", "pre", "table", "thead", "tbody", "tr", "th", "td"}


def test_a_notebook_tells_what_to_do() -> None:
    """Above the table stands the text that `print` gives, with cause and help."""
    found = report(STORIES[0]())
    page = found._repr_html_()

    assert "= help: " in str(found)
    assert html.unescape(page.split("<pre>")[1].split("</pre>")[0]) == str(found)


def test_a_long_report_does_not_fill_a_notebook() -> None:
    """After 200 rows the table says how many more there are."""
    units = [unit(f"net/l{at}", at) for at in range(250)]

    assert "50 more modules are in `filters`" in report(measured(units=units))._repr_html_()


def test_printing_a_report_prints_its_text() -> None:
    """`print(report)` is `print(report.pretty())`, and its repr is one line."""
    found = report(STORIES[0]())

    assert str(found) == found.pretty()
    assert repr(found) == "<AuditReport: health of 4 modules over 8 steps: 2 with findings>"


def test_rows_by_id() -> None:
    """A row has flags, status, steps and metrics of a module."""
    row = report(STORIES[0]()).by_id()["net/a"]

    assert (row.flags, row.status, row.n_steps) == (["VANISHING"], "measured", 8)
    assert row.metrics["out_grad_norm"] == 1e-5


def test_healthy_means_measured_and_without_fault() -> None:
    """No data is not health, a fault is not health, one unobserved part does not spoil it."""
    hidden = [*layers(), unit("net/d", 4, unobserved="compiled")]

    assert report(measured()).is_healthy()
    assert report(measured(units=hidden)).is_healthy()
    assert not report(measured(steps=[])).is_healthy()
    assert not report(STORIES[0]()).is_healthy()


def test_a_node_that_nobody_could_look_into_is_not_healthy() -> None:
    """Each node needs something that was measured."""
    hidden = [replace(one, unobserved="compiled") for one in layers()]

    assert not report(measured(units=hidden)).is_healthy()


def test_a_frame_has_a_row_for_each_module() -> None:
    """Flags as text, metrics as columns."""
    frame = report(STORIES[0]()).dataframe()

    assert list(frame["filter_id"]) == ["net", "net/a", "net/b", "net/c"]
    assert list(frame["flags"]) == ["", "VANISHING", "VANISHING", ""]
    assert frame["out_grad_norm"][1] == 1e-5


def test_natural_zeros_leave_no_trace() -> None:
    """A run with ReLU zeros and one idle unit that fires has no finding."""
    found = snapshots(measured(units=RELU), "net/r", largest=(1e-3, 2, 2, 2), input_rms=1.0)

    assert flags(found) == {}


def test_stories_have_levels() -> None:
    """A fault that no training survives is an error, others warn, the unseen is a note."""
    levels = {story.__name__: [one.level for one in report(story()).stories()] for story in STORIES}

    assert levels["dead_layer"] == ["error"]
    assert levels["staircase"] == ["warning"]
    assert levels["compiled"] == ["note"]
    assert levels["well"] == []
