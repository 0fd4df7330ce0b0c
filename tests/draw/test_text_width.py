"""How wide text is: never less than in a browser, so that no label is cut."""

import unicodedata

import pytest

from soma.draw import fitted, text_width

WORDS = (
    "StandardScaler · trainable",
    "WWWMMM@@@%%%",
    "iiilll...|||",
    "8.2k θ · 96\xd732 → 1.5 s",
    "● from cache ◐ ▲ VANISHING ✕ failed ○ ■ ✂ detach",
    "Grün façade naïve Æther ŒUVRE",
    "Ещё жёлтый ЩУКА",
    "\u0645\u0631\u062d\u0628\u0627",
    "\u65e5\u672c\u8a9e",
    "e\u0301te\u0301 \U0001f600",
)


def test_width_grows_with_size_and_weight() -> None:
    """Twice the size is twice as wide, and bold is wider."""
    assert text_width("soma", 24) == 2 * text_width("soma", 12)
    assert text_width("soma", 12, bold=True) > text_width("soma", 12)


def test_accents_and_wide_signs() -> None:
    """An accent takes no room, a Chinese sign that of two letters, a whole phrase its own."""
    assert text_width("e\u0301", 10) == text_width("e", 10)
    assert text_width("\u65e5", 10) > 1.5 * text_width("n", 10)
    assert text_width("\ufdfa", 10) > 10 * text_width("n", 10)


@pytest.mark.parametrize("text", [*WORDS, "x" * 300, "\u65e5" * 90, "e\u0301" * 90])
@pytest.mark.parametrize("most", [20, 90, 200])
def test_what_is_fitted_fits(text: str, most: float) -> None:
    """A shortened text is never wider than asked, and begins as the whole does."""
    shown = fitted(text, 12, most, bold=True)

    assert text_width(shown, 12, bold=True) <= most
    assert text.startswith(shown.split("…")[0])


@pytest.mark.slow  # starts a browser
def test_no_text_is_wider_in_a_browser() -> None:
    """Chromium draws no text wider than we think, letter by letter and in words."""
    letters = [
        chr(code)
        for code in [*range(0x20, 0x3000), *range(0xFB00, 0xFE00)]
        if unicodedata.category(chr(code))[0] in "LNPS"
    ]
    tried = [*WORDS, *letters]
    wider = [
        (text, bold, real, text_width(text, 100, bold=bold))
        for bold in (False, True)
        for text, real in zip(tried, widths_in_chromium(tried, bold=bold), strict=True)
        if real > text_width(text, 100, bold=bold) + 0.5
    ]

    assert wider == []


def widths_in_chromium(texts: list[str], *, bold: bool) -> list[float]:
    """Return how wide a browser draws texts, in the fonts that pictures ask for."""
    api = pytest.importorskip("playwright.sync_api")
    measure = """([texts, weight]) => {
        const pen = document.createElement('canvas').getContext('2d');
        pen.font = weight + " 100px system-ui, Arial, 'DejaVu Sans', sans-serif";
        return texts.map(text => pen.measureText(text).width);
    }"""
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        found = browser.new_page().evaluate(measure, [texts, "600" if bold else "400"])
        browser.close()
    return list(found)
