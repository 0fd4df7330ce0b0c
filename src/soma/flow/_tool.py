"""`Tool`: what a model may have done for it, its arguments checked before anything is called."""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from soma.core import ToolSpec
from soma.errors import InvalidInput, InvalidSchema, SchemaMismatch, listing
from soma.flow._arguments import parameters_by, parameters_of
from soma.flow._computing import Computes, Orchestrates, forward_of, run_of
from soma.flow._docstring import first_paragraph
from soma.flow._node import FlowNode
from soma.flow._shown import failure, shown

if TYPE_CHECKING:
    from soma.flow._declared import DeclaredFlow
    from soma.flow._turn import Turn

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what servers take


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What came of a call: its text is for the model, `value` is what the function returned.

    Args:
        outcome: `"refused"` where the arguments did not fit and nothing was called, `"error"`
            where the function raised.
    """

    outcome: Literal["ok", "error", "refused"]
    text: str
    value: object = None


class Tool(FlowNode):
    """A function, a computational graph or a flow that a model may call, or a flow as its node.

    Types and docstring of a function say what a model is told of it:

    >>> def half(number: float, times: int = 1) -> float:
    ...     '''Halve a number.
    ...
    ...     Args:
    ...         number: what is halved.
    ...         times: how often.
    ...     '''
    ...     return number / 2**times
    >>> tool = Tool(half)
    >>> tool.spec.description
    'Halve a number.'
    >>> tool.call('{"number": 10}').text
    '5.0'
    >>> tool.call('{"number": "ten"}').outcome
    'refused'

    A graph takes `{"x": rows of numbers}` and computes in eval; a flow takes `{"input": value}`.
    As a node it is called with the parts of a mapping by their names, or with the value itself
    where the function has one parameter.

    Args:
        target: what is called. Each parameter of a function needs a type that JSON can be checked
            by: numbers, `str`, `bool`, lists, `Literal`, enums, dataclasses and the like, also as
            `Annotated[int, msgspec.Meta(ge=0)]`.
        name: what the model calls it; a function's own by default.
        description: what the model is told; by default the docstring's first paragraph.
        schema: the JSON schema of the arguments, in place of the function's types.
        once: that a call whose outcome was lost in a crash must not be made again.

    Raises:
        InvalidSchema: the parameters cannot be checked, or the name is none that servers take.
    """

    kind = "tool"

    def __init__(
        self,
        target: object,
        *,
        name: str | None = None,
        description: str | None = None,
        schema: Mapping[str, Any] | None = None,
        once: bool = False,
    ) -> None:
        if name is None and getattr(target, "__name__", "") == "<lambda>":
            raise InvalidSchema(
                "a lambda came for a tool. Give a function with a name and types, "
                "`def half(x: float) -> float: ...`."
            )
        self.target = target
        self.once = once
        self.name = _name_of(target) if name is None else name
        if not _NAME.fullmatch(self.name):
            raise InvalidSchema(
                f"the name {self.name!r} came for a tool. Give `name=` with 1 to 64 letters, "
                "digits, `_` or `-`, of the English alphabet."
            )
        self._called = self.name
        self.function = _function_of(target, self.name)
        self._parameters = (
            parameters_of(self.function, self.name)
            if schema is None
            else parameters_by(schema, self.name)
        )
        if description is None:
            description = first_paragraph(inspect.getdoc(self.function))
        self.spec = ToolSpec(name=self.name, description=description, schema=self._parameters.json)

    def arguments(self, text: str) -> dict[str, Any]:
        """Return the arguments that a model wrote, by parameter; no text means none.

        Raises:
            SchemaMismatch: they do not fit; its text tells the model what to do.
        """
        return self._parameters.parse(text if text.strip() else "{}")

    def call(
        self,
        arguments: str,
        function: Callable[..., object] | None = None,
        hidden: Callable[[str], str] = str,
    ) -> Observation:
        """Return what comes of a call with the arguments that a model wrote.

        An exception of the function becomes a text without its trace. What is no `Exception`, as
        Ctrl-C or `Suspend`, passes.

        Args:
            function: what is called in place of the tool's own.
            hidden: takes secrets out of what the model is told, before that is shortened.
        """
        try:
            given = self.arguments(arguments)
        except SchemaMismatch as error:
            text = f"`{self.name}` was not called. {error} Call it again with arguments that fit."
            return Observation(outcome="refused", text=text)
        try:
            value = (function or self.function)(**given)
            return Observation(outcome="ok", text=shown(value, hidden), value=value)
        except Exception as error:
            return Observation(outcome="error", text=failure(error, hidden))

    def run(self, value: object, turn: "Turn") -> object:
        """Return what the function gives for a value; its exceptions are raised."""
        return turn.use_tool(self, self._named(value))

    def parts(self) -> Mapping[str, "DeclaredFlow"]:
        """Return the flow that is called, if it is one."""
        return {"": self.target} if isinstance(self.target, Orchestrates) else {}  # type: ignore[dict-item]

    def _named(self, value: object) -> dict[str, Any]:
        known = self.spec.schema.get("properties", {})
        needed = set(self.spec.schema.get("required", ()))
        if isinstance(value, Mapping) and needed <= value.keys() <= known.keys():
            return dict(value)
        if not known:
            return {}
        if len(needed) == 1 or len(known) == 1:
            return {next(iter(needed or known)): value}
        came = listing(map(str, value)) if isinstance(value, Mapping) else type(value).__name__
        raise InvalidInput(
            f"the tool `{self.name}` takes {listing(known)}, and its node got {came}. Let what "
            "comes before give a mapping of these names."
        )

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"


def _name_of(target: object) -> str:
    if isinstance(target, Computes | Orchestrates):
        return target.name
    named = target.func if isinstance(target, functools.partial) else target
    return str(getattr(named, "__name__", type(named).__name__))


def _function_of(target: object, name: str) -> Callable[..., object]:
    if isinstance(target, Computes):
        return forward_of(target)
    if isinstance(target, Orchestrates):
        return run_of(target)
    if not callable(target) or inspect.isclass(target):
        node = isinstance(target, FlowNode)
        how = ", such as `Flow.somatize(...)` of this node" if node else ""
        raise InvalidSchema(
            f"the tool `{name}` is of the type `{type(target).__name__}`. Give a function, a graph "
            f"or a flow{how}."
        )
    if inspect.iscoroutinefunction(target):
        raise InvalidSchema(
            f"`{name}` is an `async` function, which a tool does not wait for. Give one that runs "
            "it to its end, such as with `asyncio.run`."
        )
    if isinstance(target, functools.partial):
        bound = functools.partial(target)
        bound.__doc__ = target.func.__doc__
        return bound
    return target
