"""One call of a tool: made once, or told as unknown; a person may be asked on the way."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from msgspec import convert, to_builtins

from soma.core import ToolCall
from soma.errors import BudgetSpent, JournalMismatch, RunNotWritten
from soma.flow._computing import Orchestrates
from soma.flow._kept import Kept, digest
from soma.flow._running import Stopped
from soma.flow._shown import shown
from soma.flow._suspend import Suspend, asking
from soma.flow._tool import Tool
from soma.tracking import BegunLine, ToolLine

if TYPE_CHECKING:
    from soma.flow._declared import DeclaredFlow
    from soma.flow._turn import Turn

T = TypeVar("T")
Told = Literal["ok", "error", "refused", "unknown"]

# What ends a run is no observation, wherever it comes up.
_ENDING = (BudgetSpent, JournalMismatch, RunNotWritten, Stopped)
_UNKNOWN = (
    "It is not known whether this call took effect: the program ended while it was made. It was "
    "not made again. Find out before you go on."
)
_CUT = "It was not called: your reply was cut off before its arguments. Call it again."


class Call:
    """A call at its place in a run.

    Args:
        at: the place.
        number: the turn of the node, from 1.
        request: what stands for the call in the journal; by default name and arguments.
    """

    def __init__(
        self, turn: "Turn", at: str, number: int, call: ToolCall, request: str | None = None
    ) -> None:
        self.at = at
        self._turn = turn
        self._running = turn.scope.running
        self._number = number
        self._call = convert(self._running.secrets.hide(to_builtins(call)), ToolCall)
        self._arguments = call.arguments
        self._request = request or digest([self._call.name, self._call.arguments])
        self._start = self._running.seconds()
        self._failure: BaseException | None = None

    def recorded(self) -> ToolLine | None:
        """Return what came of it before, if it was made."""
        found = self._running.replay.find(self.at, ToolLine, self._request, self._turn.node)
        if found is not None:
            spending = self._turn.scope.spending
            spending.recall(found.seconds)
            for line in self._running.replay.replies(self.at):  # of a flow that was called
                spending.begin_turn()
                spending.add(line.messages, line.reply)
        return found

    def made(self, tool: Tool | None, *, cut: bool) -> tuple[Told, str]:
        """Make the call; return how it ended, and what the model is told. An exception is told.

        Args:
            tool: None where there is none of that name.
            cut: the reply that wants it was cut off, so that no arguments may not mean none.
        """
        if tool is None:
            return "refused", (
                f"There is no tool `{self._call.name}`. Call one of those that you were told of."
            )
        if cut and not self._arguments.strip():
            return "refused", _CUT
        if tool.once and self._running.replay.is_lost(self.at):
            return "unknown", _UNKNOWN
        answer = self._answer_of_suspend()
        if answer is not None:
            return "ok", shown(answer[0])
        flow, hidden = tool.target, self._running.secrets.text
        if isinstance(flow, Orchestrates):
            inside = partial(self._inside, flow, tool.name)
            observation = tool.call(self._arguments, inside, hidden)
        else:
            try:
                observation = self._performed(
                    tool, lambda: tool.call(self._arguments, hidden=hidden)
                )
            except Suspend as suspended:
                return "ok", shown(self._answered(suspended))
        if self._failure is not None:
            raise self._failure
        return observation.outcome, observation.text

    def value(self, tool: Tool, arguments: Mapping[str, object]) -> object:
        """Return what the tool gives for arguments of the flow itself."""
        answer = self._answer_of_suspend()
        if answer is not None:
            return answer[0]
        flow = tool.target
        if isinstance(flow, Orchestrates):
            return self._inside(flow, "", **arguments)
        try:
            value = self._performed(tool, lambda: tool.function(**arguments))
        except Suspend as suspended:
            return self._answered(suspended)
        return self._running.secrets.hide(value)

    def keep(self, outcome: Told, observation: str, kept: Kept = Kept(None, None)) -> ToolLine:  # noqa: B008 - it is frozen
        """Keep what came of it."""
        line = ToolLine(
            at=self.at,
            request=self._request,
            node=self._turn.node,
            turn=self._number,
            call=self._call,
            outcome=outcome,
            observation=observation,
            start=self._start,
            seconds=self._running.seconds() - self._start,
            value=kept.value,
            blob=kept.blob,
        )
        self._turn.mark()
        return self._running.write(line)

    def _inside(self, flow: Orchestrates, name: str, input: object) -> object:
        at = self.at.removeprefix(f"{self._turn.at}/")
        inner = cast("DeclaredFlow", flow)
        try:
            return self._turn.inside(inner, input, name=name, at=at)
        except _ENDING as error:
            self._failure = error
            raise

    def _performed(self, tool: Tool, function: Callable[[], T]) -> T:
        numbers = count(1)

        def answer(question: str) -> object:
            try:
                known = self._running.replay.answer(at := f"{self.at}/ask_{next(numbers)}")
                found = self._turn.ask(question, at=at)
                if known is None and tool.once:  # the call has not stopped, and may be lost yet
                    self._running.write(BegunLine(at=self.at, node=self._turn.node))
            except BaseException as error:
                self._failure = error  # also where the tool catches it
                raise
            return found

        with self._running.performing(self._turn.scope, self.at):
            self._turn.mark()
            if tool.once:
                self._running.write(BegunLine(at=self.at, node=self._turn.node))
            with asking(answer):
                found = function()
        if self._failure is not None:
            raise self._failure
        return found

    def _answer_of_suspend(self) -> tuple[object] | None:
        """Return the answer to a `Suspend` that the tool raised before."""
        at = f"{self.at}/suspend"
        asked = self._running.replay.asked(at)
        return None if asked is None else (self._turn.ask(asked.question, at=at),)

    def _answered(self, suspended: Suspend) -> object:
        if suspended.at:  # `ask` has kept the question already
            raise suspended
        return self._turn.ask(suspended.question, at=f"{self.at}/suspend")
