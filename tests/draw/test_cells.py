"""Text as a terminal shows it."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soma.draw import cells, printable, shortened, wrapped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Linear", "Linear"),
        ("Éte\u0301 名前", "Éte\u0301 名前"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;a title\x07here", "here"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\nb\tc\rd\x00e\x7f\x85", "abcde"),
        ("a\u202eb\u2066c\u200fd\ufeff", "abcd"),
        ("a\ud800b", "ab"),
        ("a\u2028b\u2029c", "abc"),
        ("\x1b", ""),
    ],
)
def test_only_what_can_be_seen_is_printed(text: str, shown: str) -> None:
    """Escapes, control characters, bidi marks, surrogates and line separators are dropped."""
    assert printable(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_whatever_the_text_one_safe_line_is_left(text: str) -> None:
    """What is left can be encoded, stands on one line and does not change when done again."""
    shown = printable(text)

    assert len(shown.splitlines()) <= 1
    assert "\x1b" not in shown
    assert printable(shown) == shown
    shown.encode()


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("abc", 3), ("é", 1), ("e\u0301", 1), ("名前", 4), ("\uff21", 2), ("…→", 2)],
)
def test_columns_are_counted_as_a_terminal_does(text: str, columns: int) -> None:
    """Wide characters take two columns, combining ones none."""
    assert cells(text) == columns


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("short", 5, "short"),
        ("abcdefghij", 7, "abc…hij"),
        ("abcdefghij", 6, "abc…ij"),
        ("名前名前名前", 7, "名…前"),
        ("abcde\u0301fgh\u0301", 5, "ab…gh\u0301"),
        ("aaaaaa\u0301bb", 5, "aa…bb"),
    ],
)
def test_a_long_text_loses_its_middle(text: str, most: int, shown: str) -> None:
    """The beginning and the end stay, and no accent is left without its letter."""
    assert shortened(text, most) == shown


@given(st.text(), st.integers(3, 20))
def test_a_shortened_text_fits(text: str, most: int) -> None:
    """It never takes more columns than it was given."""
    assert cells(shortened(text, most)) <= most


def test_lines_break_between_words() -> None:
    """No line is wider than asked for, and what is in brackets or backticks stays whole."""
    assert wrapped("Gradients from [Linear (linear_2)] do not `a = b` reach.", 20) == [
        "Gradients from",
        "[Linear (linear_2)]",
        "do not `a = b`",
        "reach.",
    ]


def test_a_word_that_is_too_wide_keeps_its_own_line() -> None:
    """A name is never broken."""
    assert wrapped("a verylongname b", 6) == ["a", "verylongname", "b"]


def test_nothing_is_no_line() -> None:
    """An empty text has no lines."""
    assert wrapped("  ", 10) == []


@pytest.mark.parametrize("sign", ["\x9d", "\x1b]", "\x1b[", "\x1b "])
def test_a_storm_of_escapes_takes_no_time(sign: str) -> None:
    """However many sequences begin and never end."""
    before = process_time()
    printable(sign * 100_000)

    assert process_time() - before < 2
