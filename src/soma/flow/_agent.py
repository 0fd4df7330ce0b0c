"""`Agent`: a model that calls tools until it has an answer, within a number of turns."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from soma.core import Reply, ToolCall
from soma.errors import BudgetSpent, InvalidInput
from soma.flow._computing import Orchestrates
from soma.flow._converse import Conversation, Final, calls_of, opening, too_many
from soma.flow._llm import Speaker
from soma.flow._model import Model
from soma.flow._pool import Pool
from soma.flow._prompt import Prompt
from soma.flow._running import Stopped
from soma.flow._shown import together
from soma.flow._suspend import Suspend
from soma.flow._tool import Tool

if TYPE_CHECKING:
    from soma.flow._declared import DeclaredFlow
    from soma.flow._turn import Turn


class Agent(Speaker):
    """A model that calls tools and hears what comes of it, until it gives an answer.

    >>> from tempfile import mkdtemp
    >>> from soma.core import Reply, ToolCall
    >>> from soma.flow import Agent, Flow
    >>> from soma.testing import ScriptedModel
    >>> def add(a: int, b: int) -> int:
    ...     '''Add two numbers.'''
    ...     return a + b
    >>> call = ToolCall(id="1", name="add", arguments='{"a": 1, "b": 2}')
    >>> model = ScriptedModel([
    ...     Reply(calls=(call,), stop="calls"),
    ...     lambda messages: f"It is {messages[-1].text}.",
    ... ])
    >>> flow = Flow.somatize(Agent(model, instructions="Calculate.", tools=[add]))
    >>> flow.run("1 + 2", root=mkdtemp()).output
    'It is 3.'

    Calls of one reply are made side by side. A tool that is not there, arguments that do not fit
    and an exception in a tool are told to the model.

    Args:
        model: a model, the name of one for the model of the flow, or None for that one as it is.
        instructions: what the model is told first.
        prompt: what it is asked then; `{input}` is the whole value, `{name}` a part of a mapping.
        tools: functions, `Tool`s, graphs and flows.
        turns: the most replies of the model.
        schema: what the answer has to be, as of an `LLM`.
        temperature: 0 for the likeliest words.
        most_tokens: at which a reply is cut.
        repairs: how often the model may try again when its answer does not fit the schema.
    """

    kind = "agent"
    tools: Sequence[object] = ()
    turns: int = 10

    def __init__(
        self,
        model: Model | str | None = None,
        *,
        instructions: str | None = None,
        prompt: str | None = None,
        tools: Sequence[object] | None = None,
        turns: int | None = None,
        schema: object = None,
        temperature: float | None = None,
        most_tokens: int | None = None,
        repairs: int | None = None,
    ) -> None:
        self._set(
            model=model,
            instructions=instructions,
            prompt=prompt,
            tools=tools,
            turns=turns,
            schema=schema,
            temperature=temperature,
            most_tokens=most_tokens,
            repairs=repairs,
        )
        self._check()
        if type(self.turns) is not int or self.turns < 1:
            raise InvalidInput(f"`turns` is {self.turns!r}; a number from 1 on is wanted.")
        if isinstance(self.tools, str) or not isinstance(self.tools, Sequence):
            raise InvalidInput(
                f"`tools` is {self.tools!r:.80}; a list of functions, tools, graphs and flows is "
                "wanted."
            )
        self.toolbox = tuple(one if isinstance(one, Tool) else Tool(one) for one in self.tools)

    def parts(self) -> Mapping[str, "DeclaredFlow"]:
        """Return the flows among its tools."""
        return {
            tool.name: tool.target  # type: ignore[misc]
            for tool in self.toolbox
            if isinstance(tool.target, Orchestrates)
        }

    def run(self, value: object, turn: "Turn") -> object:
        """Return the model's answer.

        Raises:
            BudgetSpent: all turns are used and there is no answer.
            NoAnswer: it refused, was cut off, or never fit the schema.
        """
        messages = opening(self.instructions, Prompt(self.prompt).fill(value))
        talk = Conversation(turn, self._manner(), messages)
        specs = tuple(tool.spec for tool in self.toolbox)
        while talk.turns < self.turns:
            found = talk.next(self._schema, specs)
            if isinstance(found, Final):
                return found.value
            if found.calls and specs:
                talk.observe(found.calls, self._observations(turn, found, talk.turns))
        raise BudgetSpent(
            f"the agent `{turn.node}` has used its {self.turns} turns and has no answer. To go on "
            "where it stands, give it more `turns` and call `flow.resume(...)`."
        )

    def _observations(self, turn: "Turn", reply: Reply, number: int) -> list[str]:
        """Return what came of each call, in their order; they are made side by side."""
        tools = {tool.name: tool for tool in self.toolbox}
        calls, rest = calls_of(reply)

        def made(index: int, call: ToolCall) -> str:
            if turn.scope.is_stopped():
                raise Stopped
            return turn.call_tool(
                tools.get(call.name), call, turn=number, number=index, cut=reply.stop == "length"
            )

        if len(calls) == 1:
            return [made(1, calls[0])]
        most = min(len(calls), turn.scope.running.side_by_side)
        with Pool(most, turn.scope.stop) as pool:
            flights = [pool.submit(partial(made, *call)) for call in enumerate(calls, 1)]
            for flight in flights:
                with suppress(Suspend):  # one that waits for a person lets the others go on
                    flight.result()
        return together([flight.result() for flight in flights]) + too_many(rest)
