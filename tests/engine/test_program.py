"""A plan lowered to slots, from the inside."""

import pytest

from soma import Graph
from soma.engine import Call, Program, lower, run
from tests.engine.filters import Same


def program(links: str, kept: str, given: str = "") -> Program:
    """Lower nodes of one letter, of which each adds its letter to what it reads."""
    g = Graph()
    for id in dict.fromkeys(links.replace(" ", "")):
        g.node(id, Same())
    for link in links.split():
        g.connect(*link)

    def calls(letter: str) -> Call:
        return Call(lambda x: f"{'+'.join(x.values()) if isinstance(x, dict) else x}{letter}")

    return lower(g.compile().steps(), {id: calls(id) for id in g.filter_ids()}, kept, given)


def answer(lowered: Program, **inputs: str) -> object:
    """Run a program."""
    return run(lowered, inputs, {}, "forward", str)


def test_a_chain_needs_one_slot() -> None:
    """Each answer takes the place of what was read."""
    lowered = program("ab bc cd de", kept="e")

    assert lowered.size == 1
    assert answer(lowered, a="x") == "xabcde"


def test_what_is_kept_may_be_read_too() -> None:
    """Its slot is not given away when the last reader has run."""
    lowered = program("ab bc cd", kept="bd")

    assert answer(lowered, a="x") == {"b": "xab", "d": "xabcd"}


def test_a_slot_is_used_again() -> None:
    """Two branches side by side take two."""
    assert program("ab bc ad de cf ef", kept="f").size == 2
    assert answer(program("ab bc ad de cf ef", kept="f"), a="x") == "xabc+xadef"


def test_given_nodes_are_not_run() -> None:
    """Their values come from outside, under their own names."""
    lowered = program("ab bc ad cd", kept="d", given="ac")

    assert [one.node for one in lowered.instructions] == ["b", "d"]
    assert answer(lowered, a="A", c="C") == "A+Cd"


@pytest.mark.parametrize("kept", ["", "c"])
def test_nothing_or_one_value_may_be_kept(kept: str) -> None:
    """One is given itself, none is an empty dict."""
    assert answer(program("ab bc", kept=kept), a="x") == ("xabc" if kept else {})
