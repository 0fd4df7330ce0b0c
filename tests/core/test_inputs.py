"""`Inputs` gives each root its own part."""

import pytest

from soma import Graph, Inputs
from soma.errors import InvalidInput
from tests.core.filters import A, B, C, Learns


def two_roots() -> Graph:
    """Return a graph that shows what its two roots were given."""
    return Graph.somatize((A() | B()) >> C())


def test_each_root_gets_its_part() -> None:
    """By keyword or in a mapping, in any order."""
    for inputs in (Inputs(b=2, a=1), Inputs({"b": 2, "a": 1}), Inputs({"a": 1}, b=2)):
        assert two_roots().forward(inputs) == {"a": 1, "b": 2}


def test_without_inputs_every_root_gets_all() -> None:
    """A plain dict is a value like others, whatever its keys are."""
    x = {"a": 1, "b": 2}

    assert two_roots().forward(x) == {"a": x, "b": x}


def test_fit_takes_inputs_too() -> None:
    """Each root learns from its own part."""
    left, right = Learns(), Learns()
    g = Graph.somatize((left | right) >> A())
    g.fit(Inputs(learns=[1, 2], learns_2=[10]))

    assert g.forward(Inputs(learns=0, learns_2=0)) == {"learns": 3, "learns_2": 10}


def test_one_root_may_be_named() -> None:
    """`Inputs` works on a graph with one root as well."""
    assert Graph.somatize(A()).forward(Inputs(a=5)) == 5


def test_a_missing_part_is_named() -> None:
    """Every root that would get nothing is in the error."""
    with pytest.raises(InvalidInput, match="nothing for `a` and `b`") as caught:
        two_roots().forward(Inputs())
    assert isinstance(caught.value, ValueError)
    with pytest.raises(InvalidInput, match="nothing for `b`;"):
        two_roots().forward(Inputs(a=1))


def test_a_part_for_no_root_is_named() -> None:
    """The error lists the roots and guesses which one was meant."""
    g = Graph()
    g.node("audio", A()), g.node("text", B())

    with pytest.raises(InvalidInput, match=r"`adio`.*`audio` and `text`.*mean `audio`"):
        g.forward(Inputs(adio=1, text=2))


def test_an_inner_node_is_no_root() -> None:
    """Only roots read input."""
    with pytest.raises(InvalidInput, match="`c`, which is no root"):
        two_roots().forward(Inputs(a=1, b=2, c=3))


@pytest.mark.parametrize("name", [3, None, ("a",), 1.5])
def test_a_name_that_is_no_string_is_no_root(name: object) -> None:
    """An odd key is refused as any other unknown name."""
    with pytest.raises(InvalidInput, match="which is no root"):
        Graph.somatize(A()).forward(Inputs({name: 1}))  # type: ignore[dict-item]


@pytest.mark.parametrize("id", ["a b", "é✓", "<b>", "self", "parts", "x.y", "{0}", "0"])
def test_an_odd_id_goes_in_as_a_mapping(id: str) -> None:
    """Ids that are no Python names, and those that Python uses itself."""
    g = Graph()
    g.node(id, A())

    assert g.forward(Inputs({id: 4})) == 4


def test_keywords_that_python_uses_are_free() -> None:
    """A root may be called `self` or `parts`."""
    assert dict(Inputs(self=1, parts=2)) == {"self": 1, "parts": 2}


def test_inputs_are_a_mapping_and_show_it() -> None:
    """It reads like a dict, and compares like one."""
    inputs = Inputs({"left.a": [1]}, b=2)

    assert repr(inputs) == "Inputs({'left.a': [1], 'b': 2})"
    assert (list(inputs), len(inputs), inputs["b"]) == (["left.a", "b"], 2, 2)
    assert inputs == {"left.a": [1], "b": 2}


def test_inputs_do_not_follow_what_they_were_made_of() -> None:
    """The parts are those at the time of the call."""
    parts: dict[str, object] = {"a": 1}
    inputs = Inputs(parts)
    parts["b"] = 2

    assert list(inputs) == ["a"]


def test_a_part_may_be_none() -> None:
    """None is data: the root was not left out."""
    assert two_roots().forward(Inputs(a=None, b=0)) == {"a": None, "b": 0}
