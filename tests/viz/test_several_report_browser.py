"""A report of several runs in a real browser: nothing is asked for, all is drawn, it sorts."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import soma
from soma.viz import RunList
from tests.viz.reports_made import named
from tests.viz.studies_made import study

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
]

Browser, Page = sync_api.Browser, sync_api.Page
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give a browser without a window."""
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Opened:
    """A page of a report, with what it asked for and complained of."""

    def __init__(
        self, browser: Browser, runs: RunList, root: Path, width: int, scheme: str, **how: bool
    ) -> None:
        path = root / "report.html"
        path.write_text(runs.to_html(**how), "utf-8")
        self.seen: list[str] = []
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        self.page: Page = context.new_page()
        self.page.on("request", lambda request: self._asked(request.url, path.as_uri()))
        self.page.on("console", lambda message: self.seen.append(message.text))
        self.page.on("pageerror", lambda error: self.seen.append(str(error)))
        self.page.on("dialog", lambda dialog: self.seen.append(dialog.message))
        self.page.goto(path.as_uri())
        if how.get("plotly") and width >= 700:
            self.page.wait_for_selector("[data-figure=metric-0].replaced", state="attached")

    def _asked(self, url: str, own: str) -> None:
        if url != own and not url.startswith("data:"):
            self.seen.append(url)

    def ink(self, selector: str, name: str) -> str:
        """Return a colour as it is drawn."""
        found: str = self.page.locator(selector).first.evaluate(
            f"element => getComputedStyle(element).{name}"
        )
        return found


@pytest.mark.parametrize("how", [{}, {"static": True}, {"plotly": True}])
@pytest.mark.parametrize("width", [380, 800, 1400])
@pytest.mark.parametrize("count", [2, 40])
def test_a_page_is_whole(
    count: int, how: dict[str, bool], width: int, browser: Browser, tmp_path: Path
) -> None:
    """No complaint, no request; every section, card and picture has a size; nothing sticks out."""
    study(tmp_path, count)
    opened = Opened(browser, soma.runs(tmp_path), tmp_path, width, "light", **how)
    flat = opened.page.evaluate(
        """() => [...document.querySelectorAll("section, .card, svg")]
        .filter((one) => one.checkVisibility())
        .filter((one) => !one.getBoundingClientRect().height || !one.getBoundingClientRect().width)
        .map((one) => one.outerHTML.slice(0, 80))"""
    )
    wide = opened.page.evaluate("document.documentElement.scrollWidth")

    assert (opened.seen, flat) == ([], [])
    assert wide <= width
    assert opened.page.locator("#metrics .card:visible svg:visible").count() >= 3


def test_hostile_runs_are_inert(browser: Browser, tmp_path: Path) -> None:
    """Names with markup open no dialog, ask for nothing, and the policy is never called upon."""
    runs = RunList([named(tmp_path, HOSTILE), named(tmp_path, HOSTILE)])
    opened = Opened(browser, runs, tmp_path, 1400, "light", plotly=True)

    assert opened.seen == []
    assert HOSTILE in opened.page.locator("h1").inner_text()


def test_the_table_sorts(browser: Browser, tmp_path: Path) -> None:
    """A pressed head sorts rising, then falling; what has no value stands last; it is announced."""
    study(tmp_path, 9)
    soma.track_run("bare", kind="trial", root=tmp_path).__enter__().__exit__(None, None, None)
    page = Opened(browser, soma.runs(tmp_path), tmp_path, 1400, "light").page
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
    opened = Opened(browser, soma.runs(tmp_path), tmp_path, width, scheme)
    places = [
        ("body", "backgroundColor"),
        (".swatch", "backgroundColor"),
        ("#metrics text", "fill"),
    ]
    seen = {"auto": [opened.ink(*place) for place in places]}
    for choice in ("light", "dark"):
        opened.page.locator(f"label[for=theme-{choice}]").click()
        seen[choice] = [opened.ink(*place) for place in places]

    assert opened.seen == []
    assert seen["auto"] == seen[scheme]
    assert not set(seen["light"]) & set(seen["dark"])


def test_large_text_on_a_telephone(browser: Browser, tmp_path: Path) -> None:
    """No text of a figure is under 8 pixels at 380."""
    study(tmp_path, 8)
    page = Opened(browser, soma.runs(tmp_path), tmp_path, 380, "light").page
    heights = page.evaluate(
        """() => [...document.querySelectorAll(".figure svg text")]
        .filter((one) => one.checkVisibility())
        .map((one) => parseFloat(one.getAttribute("font-size")) * one.getCTM().a)"""
    )

    assert min(heights) >= 8
