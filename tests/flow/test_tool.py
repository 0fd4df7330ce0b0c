"""What a model is told of a tool, and what comes of its calls."""

import json
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Annotated, Literal

import msgspec
import numpy as np
import pytest
from torch import nn

import soma
from soma.errors import InvalidSchema
from soma.flow import Observation, Suspend, Tool


class Unit(Enum):
    CELSIUS = "C"
    KELVIN = "K"


@dataclass
class Place:
    city: str
    height: float = 0.0


def weather(
    place: Place,
    unit: Unit = Unit.CELSIUS,
    days: Annotated[int, msgspec.Meta(ge=1, le=10)] = 1,
    kind: Literal["rain", "sun"] | None = None,
) -> str:
    """Tell the weather.

    It is never right.

    Args:
        place: where; in the
            mountains give its height.
        unit: of the temperature.

    Returns:
        kind: not an argument.
    """
    return f"{place.city}, {place.height}, {unit.name}, {days}, {kind}"


def test_a_model_is_told_what_signature_and_docstring_say() -> None:
    """Name, first paragraph, types, bounds, defaults and the texts of arguments are told."""
    spec = Tool(weather).spec
    told = spec.schema["properties"]

    assert (spec.name, spec.description) == ("weather", "Tell the weather.")
    assert spec.schema["required"] == ["place"]
    assert spec.schema["additionalProperties"] is False
    assert told["place"]["description"] == "where; in the mountains give its height."
    assert told["unit"]["default"] == "C"
    assert (told["days"]["minimum"], told["days"]["default"]) == (1, 1)
    assert "description" not in told["kind"]


def test_a_function_gets_values_of_its_types() -> None:
    """Dataclasses and enums are made, and what is left out has the function's own default."""
    called = Tool(weather).call('{"place": {"city": "Oslo"}, "unit": "K", "kind": "rain"}')

    assert called.text == "Oslo, 0.0, KELVIN, 1, rain"
    assert called.outcome == "ok"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{}", "missing required field `place`"),
        ("", "missing required field `place`"),
        ('{"place": {"city": 3}}', "`$.place.city` is 3: Expected `str`, got `int`."),
        ('{"place": {"city": "a"}, "unit": "F"}', '"enum": ["C", "K"]'),
        ('{"place": {"city": "a"}, "days": 11}', "`$.days` is 11: Expected `int` <= 10."),
        ('{"place": {"city": "a"}, "dayz": 1}', "Did you mean `days`?"),
        ('{"place": {"city": "a", "hight": 1}}', "Did you mean `height`?"),
        ('{"place": ', "no JSON that can be read"),
        ("[1]", "`$` is [1]: Expected `object`, got `array`."),
        ('{"place": ' + "[" * 200 + "]" * 200 + "}", "nested more than 100 deep"),
        ('{"place": "' + "a" * (1 << 20) + '"}', "Write at most 1,048,576."),
        ('{"place": {"city": "\ud800"}}', "Oslo"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: str, told: str) -> None:
    """Nothing is called, and the model reads where, what came and what is wanted."""
    observation = Tool(weather).call(arguments)

    if told == "Oslo":  # half a character is replaced, and the rest fits
        assert observation.outcome == "ok"
    else:
        assert observation.outcome == "refused"
        assert told in observation.text


def test_an_exception_is_an_observation() -> None:
    """Its class and its words are told, its trace is not."""

    def divide(by: int) -> float:
        return 1 / by

    assert Tool(divide).call('{"by": 0}') == Observation(
        outcome="error", text="ZeroDivisionError: division by zero"
    )


@pytest.mark.parametrize("passing", [KeyboardInterrupt(), Suspend("May I?")])
def test_what_is_no_exception_passes(passing: BaseException) -> None:
    """Ctrl-C and the wish for a person go through a tool, also one that catches exceptions."""

    def ask() -> str:
        try:
            raise passing
        except Exception:
            return "swallowed"

    with pytest.raises(type(passing)):
        Tool(ask).call("{}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (None, "null"),
        ({"a": [1, float("nan")], 2: Unit.KELVIN}, '{"a": [1, NaN], "2": "K"}'),
        (Place("Ås"), '{"city": "Ås", "height": 0.0}'),
        (np.arange(4).reshape(2, 2), "[[0, 1], [2, 3]]"),
        (np.float32(0.5), "0.5"),
        (
            np.zeros((100, 20)),
            '"array of shape (100, 20), float64: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, …"',
        ),
        (np.array(["a"] * 2000), '"array of shape (2000,), <U1: a, a, a, a, a, a, a, a, a, a, …"'),
        ("\ud800", "?"),
        ({1, 2}, "[1, 2]"),
    ],
)
def test_results_become_texts(value: object, text: str) -> None:
    """A text stays, and other values are JSON or told."""

    def give() -> object:
        return value

    observation = Tool(give).call("{}")

    assert observation.text == text
    assert observation.value is value


