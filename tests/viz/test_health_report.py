"""What a report says of health: sections, data, and that it stays small."""

import json
from pathlib import Path

import pytest

from soma import RunView
from tests.viz.audits_made import HOSTILE, audited, chain, grouped
from tests.viz.reports_made import Page, tracked
from tests.viz.test_report import data_of

EVERY_WAY = [{}, {"static": True}, {"plotly": True}]


@pytest.fixture
def sick(tmp_path: Path) -> RunView:
    """Give a run with findings of three kinds."""
    measured = grouped(chain(12, shrinks=0.3, dead=3), 0.99, ("audio", "text"))
    return audited(tmp_path, measured)


def sections(page: Page) -> list[str | None]:
    """Return the ids of the sections of a page."""
    return [kept["id"] for tag, kept in page.elements if tag == "section"]


@pytest.mark.parametrize("options", EVERY_WAY)
def test_the_sections(options: dict[str, bool], sick: RunView) -> None:
    """Health comes right after the graph, then insides, flow and channels."""
    page = Page(sick.to_html(**options))

    assert sections(page) == [
        *("overview", "graph", "health", "inside", "flow", "channels", "diagnostics"),
        "environment",
    ]


@pytest.mark.parametrize(
    "said",
    [
        "warning[VANISHING]",
        "= help:",
        "warning[LEAKAGE]",
        "health of 13 modules over 12 steps: 6 with findings",
        "▲ DEAD_CHANNELS(3)",
        "Module flow of net",
        "Channels of net/layers.0",
        "health findings",
    ],
)
def test_what_a_reader_finds(said: str, sick: RunView) -> None:
    """The page tells the findings as they are printed, without a script too."""
    text = Page(sick.to_html(static=True)).text

    assert "".join(said.split()) in "".join(text.split())


def test_the_worst_comes_first(sick: RunView) -> None:
    """Findings stand in the order of the verdict, each story once."""
    text = Page(sick.to_html()).text
    places = [text.index(f"[{one.code}]") for one in sick.verdict().stories()]

    assert places == sorted(places)
    assert len(places) == 3


def test_a_healthy_run(tmp_path: Path) -> None:
    """It says so, and has a row for each module."""
    text = Page(audited(tmp_path, chain(3)).to_html()).text

    assert "health of 4 modules over 12 steps: no findings" in text
    assert "net/layers.2" in text


def test_how_it_was_measured(tmp_path: Path) -> None:
    """What was measured seldom, and what the audit noted, is said."""
    measured = chain(3)
    measured.every, measured.notes = 7, ["the loss was never seen"]
    text = Page(audited(tmp_path, measured).to_html()).text

    assert "one in 7 was measured whole" in text
    assert "the loss was never seen" in text


def test_a_run_without_audit(tmp_path: Path) -> None:
    """It has none of these sections, and no verdict in its data."""
    text = tracked(tmp_path).to_html()

    assert not {"health", "flow", "channels"} & set(sections(Page(text)))
    assert data_of(text)["audit"] is None


def test_the_data(sick: RunView) -> None:
    """A program reads verdict and medians out of the page."""
    audit = data_of(sick.to_html())["audit"]

    assert (audit["steps"], audit["healthy"], audit["measured_whole"]) == (12, False, 12)
    assert [one["flag"] for one in audit["findings"]][-1] == "DEAD_CHANNELS(3)"
    assert audit["modules"][0]["metrics"]["update_ratio"] == 1e-3


def test_a_large_audit_is_small(tmp_path: Path) -> None:
    """Of 300 modules over 200 steps the page tells the worst, says so, and has less than 1 MB."""
    measured = chain(300, shrinks=0.98, steps=200)
    measured.correlation["net/layers.0"] = [[(a * b % 21 - 10) / 10 for a in range(64)]
                                            for b in range(64)]  # fmt: skip
    measured.correlation_channels["net/layers.0"] = [*range(64)]
    text = audited(tmp_path, measured).to_html()

    assert len(text.encode()) < 1_000_000
    assert "200 of 301 audited modules are listed." in text
    assert len(data_of(text)["audit"]["modules"]) == 200


@pytest.mark.parametrize("options", EVERY_WAY)
def test_names_are_inert(options: dict[str, bool], tmp_path: Path) -> None:
    """A module, a group or a run whose name is markup adds no element to the page."""
    name = HOSTILE.replace("/", "")
    measured = grouped(chain(3, node=name, dead=1), 0.99, (HOSTILE, name))
    page = Page(audited(tmp_path, measured, HOSTILE).to_html(**options))

    assert not [kept for _, kept in page.elements if "onerror" in kept or kept.get("src")]
    assert len([tag for tag, _ in page.elements if tag == "script"]) in (0, 2, 5)


def test_figures_to_zoom_into(sick: RunView) -> None:
    """Plotly gets each figure of health, strict JSON in spite of NaN."""
    page = sick.to_html(plotly=True)
    figures = json.loads(Page(page).held["soma-figures"])

    assert list(figures) == ["health", "flow-0", "channels-0", "evolution-0"]
    assert figures["channels-0"]["data"][0]["type"] == "heatmap"
