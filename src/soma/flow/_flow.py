"""`Flow`: nodes of reasoning and of computing connected into one, which runs and goes on."""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Self

from soma.core import as_composable
from soma.errors import InvalidInput
from soma.flow._budget import Budget, as_budget
from soma.flow._checks import compiled
from soma.flow._declared import DeclaredFlow
from soma.flow._model import Model
from soma.flow._session import FlowRun, go_on, start


class Flow(DeclaredFlow):
    """Language models, tools, people and graphs connected with `>>` and `|` into one that runs.

    >>> from tempfile import mkdtemp
    >>> from soma import Flow
    >>> from soma.flow import LLM
    >>> from soma.testing import ScriptedModel
    >>> flow = Flow.somatize(
    ...     LLM(prompt="Name an animal that says {input}.") >> LLM(prompt="Draw {input}"),
    ...     model=ScriptedModel(["a cat", "=^.^="]),
    ... )
    >>> result = flow.run("meow", root=mkdtemp())
    >>> result.output, result.turns
    ('=^.^=', 2)

    Args:
        name: what the flow is called as part of another one, and its runs by default.
        model: that is asked by the nodes that have none.
        budget: of each run; of a flow in another one, of each time that it runs.
        secrets: texts that no file of a run may hold, beside the keys of models and the values of
            variables of the environment that are named like a key, token, secret or password, and
            the passwords in addresses there.
        side_by_side: the most models and tools at work at once.
        on_text: is told `(node id, piece)` of what models say while it comes, on the thread that
            asked; for that a model has to stream, as `OpenAIModel(..., stream=True)` does.
    """

    def __init__(
        self,
        *,
        name: str = "flow",
        model: Model | None = None,
        budget: Budget | None = None,
        secrets: Iterable[str] = (),
        side_by_side: int = 4,
        on_text: Callable[[str, str], None] | None = None,
    ) -> None:
        super().__init__(name=name, model=model, budget=budget)
        if type(side_by_side) is not int or side_by_side < 1:
            raise InvalidInput(f"`side_by_side` is {side_by_side!r}; a number from 1 on is wanted.")
        self.secrets = tuple(secrets)
        self.side_by_side = side_by_side
        self.on_text = on_text

    @classmethod
    def somatize(
        cls,
        expression: object,
        *,
        name: str = "flow",
        model: Model | None = None,
        budget: Budget | None = None,
        secrets: Iterable[str] = (),
        side_by_side: int = 4,
        on_text: Callable[[str, str], None] | None = None,
    ) -> Self:
        """Make a flow of an expression of nodes, graphs and flows, `>>` and `|`.

        Raises:
            CompileError: with all that is wrong in the expression.
        """
        flow = cls(
            name=name,
            model=model,
            budget=budget,
            secrets=secrets,
            side_by_side=side_by_side,
            on_text=on_text,
        )
        flow.topology.add_expression(as_composable(expression, "in `somatize`"))
        compiled(flow, "inference", needs_model=False)  # another flow may have one for it
        return flow

    def run(
        self,
        value: object = None,
        *,
        root: "str | PathLike[str]" = ".soma",
        name: str | None = None,
        tags: Iterable[str] = (),
        params: Mapping[str, object] | None = None,
        answers: Mapping[str, object] | None = None,
        budget: Budget | None = None,
    ) -> "FlowRun":
        """Run on a value, and keep all that happens in a directory below `<root>/runs`.

        However it ends, by an error, Ctrl-C, a question, a crash: `resume` goes on from there.

        Args:
            value: what the first nodes get: plain data, arrays or tensors.
            root: the folder of the runs' folder.
            name: for people; several runs may have the same.
            params: what the run was started with, for people.
            answers: to questions, by the id of the node that asks.
            budget: in place of the flow's own, also when the run is resumed.

        Raises:
            Suspended: a person is asked and there is no answer.
            BudgetSpent: the budget is used up.
            ModelError: a model gave no reply.
            CompileError: the flow cannot run.
        """
        return start(
            self, value, root=root, name=name, tags=tags, params=params, answers=answers,
            budget=as_budget(budget),
        )  # fmt: skip

    def resume(
        self,
        run: "str | PathLike[str]",
        *,
        root: "str | PathLike[str]" = ".soma",
        answer: object = None,
        answers: Mapping[str, object] | None = None,
        budget: Budget | None = None,
    ) -> "FlowRun":
        """Go on with a run where it ended; nothing that is in its journal happens again.

        A run that has completed gives its output again.

        Args:
            run: its id below `root`, its directory, or a `RunView` of it.
            answer: to the one question that is open.
            answers: to several, by the id of the node that asks or the place of the question.
            budget: in place of the one that it had.

        Raises:
            UnknownRun: there is none.
            RunBusy: it has not ended.
            JournalMismatch: this flow asks something else than the run did.
        """
        return go_on(self, run, root=root, answer=answer, answers=answers, budget=as_budget(budget))