def test_long_results_are_cut_and_say_so() -> None:
    """A model gets 20,000 characters of a result."""

    def give() -> str:
        return "a" * 30_000

    text = Tool(give).call("").text

    assert text.endswith("a… (20,000 of 30,000 characters)")


def test_a_result_that_holds_itself_is_told() -> None:
    """What JSON cannot hold is shown as Python shows it."""
    endless: list[object] = []
    endless.append(endless)

    def give() -> object:
        return endless

    assert Tool(give).call("").text == "[[...]]"


def star(*numbers: int) -> None: ...
def untyped(number) -> None: ...  # type: ignore[no-untyped-def]
def array(x: np.ndarray) -> None: ...  # type: ignore[type-arg]
def unknown(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821
async def later(x: int) -> None: ...


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (star, "takes `*numbers: int`"),
        (untyped, "`number` of `untyped` has no type"),
        (array, "numpy.ndarray"),
        (unknown, "name 'Nowhere' is not defined"),
        (later, "`async`"),
        (lambda: 1, "a lambda came"),
        (3, "of the type `int`"),
        (Place, "Give a function"),
    ],
)
def test_what_cannot_be_checked_is_no_tool(target: object, told: str) -> None:
    """A tool says at once that its arguments could not be checked."""
    with pytest.raises(InvalidSchema) as refused:
        Tool(target)

    assert told in str(refused.value)


class Store:
    def look_up(self, word: str) -> str:
        """Look a word up."""
        return f"{word} is here"


def send(address: str, text: str, key: str = "") -> str:
    """Send a text."""
    return f"{address} {text} {key}"


def test_what_is_bound_is_not_for_the_model() -> None:
    """A method has no `self`, and a partial function neither tells nor takes what is bound."""
    method, bound = Tool(Store().look_up), Tool(partial(send, "me", key="secret"))

    assert method.call('{"word": "soma"}').text == "soma is here"
    assert (bound.name, bound.spec.description) == ("send", "Send a text.")
    assert list(bound.spec.schema["properties"]) == ["text"]
    assert bound.call('{"text": "hi"}').text == "me hi secret"
    assert bound.call('{"text": "hi", "key": "other"}').outcome == "refused"


@dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise LookupError(f"{self.number} is odd")


def test_the_own_check_of_a_type_refuses() -> None:
    """What a dataclass raises when it is made is told to the model, and nothing is called."""

    def half(of: Even) -> float:
        return of.number / 2

    assert Tool(half).call('{"of": {"number": 4}}').text == "2.0"
    observation = Tool(half).call('{"of": {"number": 3}}')
    assert observation.outcome == "refused"
    assert "3 is odd" in observation.text


@pytest.mark.parametrize("name", ["a-b", "1", "class", "x" * 64])
def test_names_that_servers_take_are_names(name: str) -> None:
    """A tool may be called what Python could not call it."""
    assert Tool(send, name=name).call('{"address": "a", "text": "b"}').outcome == "ok"


def test_a_json_schema_may_stand_in_for_types() -> None:
    """Arguments are then checked by that schema."""

    def show(**given: object) -> object:
        return given

    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
    }
    tool = Tool(show, schema=schema)

    assert tool.call('{"n": 2, "more": true}').text == '{"n": 2, "more": true}'
    assert "`$.n`: 0 is less than the minimum of 1." in tool.call('{"n": 0}').text


class Centre(soma.Filter):
    def fit(self, x, y=None):  # type: ignore[no-untyped-def]
        return x.mean(0)

    def forward(self, x, state):  # type: ignore[no-untyped-def]
        return x - state


class Sum(soma.DifferentiableFilter):
    def build_module(self, input_shape: tuple[int, ...]) -> nn.Module:
        return nn.Flatten(0)


@pytest.mark.parametrize("modules", [False, True])
def test_a_graph_is_a_tool(modules: bool) -> None:
    """It computes in eval for rows of numbers, and says what it does not take."""
    g = soma.Graph.somatize(Sum() if modules else Centre(), name="middle")
    if modules:
        g.materialize(np.zeros((2, 2), "float32")).train()
    else:
        g.fit(np.array([[1.0, 2.0], [3.0, 4.0]]))
    tool = Tool(g)
    rows = json.loads(tool.call('{"x": [[1, 2], [3, 5]]}').text)

    assert rows == ([1, 2, 3, 5] if modules else [[-1, -1], [1, 2]])
    assert tool.call('{"x": [[1, "2"]]}').text.startswith("ValueError: `x` holds something")
    assert (tool.name, tool.spec.schema["required"]) == ("middle", ["x"])
