"""Prompts: fields are names, and what is put in is not read again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soma.errors import InvalidInput
from soma.flow._prompt import Prompt

texts = st.text(max_size=40)


@given(texts, texts, texts)
def test_a_value_stands_where_its_field_is(before: str, value: str, after: str) -> None:
    """Whatever the texts hold, braces included, they come out as they are."""

    def literal(text: str) -> str:
        return text.replace("{", "{{").replace("}", "}}")

    prompt = Prompt(f"{literal(before)}{{input}}{literal(after)}")

    assert prompt.fill(value) == before + value.encode("utf-8", "replace").decode() + after


@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_.]{0,9}", fullmatch=True), texts, max_size=5))
def test_parts_of_a_mapping_are_fields(parts: dict[str, str]) -> None:
    """Each part is put in by its name, and dots are part of a name."""
    parts.pop("input", None)
    prompt = Prompt("|".join(f"{{{name}}}" for name in parts))

    assert prompt.fill(parts) == "|".join(parts.values())


@pytest.mark.parametrize(
    "field",
    ["input.__class__", "input.__class__.__mro__", "x[0]", "x.real", "__class__", "0"],
)
def test_no_field_reaches_into_an_object(field: str) -> None:
    """Attributes and items are names that nobody gives."""
    with pytest.raises(InvalidInput, match="a prompt puts in"):
        Prompt(f"{{{field}}}").fill({"x": [1]})


@pytest.mark.parametrize("text", ["{", "}", "{}", "{input!r}", "{input:>9}", "{ }", "{a{b}}"])
def test_what_is_no_field_is_refused(text: str) -> None:
    """The message tells how to write a brace."""
    with pytest.raises(InvalidInput, match="cannot be read"):
        Prompt(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (1.5, "1.5"), ([1, "a"], '[1, "a"]'), ({"a": 1}, '{"a": 1}')],
)
def test_what_is_no_text_is_json(value: Any, text: str) -> None:
    """Plain data stands there as JSON."""
    assert Prompt("{input}").fill(value) == text


def test_a_wrong_name_is_told_with_the_nearest() -> None:
    """The message lists what there is."""
    with pytest.raises(InvalidInput, match=r"has `input`, `left` and `right`. Did you mean `left`"):
        Prompt("{lef}").fill({"left": 1, "right": 2})
