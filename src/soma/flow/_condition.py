"""`Condition`: goes one of several ways; `Condition.loop` goes the same way again and again."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from soma.draw import printable
from soma.errors import InvalidInput, InvalidOutput, did_you_mean, listing
from soma.flow._converse import Conversation, Manner, only_answer, opening
from soma.flow._declared import DeclaredFlow
from soma.flow._llm import LLM
from soma.flow._model import Model
from soma.flow._node import FlowNode
from soma.flow._prompt import Prompt
from soma.flow._schema import Schema

if TYPE_CHECKING:
    from soma.flow._turn import Turn

Choice = Callable[[Any], object] | Model | LLM

_QUESTION = "Which of these labels fits what follows: {labels}?\n\n{value}"
_AGAIN, _DONE, _BOUND = "again", "done", "bound"
_YES_NO: dict[object, str] = {True: "yes", False: "no"}


class Condition(FlowNode):
    """Goes one of several ways, each a flow of its own; it gives what the way gives.

    >>> from tempfile import mkdtemp
    >>> from soma.flow import LLM, Condition, Flow
    >>> from soma.testing import ScriptedModel
    >>> shorten = LLM(ScriptedModel(["Short."]), prompt="Shorten: {input}")
    >>> flow = Flow.somatize(Condition(lambda text: len(text) > 10, {"yes": shorten, "no": None}))
    >>> flow.run("A very long text.", root=mkdtemp()).output
    'Short.'

    Args:
        choose: a function of the value that gives a label, True for `"yes"` or False for `"no"`;
            a model, which is asked for one of the labels; or an `LLM`, which asks by its own
            prompt.
        cases: for each label an expression, a graph or a flow; None gives the value on.

    Raises:
        InvalidInput: there is no case, or `choose` is nothing that chooses.
    """

    kind = "condition"
    hands_over = True

    def __init__(self, choose: Choice, cases: Mapping[str, object]) -> None:
        if not isinstance(cases, Mapping) or not cases:
            raise InvalidInput(
                f"the cases of a condition are {cases!r:.80}; a mapping from labels is wanted, "
                'such as `{"yes": LLM(...), "no": None}`.'
            )
        self._decision = Decision(choose, [_label(label) for label in cases])
        self.cases = {
            _label(label): None if case is None else DeclaredFlow.of(case, _label(label))
            for label, case in cases.items()
        }

    def run(self, value: object, turn: "Turn") -> object:
        """Return what the chosen case gives."""
        labels = [*self.cases]
        label = turn.route(labels, [labels, value], self._decision.choice(value, turn))
        flow = self.cases[label]
        return value if flow is None else turn.inside(flow, value, name=label)

    def parts(self) -> Mapping[str, DeclaredFlow]:
        """Return the flows of its cases."""
        return {label: flow for label, flow in self.cases.items() if flow is not None}

    def with_parts(self, parts: Mapping[str, DeclaredFlow]) -> None:
        """Take these flows for its cases."""
        self.cases = {**self.cases, **parts}

    def needs_model(self) -> bool:
        """Whether a model of the flow chooses."""
        return self._decision.needs_model()

    @staticmethod
    def loop(body: object, *, until: Choice, at_most: int) -> "Loop":
        """Return a node that runs `body` on its own result until that is good.

        Args:
            body: an expression, a graph or a flow.
            until: a function of the result that gives True at the end; a model, which is asked for
                `"yes"` or `"no"`; or an `LLM`, which asks by its own prompt.
            at_most: the rounds after which it goes on with what there is; the journal says that
                the bound was met.
        """
        return Loop(body, until, at_most)


class Loop(FlowNode):
    """Runs a flow on its own result, a bounded number of times; `Condition.loop` makes it."""

    kind = "loop"
    hands_over = True

    def __init__(self, body: object, until: Choice, at_most: int) -> None:
        if type(at_most) is not int or at_most < 1:
            raise InvalidInput(f"`at_most` of a loop is {at_most!r}; a number from 1 on is wanted.")
        self.body = DeclaredFlow.of(body, "body")
        self.at_most = at_most
        self._decision = Decision(until, [*_YES_NO.values()])

    def run(self, value: object, turn: "Turn") -> object:
        """Return the result of the last round."""
        for number in range(1, self.at_most + 1):
            value = turn.inside(self.body, value, at=number)
            choose = partial(self._label, self._decision.choice(value, turn, f"{number}/"), number)
            if turn.route([_AGAIN, _DONE, _BOUND], value, choose, part=f"{number}/") != _AGAIN:
                break
        return value

    def _label(self, choose: Callable[[], str], number: int) -> str:
        if choose() == "yes":
            return _DONE
        return _BOUND if number == self.at_most else _AGAIN

    def parts(self) -> Mapping[str, DeclaredFlow]:
        """Return the flow that is repeated."""
        return {"": self.body}

    def with_parts(self, parts: Mapping[str, DeclaredFlow]) -> None:
        """Repeat another flow."""
        self.body = parts[""]

    def needs_model(self) -> bool:
        """Whether a model of the flow decides."""
        return self._decision.needs_model()


class Decision:
    """Chooses one of some labels for a value."""

    def __init__(self, choose: Choice, labels: list[str]) -> None:
        if not callable(choose) and not isinstance(choose, Model | LLM):
            how = f" Write `LLM(prompt={choose!r:.80})`." if isinstance(choose, str) else ""
            raise InvalidInput(
                f"a condition chooses by {choose!r:.80}; a function, a model or an `LLM` is wanted."
                + how
            )
        self._choose = choose
        self._labels = labels

    def needs_model(self) -> bool:
        """Whether the flow's model is asked."""
        return isinstance(self._choose, LLM) and self._choose.needs_model()

    def choice(self, value: object, turn: "Turn", part: str = "") -> Callable[[], str]:
        """Return what gives a label: a model is asked now, since its replies are kept themselves.

        Args:
            part: of the node, where it chooses several times.
        """
        choose = self._choose
        if isinstance(choose, LLM | Model):
            label = self._of_model(choose, value, turn, part)
            return lambda: label
        return partial(self._of_function, choose, value, turn)

    def _of_function(self, choose: Callable[[Any], object], value: object, turn: "Turn") -> str:
        chosen = choose(value)
        label = _YES_NO[bool(chosen)] if _is_bool(chosen) else chosen
        if not isinstance(label, str) or label not in self._labels:
            raise InvalidOutput(
                f"the condition `{turn.node}` chose {chosen!r:.80}, which is none of its labels "
                f"{listing(self._labels)}.{did_you_mean(str(label), self._labels)} Let its "
                "function give one of them; True stands for `yes`, False for `no`."
            )
        return label

    def _of_model(self, choose: LLM | Model, value: object, turn: "Turn", part: str) -> str:
        instructions = None
        if isinstance(choose, LLM):
            text, instructions = Prompt(choose.prompt).fill(value), choose.instructions
            manner = choose._manner()
        else:
            text = Prompt(_QUESTION).fill({"labels": ", ".join(self._labels), "value": value})
            manner = Manner(model=choose, temperature=None, most_tokens=None, repairs=1)
        talk = Conversation(turn, manner, opening(instructions, text), part=f"{part}choose_")
        return str(only_answer(talk, _OneOf(self._labels)))


class _OneOf(Schema):
    """One of some labels, in an object as servers want it, or bare where they keep to no schema."""

    def __init__(self, labels: list[str]) -> None:
        super().__init__(
            {
                "type": "object",
                "properties": {"label": {"type": "string", "enum": labels}},
                "required": ["label"],
                "additionalProperties": False,
            }
        )
        self._labels = labels

    def parse(self, text: str) -> str:
        """Return the label that a text gives."""
        bare = text.strip().strip("\"'`.")
        return bare if bare in self._labels else str(super().parse(text)["label"])


def _label(label: object) -> str:
    if isinstance(label, bool):
        return _YES_NO[label]
    if (
        isinstance(label, str)
        and label
        and not set(label) & set("/[].")
        and printable(label) == label
    ):
        return label
    raise InvalidInput(
        f"a case of a condition has the label {label!r:.80}; a text without `/`, `.`, brackets "
        "and control characters is wanted."
    )


def _is_bool(chosen: object) -> bool:
    return isinstance(chosen, bool) or type(chosen).__name__ in ("bool_", "bool")
