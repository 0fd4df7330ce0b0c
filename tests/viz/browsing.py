"""What the tests in a real browser have in common: a page that is opened, and what it did."""

from pathlib import Path

import pytest

from soma import RunView
from soma.viz import RunList

sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
IN_A_BROWSER = [pytest.mark.slow, pytest.mark.process]

Browser, Page = sync_api.Browser, sync_api.Page
HOSTILE = "</script><img src=x onerror=alert(1)>"
WIDTHS = [380, 800, 1400]


class Opened:
    """A page of a report, with what it asked for beside itself, and complained of, in `seen`.

    Args:
        waits: the figure that Plotly has to draw first.
    """

    def __init__(
        self,
        browser: Browser,
        shown: RunView | RunList,
        folder: Path,
        *,
        width: int = 1400,
        scheme: str = "light",
        waits: str = "timeline",
        **how: bool,
    ) -> None:
        path = folder / "report.html"
        path.write_text(shown.to_html(**how), "utf-8")
        self.address = path.as_uri()
        self.seen: list[str] = []
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        self.page: Page = context.new_page()
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("console", lambda message: self.seen.append(message.text))
        self.page.on("pageerror", lambda error: self.seen.append(str(error)))
        self.page.on("dialog", lambda dialog: self.seen.append(dialog.message))
        self.page.goto(self.address)
        if how.get("plotly") and width >= 700:
            self.page.wait_for_selector(f"[data-figure={waits}].replaced", state="attached")

    def _asked(self, url: str) -> None:
        if url != self.address and not url.startswith("data:"):
            self.seen.append(url)

    def ink(self, selector: str, name: str) -> str:
        """Return a colour as it is drawn."""
        found: str = self.page.locator(selector).first.evaluate(
            f"element => getComputedStyle(element).{name}"
        )
        return found

    def inks_by_theme(self, *places: tuple[str, str]) -> dict[str, list[str]]:
        """Return colours as the machine has them, and as a reader chooses light and dark."""
        found = {"auto": [self.ink(*place) for place in places]}
        for choice in ("light", "dark"):
            self.page.locator(f"label[for=theme-{choice}]").click()
            found[choice] = [self.ink(*place) for place in places]
        return found

    def width(self) -> int:
        """Return how wide the page is with all that sticks out."""
        found: int = self.page.evaluate("document.documentElement.scrollWidth")
        return found

    def flat(self) -> list[str]:
        """Return the sections, cards and pictures that have no size."""
        found: list[str] = self.page.evaluate(
            """() => [...document.querySelectorAll("section, .card, svg")]
            .filter((one) => one.checkVisibility())
            .filter((one) => !one.getBoundingClientRect().height
                             || !one.getBoundingClientRect().width)
            .map((one) => one.outerHTML.slice(0, 80))"""
        )
        return found

    def text_sizes(self) -> list[float]:
        """Return how large the texts of the figures are, in pixels."""
        found: list[float] = self.page.evaluate(
            """() => [...document.querySelectorAll(".figure svg text")]
            .filter((one) => one.checkVisibility())
            .map((one) => parseFloat(one.getAttribute("font-size")) * one.getCTM().a)"""
        )
        return found
