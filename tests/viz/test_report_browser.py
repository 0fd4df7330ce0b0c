"""A report in a real browser: nothing is asked for, all is drawn, all can be reached."""

from pathlib import Path

import pytest

from tests.viz.audits_made import audited, chain, grouped
from tests.viz.browsing import HOSTILE, IN_A_BROWSER, WIDTHS, Browser, Opened
from tests.viz.flows_made import flown, hostile, judging, tuning
from tests.viz.reports_made import named, tracked

pytestmark = IN_A_BROWSER


@pytest.mark.parametrize("how", [{}, {"static": True}, {"plotly": True}])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_is_whole(
    how: dict[str, bool], width: int, browser: Browser, tmp_path: Path
) -> None:
    """No complaint, no request; every section, card and picture has a size; nothing sticks out."""
    opened = Opened(browser, tracked(tmp_path), tmp_path, width=width, **how)

    assert (opened.seen, opened.flat()) == ([], [])
    assert opened.width() <= width
    assert opened.page.locator("section").count() == 7


@pytest.mark.parametrize("how", [{}, {"plotly": True}])
@pytest.mark.parametrize("width", WIDTHS)
def test_health_is_whole(
    how: dict[str, bool], width: int, browser: Browser, tmp_path: Path
) -> None:
    """The sections of an audit have a size, stay on the page, and nothing complains."""
    measured = grouped(chain(12, shrinks=0.3, dead=3), 0.99, ("audio", "text"))
    opened = Opened(
        browser, audited(tmp_path, measured), tmp_path, width=width, waits="health", **how
    )

    assert opened.seen == []
    assert opened.width() <= width
    for name in ("health", "flow", "channels"):
        assert opened.page.locator(f"#{name} .card:visible svg:visible").count() > 0


@pytest.mark.parametrize("how", [{}, {"static": True}, {"plotly": True}])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_conversation_is_whole(
    how: dict[str, bool], width: int, browser: Browser, tmp_path: Path
) -> None:
    """A flow's page stays within its width with hostile texts, and a long text opens on a click."""
    opened = Opened(
        browser, flown(tmp_path, [*tuning(), *judging(), *hostile()]), tmp_path, width=width, **how
    )
    more = opened.page.locator("#conversation .more").first
    opened.page.locator("#conversation .more > summary").first.click()

    assert opened.seen == []
    assert opened.width() <= width
    assert "0399  the quick brown fox" in more.inner_text()


def test_a_conversation_on_paper(browser: Browser, tmp_path: Path) -> None:
    """What is folded on the screen is read in print."""
    page = Opened(browser, flown(tmp_path, judging()), tmp_path, static=True).page
    page.emulate_media(media="print")
    seen = page.locator("#conversation .more").first.evaluate(
        "element => element.lastChild.textContent.length && element.offsetHeight"
    )

    assert seen > 2000


def test_a_hostile_run_is_inert(browser: Browser, tmp_path: Path) -> None:
    """Names with markup open no dialog, ask for nothing, and the policy is never called upon."""
    opened = Opened(browser, named(tmp_path, HOSTILE), tmp_path, plotly=True)

    assert opened.seen == []
    assert HOSTILE in opened.page.locator("h1").inner_text()


def test_a_click_shows_the_numbers(browser: Browser, tmp_path: Path) -> None:
    """A node that is clicked is marked, and its numbers alone are open."""
    page = Opened(browser, tracked(tmp_path), tmp_path).page
    page.locator('.drawing g[data-node="center"]').click()
    numbers = page.locator("details.node[open]")

    assert numbers.count() == 1
    assert "weight" in numbers.inner_text()
    assert "Takes an offset away" in numbers.inner_text()
    assert page.locator('[aria-selected="true"]').get_attribute("data-node") == "center"


def test_a_node_from_the_list(browser: Browser, tmp_path: Path) -> None:
    """Opening a node in the list marks it in the picture."""
    page = Opened(browser, tracked(tmp_path), tmp_path).page
    page.locator('details.node[data-node="load"] summary').click()
    page.wait_for_selector('g[data-node="load"][aria-selected="true"]')

    assert page.locator('[aria-selected="true"]').count() == 1


