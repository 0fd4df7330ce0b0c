"""`Turn`: what a node can do in its turn, each of it once in a run."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from soma.core import NodeId, Reply, ToolCall
from soma.errors import (
    InvalidInput,
    JournalMismatch,
    RunNotWritten,
    listing,
)
from soma.flow._asked import Asked, check_length, reply_to
from soma.flow._budget import Spending
from soma.flow._call import Call
from soma.flow._kept import Kept, digest, is_json, keep, restore
from soma.flow._model import Model
from soma.flow._node import part_prefix
from soma.flow._running import Scope
from soma.flow._shown import sendable, shown
from soma.flow._suspend import Suspend
from soma.tracking import (
    AnsweredLine,
    AskedLine,
    ModelLine,
    RouteLine,
    ValueLine,
)

if TYPE_CHECKING:
    from soma.flow._declared import DeclaredFlow
    from soma.flow._tool import Tool

Action = Literal["read", "write", "fit", "forward", "input", "output"]

_LONGEST_SHOWN = 2_000  # characters of a value, for people


class Turn:
    """One turn of a node.

    Args:
        scope: the flow that the node stands in.
        id: of the node in that flow.
    """

    def __init__(self, scope: Scope, id: NodeId) -> None:
        self.scope = scope
        self.node = scope.node(id)
        self.at = f"{scope.at}{id}"
        self.performed = False  # more than was recorded
        self.replies = 0

    def ask_model(
        self,
        model: Model,
        asked: Asked,
        *,
        turn: int,
        problem: Callable[[Reply], str | None] = lambda reply: None,
        part: str = "",
    ) -> Reply:
        """Return a model's reply.

        Args:
            turn: of the node, from 1.
            problem: says why a reply cannot be taken, for the journal.
            part: of the node that asks, where several do.

        Raises:
            BudgetSpent: turns, tokens or time are used up.
            ModelError: there is no reply.
        """
        running, spending = self.scope.running, self.scope.spending
        at = f"{self.at}/{part}{turn}/model"
        request = digest(running.secrets.hide(asked.request()))
        found = running.replay.find(at, ModelLine, request, self.node)
        if found is not None:
            spending.begin_turn()
            spending.recall(found.seconds)
        else:
            said = tuple(asked.messages[asked.known :])
            check_length(self.node, said)
            with running.performing(self.scope, at) as start:
                spending.begin_turn()
                self.mark()
                reply = reply_to(asked, model, self.node, spending, running.on_text)
                line = ModelLine(
                    at=at,
                    request=request,
                    node=self.node,
                    turn=turn,
                    known=asked.known,
                    messages=said,
                    reply=reply,
                    start=start,
                    seconds=running.seconds() - start,
                    tools=tuple(tool.name for tool in asked.tools),
                    problem=problem(reply),
                )
                found = running.write(line)
            running.log(f"tokens/{self.node}", found.reply.usage.tokens)
        self.replies += 1
        spending.add(found.messages, found.reply)
        return found.reply

    def call_tool(
        self, tool: "Tool | None", call: ToolCall, *, turn: int, number: int, cut: bool = False
    ) -> str:
        """Return what a model is told of a call that it wants made.

        Args:
            tool: None where there is none of that name.
            number: of the call among those of the turn, from 1.
            cut: whether the reply that wants it was cut off.
        """
        place = Call(self, f"{self.at}/{turn}/call_{number}", turn, call)
        found = place.recorded()
        if found is None:
            found = place.keep(*place.made(tool, cut=cut))
        return found.observation

    def use_tool(self, tool: "Tool", arguments: Mapping[str, object]) -> object:
        """Return what a tool gives for arguments of the flow itself; its exceptions are raised."""
        secrets = self.scope.running.secrets
        call = ToolCall(id="", name=tool.name, arguments=shown(dict(arguments), secrets.text))
        asked = digest(secrets.hide([tool.name, dict(arguments)]))
        place = Call(self, f"{self.at}/call", 1, call, asked)
        found = place.recorded()
        if found is None:
            value = place.value(tool, arguments)
            kept = keep(value, self.scope.running.folder, place.at, secrets)
            place.keep("ok", shown(value, secrets.text), kept)
            return value
        return self._restored(Kept(found.value, found.blob), place.at)

    def value(
        self,
        action: Action,
        request: object,
        compute: Callable[[], object],
        *,
        where: str | None = None,
        part: str = "",
    ) -> Any:
        """Return what `compute` gives, which is computed once in a run and kept.

        Args:
            request: what it depends on; another one in a resumed run is an error.
            where: the file that is read or written.
            part: of the node, where it keeps several values.
        """
        running = self.scope.running
        at = f"{self.at}/{part}{action}"
        asked = digest(running.secrets.hide(request))
        found = running.replay.find(at, ValueLine, asked, self.node)
        if found is not None:
            self.scope.spending.recall(found.seconds)
            return self._restored(Kept(found.value, found.blob), at)
        with running.performing(self.scope, at) as start:
            self.mark()
            value = running.secrets.hide(compute())
            kept = keep(value, running.folder, at, running.secrets)
            line = ValueLine(
                at=at,
                request=asked,
                node=self.node,
                action=action,
                start=start,
                seconds=running.seconds() - start,
                shown=shown(value, running.secrets.text)[:_LONGEST_SHOWN],
                where=where,
                value=kept.value,
                blob=kept.blob,
            )
            running.write(line)
        return value

    def route(
        self, labels: Sequence[str], request: object, choose: Callable[[], str], *, part: str = ""
    ) -> str:
        """Return the label that `choose` gives, which is asked once in a run.

        Args:
            part: of the node, where it chooses several times.
        """
        running = self.scope.running
        at = f"{self.at}/{part}route"
        asked = digest(running.secrets.hide(request))
        found = running.replay.find(at, RouteLine, asked, self.node)
        if found is None:
            running.check_open(at)
            start = running.seconds()
            label = choose()
            self.mark()
            line = RouteLine(
                at=at,
                request=asked,
                node=self.node,
                label=label,
                labels=tuple(labels),
                start=start,
                seconds=running.seconds() - start,
            )
            found = running.write(line)
        if found.label not in labels:
            raise JournalMismatch(
                f"the journal tells that `{at}` chose {found.label!r:.80}, and its labels are "
                f"{listing(labels)}. Start another run with `flow.run(...)`."
            )
        return found.label

    def ask(self, question: str, *, at: str = "") -> Any:
        """Return a person's answer.

        Args:
            at: the place of the question; that of the node by default.

        Raises:
            Suspend: there is none yet.
            InvalidInput: the answer is no plain data.
        """
        running = self.scope.running
        at = at or f"{self.at}/ask"
        question = running.secrets.text(sendable(question))
        request = digest(question)
        known = running.replay.question(at, request, self.node)
        answered = running.replay.answer(at)
        if known is not None and answered is not None:
            return answered.answer
        if known is None:
            self.mark()
            running.write(
                AskedLine(
                    at=at,
                    request=request,
                    node=self.node,
                    question=question,
                    start=running.seconds(),
                )
            )
        for name in (at, self.node):
            if name in running.answers:
                answer = running.secrets.hide(running.answers[name])
                if not is_json(answer):
                    raise InvalidInput(
                        f"the answer to `{at}` is {answer!r:.80}; a text is wanted, or other plain "
                        "data: numbers, True, False, None, and lists and dicts of these."
                    )
                self.mark()
                line = AnsweredLine(at=at, node=self.node, answer=answer, start=running.seconds())
                return running.write(line).answer
        running.check_open(at)
        raise Suspend(question, at=at)

    def inside(
        self, flow: "DeclaredFlow", value: object, *, name: str = "", at: str | int | None = None
    ) -> object:
        """Return what a flow gives that is a part of this node.

        Args:
            name: of the part, as `parts` has it.
            at: where in this turn it runs, in place of the name.
        """
        above = self.scope
        place = name if at is None else str(at)
        spending = above.spending
        if flow.budget is not None:
            spending = Spending(flow.budget, flow.name, above.running.seconds, spending)
        scope = Scope(
            running=above.running,
            nodes=part_prefix(self.node, name),
            at=f"{self.at}/{place}/" if place else f"{self.at}/",
            model=flow.model or above.model,
            spending=spending,
            turn=self,
        )
        return above.running.walk(flow, value, scope)

    def model(self, own: object) -> tuple[Model, str | None]:
        """Return the model that a node asks, and by which name, from what the node says.

        Raises:
            InvalidInput: there is none.
        """
        found = self.scope.model if own is None or isinstance(own, str) else own
        if not isinstance(found, Model):
            raise InvalidInput(
                f"the node `{self.node}` has {'no model' if found is None else repr(found)}; give "
                'one to it or to its flow, as in `Flow.somatize(..., model=OpenAIModel("..."))`.'
            )
        return found, own if isinstance(own, str) else None

    def _restored(self, kept: Kept, at: str) -> object:
        try:
            return restore(kept, self.scope.running.folder)
        except (OSError, ValueError) as error:
            told = str(error).rstrip(".")
            raise RunNotWritten(
                f"what `{at}` gave cannot be read from `{kept.blob}`: {told}. The run cannot go "
                "on; start another one."
            ) from error

    def mark(self) -> None:
        """Note that something was done that was not recorded."""
        turn: Turn | None = self
        while turn is not None:
            turn.performed = True
            turn = turn.scope.turn
