"""Spaces that classes declare, what graphs make of them, and one try of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import soma
from soma import Filter, Graph
from soma.core import Choice, Range, parameters_of, remade
from soma.errors import InvalidInput


class Plain(Filter):
    """Any keyword is taken."""

    width: int = soma.search(16, 256, step=16)
    rate: float = soma.search(1e-4, 1e-2, scale="log")
    activation: str = soma.search(choices=["relu", "gelu"])

    def forward(self, x: Any, state: Any) -> Any:
        return self.width, self.rate, self.activation


class Narrow(Plain):
    """The constructor knows nothing of what is searched, and looks at it."""

    def __init__(self, classes: int) -> None:
        super().__init__(classes=classes)
        self.half = self.width // 2


@dataclass
class Data(Filter):
    """A dataclass."""

    depth: int = soma.search(1, 8, scale="log")

    def forward(self, x: Any, state: Any) -> Any:
        return self.depth


class Settled(Plain):
    """One attribute is no longer searched."""

    width = 3


@pytest.mark.parametrize(
    ("declared", "default"),
    [
        (soma.search(16, 256, step=16), 128),
        (soma.search(1, 4), 2),
        (soma.search(1, 1000, scale="log"), 32),
        (soma.search(0.0, 1.0), 0.5),
        (soma.search(0.1, 0.9, step=0.2), 0.5),
        (soma.search(1e-4, 1e-2, scale="log"), pytest.approx(1e-3)),
        (soma.search(-1.7e308, 1.7e308), 0.0),
        (soma.search(2, 2), 2),
        (soma.search(1, 9, default=7), 7),
        (soma.search(choices=[True, False]), True),
        (soma.search(choices=["relu", None], default=None), None),
    ],
)
def test_a_default_is_the_middle_or_the_first(declared: Any, default: object) -> None:
    """It is the middle that fits scale and steps, or the first choice, unless it is said."""
    assert declared.space.default == default
    assert type(declared.space.default) is type(getattr(default, "expected", default))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"low": 2, "high": 1}, "`low` of `search` is 2, above `high`, 1."),
        ({"low": 0.0, "high": 1.0, "scale": "log"}, "on a log scale a number above 0 is wanted"),
        ({"low": 1, "high": 9, "step": 2, "scale": "log"}, "steps are of a linear scale"),
        ({"low": 1, "high": 9, "step": 0}, "`step` of `search` is 0; a number above 0"),
        ({"low": 16, "high": 250, "step": 16}, "the last one below it is 240."),
        ({"low": 0.0, "high": 1.0, "step": 0.3}, "the last one below it is 0.9."),
        ({"low": 1, "high": 9, "default": 10}, "it is 10; a whole number from 1 to 9 is wanted"),
        ({"low": 1, "high": float("inf")}, "`high` of `search` is inf; a finite number"),
        ({"low": True, "high": 3}, "`low` of `search` is True"),
        ({"low": 1}, "`search` got no space"),
        ({"low": 1, "high": 2, "scale": "ln"}, '"linear" or "log" is wanted'),
        ({"choices": []}, "a list of values is wanted"),
        ({"choices": "relu"}, "a list of values is wanted"),
        ({"choices": ["relu"], "low": 1}, "got `choices` and bounds"),
        ({"choices": ["a", "b"], "default": "c"}, "it is 'c'; 'a' or 'b' is wanted"),
        ({"choices": [1, True]}, "holds True twice, or a value equal to it"),
        ({"choices": [(3, 3)]}, "Give a name, and look it up in the filter."),
    ],
)
def test_a_space_that_cannot_be_is_told_where_it_is_declared(
    arguments: dict[str, Any], told: str
) -> None:
    """The class body ends with an error that says what was wanted."""
    with pytest.raises(InvalidInput) as caught:
        soma.search(**arguments)

    assert told in str(caught.value)


def test_a_private_attribute_is_not_searched() -> None:
    """It would not count in the key of the cache, so the class is refused."""
    with pytest.raises((InvalidInput, RuntimeError)) as caught:
        type("Bad", (Filter,), {"_rate": soma.search(0.0, 1.0)})

    assert "is private" in str(caught.value.__cause__ or caught.value)


def test_a_space_is_no_argument() -> None:
    """A filter is constructed with values; what is searched is declared in the class."""
    with pytest.raises(TypeError, match="Declare it in the body"):
        Plain(width=soma.search(1, 2))


def test_whole_bounds_of_floats_are_floats() -> None:
    """The annotation of the attribute tells what two integers mean, or a default that is none."""

    class Drop(Filter):
        share: float = soma.search(0, 1)
        rest = soma.search(0, 1, default=0.25)
        count = soma.search(0, 1)

    assert repr(Drop()) == "Drop(share=0.5, rest=0.25, count=0)"


@pytest.mark.parametrize(
    ("filter", "shown"),
    [
        (Plain(), "Plain(width=128, rate=0.001, activation='relu')"),
        (Plain(activation="gelu"), "Plain(activation='gelu', width=128, rate=0.001)"),
        (Narrow(3), "Narrow(classes=3, width=128, rate=0.001, activation='relu')"),
        (Settled(), "Settled(rate=0.001, activation='relu')"),
        (Data(), "Data(depth=3)"),
    ],
)
def test_without_a_study_the_defaults_are_plain_values(filter: Filter, shown: str) -> None:
    """They are attributes like others, and stand in the `repr`."""
    assert repr(filter) == shown


def test_what_a_constructor_was_given_is_settled() -> None:
    """It is no longer in the space, nor is what a subclass or the constructor has fixed."""
    g = Graph.somatize(Plain(width=32) >> Settled() >> Narrow(2), cache=None)

    assert list(soma.search_space(g)) == [
        *("plain.rate", "plain.activation", "settled.rate", "settled.activation"),
        *("narrow.width", "narrow.rate", "narrow.activation"),
    ]


def test_a_space_can_be_read_and_printed() -> None:
    """It is a mapping to frozen spaces."""
    space = soma.search_space(Graph.somatize(Plain(rate=0.001) >> Data(), cache=None))

    assert space["data.depth"] == Range(low=1, high=8, step=None, log=True, default=3)
    assert space["plain.activation"] == Choice(choices=("relu", "gelu"), default="relu")
    assert str(space).splitlines() == [
        "plain.width       a whole number from 16 to 256 in steps of 16; by default 128",
        "plain.activation  'relu' or 'gelu'; by default 'relu'",
        "data.depth        a whole number from 1 to 8, on a log scale; by default 3",
    ]


def test_params_make_another_graph() -> None:
    """The graph given stays as it is; the new one has the values wherever its filters read them."""
    g = Graph.somatize(Plain() >> Narrow(3) >> Data(), cache=None)
    made = soma.apply_params(g, {"plain.width": 16, "narrow.width": 32, "data.depth": 8})

    assert [(one.width, made.filter("data").depth) for _, one in made.filters()[:2]] == [
        (16, 8),
        (32, 8),
    ]
    assert made.filter("narrow").half == 16
    assert (g.filter("plain").width, g.filter("narrow").width, g.filter("data").depth) == (
        *(128, 128),
        3,
    )


def test_params_stay_when_a_graph_is_made_anew() -> None:
    """Values count as arguments, also where a constructor has no argument for them."""
    g = Graph.somatize(Narrow(3) >> Data(), cache=None)
    made = soma.apply_params(g, {"narrow.width": 32, "data.depth": 8}).unfitted()

    assert (made.filter("narrow").width, made.filter("narrow").half) == (32, 16)
    assert made.filter("data").depth == 8
    assert list(soma.search_space(made)) == ["narrow.rate", "narrow.activation"]


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"plain.width": 17}, "`plain.width` cannot be set: it is 17; a whole number from 16"),
        ({"plain.width": 16.5}, "it is 16.5"),
        ({"plain.width": True}, "it is True"),
        ({"plain.rate": float("nan")}, "it is nan; a number from 0.0001 to 0.01"),
        ({"plain.activation": "tanh"}, "it is 'tanh'; 'relu' or 'gelu' is wanted"),
        ({"plain.widht": 32}, "Did you mean `plain.width`?"),
        ({"plain_2.width": 32}, "is not searched: its filter was constructed with 32"),
        ({3: 4}, "no filter of this graph searches `3`"),
        (["plain.width"], "a mapping is wanted"),
    ],
)
def test_what_cannot_be_applied_is_named(params: Any, told: str) -> None:
    """Names and values, all of them at once."""
    g = Graph.somatize(Plain() >> Plain(width=32), cache=None)
    with pytest.raises(InvalidInput) as caught:
        soma.apply_params(g, params)

    assert told in str(caught.value)


@pytest.mark.parametrize("filter", [Plain(), Narrow(2), Data(), Plain(width=32)])
def test_defaults_have_the_same_identity(filter: Filter) -> None:
    """A default and the same value given are one to the cache, which finds the answer again."""
    g = Graph.somatize(filter, cache="memory")
    g.forward(1)
    again = soma.apply_params(g, soma.search_space(g).defaults())
    again.forward(1)

    assert "did not run" in soma.why(again, again.leaves()[0])


def test_another_value_is_another_answer() -> None:
    """The value is in the key of the cache."""
    g = Graph.somatize(Narrow(2), cache="memory")

    assert g.forward(1)[0] == 128
    assert soma.apply_params(g, {"narrow.width": 32}).forward(1)[0] == 32


def test_a_wider_space_keeps_what_is_cached() -> None:
    """Where an attribute may be searched says nothing of the answer at one value."""

    def declared(high: int) -> Filter:
        class Wide(Filter):
            width: int = soma.search(1, high, default=4)

            def forward(self, x: Any, state: Any) -> Any:
                return self.width

        return Wide()

    store = Graph(cache="memory")._runner.memory
    assert store is not None
    graphs = [Graph.somatize(declared(high), cache=store.cache.store) for high in (8, 16)]

    assert [g.forward(1) for g in graphs] == [4, 4]
    assert "did not run" in soma.why(graphs[1], "wide")


def test_a_bundle_holds_the_values(tmp_path: Any) -> None:
    """A graph comes back with the values it had, those of defaults among them."""
    g = Graph.somatize(Plain() >> Narrow(3), cache=None)
    soma.apply_params(g, {"plain.rate": 0.002, "narrow.width": 32}).save(tmp_path / "g.soma")
    again = Graph.load(tmp_path / "g.soma", cache=None)

    assert repr(again.filter("narrow")).startswith("Narrow(classes=3, width=32")
    assert (again.filter("plain").rate, again.filter("narrow").half) == (0.002, 16)
    assert again.unfitted().filter("narrow").width == 32


def test_parameters_are_those_in_use() -> None:
    """Searches of scikit-learn see and set what is searched, whatever the constructor takes."""
    assert parameters_of(Narrow(3)) == {
        "classes": 3, "width": 128, "rate": Plain().rate, "activation": "relu",
    }  # fmt: skip
    assert parameters_of(remade(Narrow(3), {"width": 32}))["width"] == 32


@pytest.mark.parametrize("name", ["fit", "forward", "meta"])
def test_a_method_is_not_searched(name: str) -> None:
    """A name that is a method of filters is refused where the class is defined."""
    with pytest.raises((InvalidInput, RuntimeError)) as caught:
        type("Odd", (Filter,), {name: soma.search(1, 3)})

    assert f"`{name}` of `Odd` is a method" in str(caught.value.__cause__ or caught.value)


@pytest.mark.parametrize("value", [np.array(["relu", "gelu"]), np.ones(2), ["relu"]])
def test_an_array_is_no_choice(value: Any) -> None:
    """What compares element by element is refused like any other value outside of the space."""
    with pytest.raises(InvalidInput, match="'relu' or 'gelu' is wanted"):
        soma.apply_params(Graph.somatize(Plain()), {"plain.activation": value})


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_bounds_beyond_all_floats(scale: Any) -> None:
    """A whole number that no float comes near is no bound."""
    with pytest.raises(InvalidInput, match=r"`high` of `search` is .*; a finite number"):
        soma.search(1, 10**400, scale=scale)


@st.composite
def spaces(draw: Any) -> Any:
    """Return the declaration of any space."""
    if draw(st.booleans()):
        plain = st.one_of(st.none(), st.text(), st.integers(), st.floats(allow_nan=False))
        return soma.search(choices=draw(st.lists(plain, min_size=1, unique=True)))
    if draw(st.booleans()):
        low = draw(st.integers(-(2**40), 2**40))
        step = draw(st.integers(1, 1000))
        return soma.search(low, low + step * draw(st.integers(0, 1000)), step=step)
    least = draw(st.floats(1e-9, 1e9))
    return soma.search(least, least * draw(st.floats(1, 1e6)), scale="log")


@given(spaces())
def test_a_default_is_in_its_space(declared: Any) -> None:
    """Whatever is declared, its default is one of its values."""
    space = declared.space

    assert space.checked(space.default) == space.default