def test_keys_choose_a_node(browser: Browser, tmp_path: Path) -> None:
    """One stop of Tab leads into the picture; arrows, Home and Escape do what they do in a list."""
    page = Opened(browser, tracked(tmp_path), tmp_path).page
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "option":
            break
    chosen = []
    for key in ("Enter", "ArrowRight", "ArrowRight", "Home", "End", "Escape"):
        page.keyboard.press(key)
        chosen.append(
            page.evaluate("document.querySelector('details.node[open]')?.dataset.node ?? null")
        )

    assert chosen == ["load", "center", "center", "load", "center", None]


def test_focus_is_seen(browser: Browser, tmp_path: Path) -> None:
    """Each stop of the tab key has an outline, on itself or on its label."""
    page = Opened(browser, tracked(tmp_path), tmp_path).page
    outlines = []
    for _ in range(14):
        page.keyboard.press("Tab")
        outlines.append(
            page.evaluate(
                """() => { const one = document.activeElement;
                const shown = one.matches(".theme input") ? one.nextElementSibling : one;
                return getComputedStyle(shown).outlineStyle }"""
            )
        )

    assert set(outlines) == {"solid"}


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_themes(static: bool, scheme: str, browser: Browser, tmp_path: Path) -> None:
    """The page takes the machine's theme; the reader's choice wins, in the pictures too."""
    opened = Opened(browser, tracked(tmp_path), tmp_path, scheme=scheme, static=static)
    seen = opened.inks_by_theme(("body", "backgroundColor"), (".drawing text", "fill"))

    assert seen["auto"] == seen[scheme]
    assert not set(seen["light"]) & set(seen["dark"])


def test_print(browser: Browser, tmp_path: Path) -> None:
    """Paper is white whatever was chosen, has no bar, and shows the numbers of every node."""
    opened = Opened(browser, tracked(tmp_path), tmp_path, scheme="dark", static=True)
    opened.page.locator("label[for=theme-dark]").click()
    opened.page.emulate_media(media="print")

    assert opened.ink("body", "backgroundColor") == "rgb(255, 255, 255)"
    assert opened.ink(".drawing text", "fill") == "rgb(27, 35, 48)"
    assert not opened.page.locator(".bar").is_visible()
    assert opened.page.locator(".doc", has_text="Takes an offset away").is_visible()
    assert opened.page.pdf().startswith(b"%PDF")


def test_the_accessibility_tree(browser: Browser, tmp_path: Path) -> None:
    """Landmarks, headings, pictures and nodes have roles and names."""
    tree = Opened(browser, tracked(tmp_path), tmp_path).page.locator("body").aria_snapshot()
    wanted = [
        "- banner:",
        '- navigation "Sections":',
        "- main:",
        "- contentinfo:",
        '- group "Colours":',
        '- radio "Dark"',
        '- heading "first try" [level=1]',
        '- region "first try":',
        '- region "Graph 2 nodes":',
        '- heading "Metrics 2 metrics" [level=2]',
        'listbox "graph',
        '- option "load',
        '- option "center',
        '- img "loss',
        '- img "Timeline of',
        '- region "Numbers of the nodes":',
        '- rowheader "validation_loss"',
    ]

    assert [line for line in wanted if line not in tree] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_plotly_draws(scheme: str, browser: Browser, tmp_path: Path) -> None:
    """Without a network both figures come from the Plotly in the file, in place of ours."""
    opened = Opened(browser, tracked(tmp_path), tmp_path, scheme=scheme, plotly=True)

    assert opened.page.locator(".plotly svg.main-svg").first.is_visible()
    assert opened.page.locator(".plotly.js-plotly-plot").count() == 2
    assert opened.page.locator(".replaced").count() == 2
    assert opened.seen == []


def test_a_reader_who_wants_no_motion(browser: Browser, tmp_path: Path) -> None:
    """Nothing moves for those who ask for that."""
    opened = Opened(browser, tracked(tmp_path), tmp_path)
    opened.page.emulate_media(reduced_motion="reduce")

    assert opened.ink("html", "scrollBehavior") == "auto"


def test_large_text_on_a_telephone(browser: Browser, tmp_path: Path) -> None:
    """No text is under 8 pixels at 380: curves and timeline are drawn for that width."""
    assert min(Opened(browser, tracked(tmp_path), tmp_path, width=380).text_sizes()) >= 8
