"""`LLM`: one question to a language model; `_agent.py` has a node that goes on."""

from numbers import Real
from typing import TYPE_CHECKING

from soma.errors import InvalidInput
from soma.flow._converse import Conversation, Manner, as_schema, only_answer, opening
from soma.flow._model import Model
from soma.flow._node import FlowNode
from soma.flow._prompt import INPUT, Prompt
from soma.flow._schema import Schema

if TYPE_CHECKING:
    from soma.flow._turn import Turn


class Speaker(FlowNode):
    """A node that asks a model; what its arguments leave out stays as the class has it."""

    model: Model | str | None = None
    instructions: str | None = None
    prompt: str = "{input}"
    schema: object = None
    temperature: float | None = None
    most_tokens: int | None = None
    repairs: int = 1

    def needs_model(self) -> bool:
        """Whether it has no model of its own."""
        return not isinstance(self.model, Model)

    def missing(self, given: frozenset[str]) -> list[str]:
        """Return the fields of its prompt that are not among `given`."""
        return sorted(Prompt(self.prompt).fields - given - {INPUT})

    def gives(self) -> frozenset[str] | None:
        """Return that it gives a text, if it has no schema."""
        return frozenset() if self.schema is None else None

    def _manner(self) -> Manner:
        return Manner(
            model=self.model,
            temperature=self.temperature,
            most_tokens=self.most_tokens,
            repairs=self.repairs,
        )

    def _set(self, **given: object) -> None:
        """Keep the arguments that were given; the others stay as the class has them."""
        for name, value in given.items():
            if value is not None:
                setattr(self, name, value)

    def _check(self) -> None:
        """Find what is wrong with the arguments where they are written."""
        Prompt(self.prompt)
        self._schema: Schema | None = as_schema(self.schema)
        model = self.model
        if isinstance(model, str) and not set(model).isdisjoint(" \n{}"):
            raise InvalidInput(
                f"the model of `{type(self).__name__}` is the text {model!r:.80}, which is no name "
                "of one. Write a prompt as `prompt=...`."
            )
        if not (model is None or isinstance(model, str | Model)):
            raise InvalidInput(
                f"the model of `{type(self).__name__}` is {model!r:.80}; give a model, such as "
                '`OpenAIModel("...")`, or the name of one for the model of the flow.'
            )
        heat, most = self.temperature, self.most_tokens
        if heat is not None and not (isinstance(heat, Real) and heat >= 0):
            raise InvalidInput(f"`temperature` is {heat!r:.80}; a number from 0 on is wanted.")
        if most is not None and (type(most) is not int or most < 1):
            raise InvalidInput(f"`most_tokens` is {most!r:.80}; a number from 1 on is wanted.")
        if type(self.repairs) is not int or self.repairs < 0:
            raise InvalidInput(f"`repairs` is {self.repairs!r}; a number from 0 on is wanted.")


class LLM(Speaker):
    """One question to a language model: it gives the reply, or the value that a schema makes of it.

    >>> from tempfile import mkdtemp
    >>> from soma.flow import LLM, Flow
    >>> from soma.testing import ScriptedModel
    >>> flow = Flow.somatize(LLM(ScriptedModel(["A cat."]), prompt="What is this? {input}"))
    >>> flow.run("meow", root=mkdtemp()).output
    'A cat.'

    What is not given stays as the class has it, so that a subclass may set or search it:

    >>> import soma
    >>> class Sober(LLM):
    ...     temperature: float = soma.search(0.0, 1.0)
    >>> Sober().temperature
    0.5

    Args:
        model: a model, the name of one for the model of the flow, or None for that one as it is.
        prompt: what is asked; `{input}` is the whole value, `{name}` a part of a mapping.
        instructions: what the model is told first.
        schema: what the reply has to be: a dataclass, `Literal[...]`, a JSON schema and the like.
        temperature: 0 for the likeliest words.
        most_tokens: at which a reply is cut, which is an error.
        repairs: how often the model may try again when its reply does not fit the schema.
    """

    kind = "llm"

    def __init__(
        self,
        model: Model | str | None = None,
        *,
        prompt: str | None = None,
        instructions: str | None = None,
        schema: object = None,
        temperature: float | None = None,
        most_tokens: int | None = None,
        repairs: int | None = None,
    ) -> None:
        self._set(
            model=model,
            prompt=prompt,
            instructions=instructions,
            schema=schema,
            temperature=temperature,
            most_tokens=most_tokens,
            repairs=repairs,
        )
        self._check()

    def run(self, value: object, turn: "Turn") -> object:
        """Return the model's answer.

        Raises:
            NoAnswer: it refused, was cut off, or never fit the schema.
        """
        messages = opening(self.instructions, Prompt(self.prompt).fill(value))
        return only_answer(Conversation(turn, self._manner(), messages), self._schema)
