"""A report of several runs in a real browser: nothing is asked for, all is drawn, it sorts."""

from pathlib import Path

import pytest

import soma
from soma.viz import RunList
from tests.viz.browsing import HOSTILE, IN_A_BROWSER, WIDTHS, Browser, Opened
from tests.viz.reports_made import named
from tests.viz.studies_made import study

pytestmark = IN_A_BROWSER


@pytest.mark.parametrize("how", [{}, {"static": True}, {"plotly": True}])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [2, 40])
def test_a_page_is_whole(
    count: int, how: dict[str, bool], width: int, browser: Browser, tmp_path: Path
) -> None:
    """No complaint, no request; every section, card and picture has a size; nothing sticks out."""
    study(tmp_path, count)
    opened = Opened(browser, soma.runs(tmp_path), tmp_path, width=width, waits="metric-0", **how)

    assert (opened.seen, opened.flat()) == ([], [])
    assert opened.width() <= width
    assert opened.page.locator("#metrics .card:visible svg:visible").count() >= 3


def test_hostile_runs_are_inert(browser: Browser, tmp_path: Path) -> None:
    """Names with markup open no dialog, ask for nothing, and the policy is never called upon."""
    runs = RunList([named(tmp_path, HOSTILE), named(tmp_path, HOSTILE)])
    opened = Opened(browser, runs, tmp_path, waits="metric-0", plotly=True)

    assert opened.seen == []
    assert HOSTILE in opened.page.locator("h1").inner_text()


def test_the_table_sorts(browser: Browser, tmp_path: Path) -> None:
    """A pressed head sorts rising, then falling; what has no value stands last; it is announced."""
    study(tmp_path, 9)
    soma.track_run("bare", kind="trial", root=tmp_path).__enter__().__exit__(None, None, None)
    page = Opened(browser, soma.runs(tmp_path), tmp_path).page
    head = page.get_by_role("button", name="dense.width")
    place = [one.inner_text() for one in page.locator(".sortable thead th").all()].index(
        "dense.width"
    )
    for falls, ends in ((False, ["8", ""]), (True, ["64", ""])):
        head.press("Enter")
        shown = [row.locator("th, td").nth(place).inner_text()
                 for row in page.locator(".sortable tbody tr").all()]  # fmt: skip
        numbers = [int(text) for text in shown[:-1]]

        assert [shown[0], shown[-1]] == ends
        assert numbers == sorted(numbers, reverse=falls)
    assert page.locator("[aria-sort=descending]").count() == 1
    assert page.locator("#said").inner_text() == "Sorted by dense.width, falling."


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1400])
def test_both_themes(scheme: str, width: int, browser: Browser, tmp_path: Path) -> None:
    """The page takes the machine's theme; the reader's choice wins, in the pictures too."""
    study(tmp_path, 3)
    opened = Opened(browser, soma.runs(tmp_path), tmp_path, width=width, scheme=scheme)
    seen = opened.inks_by_theme(
        ("body", "backgroundColor"), (".swatch", "backgroundColor"), ("#metrics text", "fill")
    )

    assert opened.seen == []
    assert seen["auto"] == seen[scheme]
    assert not set(seen["light"]) & set(seen["dark"])


def test_large_text_on_a_telephone(browser: Browser, tmp_path: Path) -> None:
    """No text of a figure is under 8 pixels at 380."""
    study(tmp_path, 8)
    opened = Opened(browser, soma.runs(tmp_path), tmp_path, width=380)

    assert min(opened.text_sizes()) >= 8
