"""Plans go to JSON and back; other text is refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from soma.compiler import CompileMode, Compiler, Composite, Empty, ExecutionPlan
from soma.core import Filter, Topology


class Dense(Filter):
    _differentiable = True
    _kind = "trainable"


class Tree(Filter):
    _kind = "opaque"
    _cacheable = False


def compiled(mode: str = "inference") -> ExecutionPlan:
    topology = Topology()
    topology.add_expression(Dense() >> Dense() >> (Tree() >> Dense() | Dense()) >> Tree())
    return Compiler().compile(topology, object(), mode)


@pytest.mark.parametrize("mode", ["inference", "differentiable", "no_cache"])
def test_a_round_trip_gives_an_equal_plan(mode: str) -> None:
    """What is read equals what was written, diagnostics and reasons included."""
    plan = compiled(mode)
    again = ExecutionPlan.from_json(plan.to_json())

    assert again == plan
    assert [str(one) for one in again.diagnostics] == [str(one) for one in plan.diagnostics]
    assert plan.diagnostics


def test_a_plan_of_nothing_is_a_plan() -> None:
    """A tree without steps is written and read like any other."""
    nothing = ExecutionPlan(Empty(), CompileMode.Inference, (), ())

    assert ExecutionPlan.from_json(nothing.to_json()) == nothing
    assert str(nothing) == "ExecutionPlan: inference, 0 nodes\n└─ Empty"


def test_the_text_says_its_format() -> None:
    """The format number stands in the text."""
    assert json.loads(compiled().to_json())["format"] == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "JSON is wanted"),
        ("{", "JSON is wanted"),
        ("[" * 100_000, "JSON is wanted"),
        ("9" * 5_000, "JSON is wanted"),
        ("[]", "its format is None; 1 is wanted"),
        ("null", "its format is None; 1 is wanted"),
        ('{"format": 2}', "its format is 2; 1 is wanted"),
        ('{"format": true}', "its format is True; 1 is wanted"),
        ('{"format": 1}', "an object with format, mode, order, root, diagnostics and nothing else"),
    ],
)
def test_text_that_is_no_plan_is_refused(text: str, says: str) -> None:
    """Anything else gives one error that names what is wrong."""
    with pytest.raises(ValueError, match="this is no plan") as caught:
        ExecutionPlan.from_json(text)
    assert says in str(caught.value)


def deep(root: dict[str, Any]) -> dict[str, Any]:
    for _ in range(300):
        root = {"kind": "sequence", "parts": [root]}
    return root


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "mode": (lambda plan: plan.update(mode="fast"), "'fast' is no compile mode"),
    "mode-type": (lambda plan: plan.update(mode=[]), "mode is []; a string"),
    "more": (lambda plan: plan.update(extra=1), "and nothing else is wanted"),
    "order": (lambda plan: plan["order"].pop(), "each node of the tree once"),
    "order-type": (lambda plan: plan["order"].append(3), "order[6] is 3; a string"),
    "turned": (lambda plan: plan["order"].reverse(), "a node that ran before is wanted"),
    "kind": (lambda plan: plan["root"].update(kind="distant"), "root.kind is 'distant'"),
    "kind-type": (lambda plan: plan["root"].update(kind=[1]), "root.kind is [1]"),
    "target": (lambda plan: plan["root"].update(kind="remote"), "kind, target, parts and nothing"),
    "free": (lambda plan: plan["root"].update(kind="parallel"), "a node that ran before is wanted"),
    "parts": (lambda plan: plan["root"].update(parts="ab"), "root.parts is 'ab'; a list"),
    "twice": (
        lambda plan: plan["root"]["parts"].append(plan["root"]["parts"][0]),
        "each node once",
    ),
    "deep": (lambda plan: plan.update(root=deep(plan["root"])), "the depth of the tree is 201"),
    "flag": (
        lambda plan: plan["root"]["parts"][-1].update(differentiable=1),
        "root.parts[2].differentiable is 1; true or false",
    ),
    "level": (lambda plan: plan["diagnostics"][0].update(level="fatal"), "level is 'fatal'"),
    "marked": (lambda plan: plan["diagnostics"][0].update(marked=[0, 99]), "marked is [0, 99]"),
    "position": (lambda plan: plan["diagnostics"][0].update(position=True), "position is True"),
    "role": (
        lambda plan: plan["diagnostics"][0]["labels"][0].update(role="hero"),
        "role is 'hero'",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_one_wrong_field_is_named(name: str) -> None:
    """A plan with one field changed is refused, and the error names the field."""
    change, says = CHANGES[name]
    data = json.loads(compiled().to_json())
    change(data)
    with pytest.raises(ValueError, match=r"is no (plan|compile mode)") as caught:
        ExecutionPlan.from_json(json.dumps(data))

    assert says in str(caught.value)


def test_a_plan_can_be_compared_and_hashed() -> None:
    """Plans are values."""
    assert len({compiled(), compiled()}) == 1
    assert isinstance(compiled().root.parts[0], Composite)  # type: ignore[union-attr]
