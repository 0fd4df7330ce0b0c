"""A module's flow as JSON, and back."""

import json

import pytest

from soma.core import FlowEdge, FlowNode, ModuleFlow, flow_from_data, flow_to_data
from soma.errors import InvalidInput

NODE = FlowNode(
    id="trunk.0",
    kind="module",
    label="Linear",
    path="trunk.0",
    parameters=6,
    trainable=0,
    shape=(4, 2),
    detail="",
    share=0.5,
)
FLOW = ModuleFlow(
    node="net",
    class_name="Net",
    parameters=6,
    trainable=0,
    calls=2,
    nodes=(NODE,),
    edges=(FlowEdge(source="trunk.0", target="trunk.0#2", cut="detach", share=1.0),),
    note=None,
)


def test_there_and_back() -> None:
    """A flow that went through JSON is the flow it was."""
    assert flow_from_data(json.loads(json.dumps(flow_to_data(FLOW)))) == FLOW


def test_unknown_fields_do_not_matter() -> None:
    """A field of a later version is left out."""
    assert flow_from_data(flow_to_data(FLOW) | {"colour": "red"}) == FLOW


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("calls", -1, "`calls` of the flow of a module is -1; a whole number from 0 is wanted."),
        ("calls", True, "`calls` of the flow of a module is True; a whole number from 0"),
        ("node", 7, "`node` of the flow of a module is 7; a string is wanted."),
        ("nodes", {}, "`nodes` of the flow of a module is {}; a list is wanted."),
        ("nodes", [3], "a node of a flow is int; a JSON object is wanted."),
        ("edges", [{}], "`source` of an edge of a flow is missing; a string is wanted."),
    ],
)
def test_something_else_is_refused(field: str, value: object, said: str) -> None:
    """A field with something else in it is named."""
    with pytest.raises(InvalidInput) as error:
        flow_from_data(flow_to_data(FLOW) | {field: value})

    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("field", "value"),
    [("kind", "box"), ("share", 2), ("share", float("nan")), ("shape", [1.5]), ("shape", [-1])],
)
def test_a_node_out_of_range_is_refused(field: str, value: object) -> None:
    """What cannot be drawn is refused with the field's name."""
    data = flow_to_data(FLOW)
    data["nodes"] = [data["nodes"][0] | {field: value}]

    with pytest.raises(InvalidInput, match=f"`{field}` of a node of a flow"):
        flow_from_data(data)
