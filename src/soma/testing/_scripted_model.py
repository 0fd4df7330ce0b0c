"""A language model that says what a test wrote."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from soma.core import Message, Reply, ToolSpec
from soma.errors import InvalidInput, ModelError
from soma.flow import Options

Answer = str | Reply | BaseException
Scripted = Answer | Callable[[Sequence[Message]], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a model was asked once."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    schema: Mapping[str, object] | None
    options: Options


class ScriptedModel:
    """A model that gives its replies in order, and keeps what it was asked in `asked`.

    >>> from soma.core import Message
    >>> model = ScriptedModel(["Hello.", lambda messages: messages[-1].text.upper()])
    >>> model.complete([Message(role="user", text="hi")]).text
    'Hello.'
    >>> model.complete([Message(role="user", text="bye")]).text
    'BYE'
    >>> len(model.asked)
    2

    Args:
        replies: texts, replies, exceptions to raise, or functions from the messages to one of
            these.
    """

    def __init__(self, replies: Iterable[Scripted]) -> None:
        if isinstance(replies, str | Reply):
            raise InvalidInput(f"one reply came, {replies!r:.80}; a list of them is wanted.")
        self.replies = tuple(replies)
        self.asked: list[Asked] = []
        self._lock = Lock()  # branches of a flow ask side by side

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, object] | None = None,
        options: Options = Options(),  # noqa: B008 - it is frozen
    ) -> Reply:
        """Return the next reply.

        Raises:
            ModelError: there is none left.
        """
        asked = Asked(messages=tuple(messages), tools=tuple(tools), schema=schema, options=options)
        with self._lock:
            self.asked.append(asked)
            turn = len(self.asked)
        if turn > len(self.replies):
            raise ModelError(
                f"a scripted model was asked {turn} times and has {len(self.replies)} replies. The "
                f"last message is {messages[-1].text if messages else ''!r:.200}. Script one more "
                "reply, or let the flow end before."
            )
        reply = _reply(self.replies[turn - 1], messages)
        if options.on_text and reply.text:
            options.on_text(reply.text)
        return reply

    def __repr__(self) -> str:
        return f"<ScriptedModel: {len(self.asked)} of {len(self.replies)} replies given>"


def _reply(scripted: Scripted, messages: Sequence[Message]) -> Reply:
    if callable(scripted):
        scripted = scripted(tuple(messages))
    match scripted:
        case BaseException():
            raise scripted
        case str():
            return Reply(text=scripted, model="scripted")
        case Reply():
            return scripted
    raise InvalidInput(
        f"a {type(scripted).__name__} came as a scripted reply. Give a text, a `Reply`, an "
        "exception, or a function from the messages to one of these."
    )
