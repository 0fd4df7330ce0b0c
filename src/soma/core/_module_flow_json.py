"""A `ModuleFlow` to plain JSON values and back, one function each way."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast, get_args

from soma.core._module_flow import FlowEdge, FlowKind, FlowNode, ModuleFlow
from soma.errors import InvalidInput


def flow_to_data(flow: ModuleFlow) -> dict[str, object]:
    """Return `flow` as dicts, lists, strings and numbers."""
    data = asdict(flow)
    data["nodes"] = [
        one | {"shape": None if one["shape"] is None else list(one["shape"])}
        for one in data["nodes"]
    ]
    data["edges"] = list(data["edges"])
    return data


def flow_from_data(data: object) -> ModuleFlow:
    """Return the flow that `flow_to_data` made `data` of; fields it does not know are left out.

    Raises:
        InvalidInput: a field is missing, or holds something else.
    """
    fields = _Fields(data, "the flow of a module")
    return ModuleFlow(
        node=fields.text("node"),
        class_name=fields.text("class_name"),
        parameters=fields.whole("parameters"),
        trainable=fields.whole("trainable"),
        calls=fields.whole("calls"),
        nodes=tuple(_node(one) for one in fields.items("nodes")),
        edges=tuple(_edge(one) for one in fields.items("edges")),
        note=fields.text_or_none("note"),
    )


def _node(data: object) -> FlowNode:
    fields = _Fields(data, "a node of a flow")
    kind = fields.text("kind")
    if kind not in get_args(FlowKind):
        raise fields.refusal("kind", " or ".join(map(repr, get_args(FlowKind))))
    return FlowNode(
        id=fields.text("id"),
        kind=cast(FlowKind, kind),
        label=fields.text("label"),
        path=fields.text("path"),
        parameters=fields.whole("parameters"),
        trainable=fields.whole("trainable"),
        shape=fields.shape("shape"),
        detail=fields.text("detail"),
        share=fields.share("share"),
    )


def _edge(data: object) -> FlowEdge:
    fields = _Fields(data, "an edge of a flow")
    return FlowEdge(
        source=fields.text("source"),
        target=fields.text("target"),
        cut=fields.text_or_none("cut"),
        share=fields.share("share"),
    )


class _Fields:
    """Reads one JSON object field by field, and refuses what is not as it should be."""

    def __init__(self, data: object, what: str) -> None:
        self._what = what
        if not isinstance(data, Mapping):
            raise InvalidInput(f"{what} is {type(data).__name__}; a JSON object is wanted.")
        self._data = data

    def refusal(self, name: str, wanted: str) -> InvalidInput:
        value = self._data.get(name)
        came = f"{value!r:.60}" if name in self._data else "missing"
        return InvalidInput(f"`{name}` of {self._what} is {came}; {wanted} is wanted.")

    def text(self, name: str) -> str:
        return cast(str, self._checked(name, str, "a string"))

    def text_or_none(self, name: str) -> str | None:
        return None if self._data.get(name) is None else self.text(name)

    def whole(self, name: str) -> int:
        value = self._checked(name, int, "a whole number from 0")
        if isinstance(value, bool) or value < 0:
            raise self.refusal(name, "a whole number from 0")
        return cast(int, value)

    def share(self, name: str) -> float:
        value = self._checked(name, int | float, "a number from 0 to 1")
        if not 0 <= value <= 1:
            raise self.refusal(name, "a number from 0 to 1")
        return float(value)

    def items(self, name: str) -> list[object]:
        return cast(list[object], self._checked(name, list, "a list"))

    def shape(self, name: str) -> tuple[int, ...] | None:
        if self._data.get(name) is None:
            return None
        sizes = self.items(name)
        if not all(type(size) is int and size >= 0 for size in sizes):
            raise self.refusal(name, "a list of whole numbers from 0")
        return tuple(cast(list[int], sizes))

    def _checked(self, name: str, kind: Any, wanted: str) -> Any:
        value = self._data.get(name)
        if not isinstance(value, kind):
            raise self.refusal(name, wanted)
        return value
