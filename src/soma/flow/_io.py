"""`IO`: reads a file, writes one, asks a person."""

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from soma.errors import InvalidInput
from soma.files import write_atomically
from soma.flow._node import FlowNode
from soma.flow._prompt import INPUT, Prompt
from soma.flow._shown import as_text

if TYPE_CHECKING:
    from soma.flow._turn import Turn

_MOST_BYTES = 16 << 20  # of a file that is read


class IO(FlowNode):
    """Where a flow meets files and people: `IO.read`, `IO.write` and `IO.ask` make such nodes.

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from soma.flow import IO, Flow
    >>> note = Path(mkdtemp(), "note.txt")
    >>> flow = Flow.somatize(IO.write(note) >> IO.read(note))
    >>> flow.run("Remember.", root=mkdtemp()).output
    'Remember.'
    """

    kind = "io"

    @staticmethod
    def read(path: str | PathLike[str]) -> "Read":
        """Return a node that gives the text of a file, in UTF-8 and of 16 MiB at most."""
        return Read(path)

    @staticmethod
    def write(path: str | PathLike[str]) -> "Write":
        """Return a node that writes what it gets to a file, and gives it on.

        A text is written as it is, other values as JSON. The folder exists; the file is whole, or
        the old one.
        """
        return Write(path)

    @staticmethod
    def ask(question: str = "{input}") -> "Ask":
        """Return a node that gives a person's answer.

        Where there is none the run stops; `flow.resume(..., answer=...)` goes on.

        Args:
            question: with fields, as a prompt of an `LLM`.
        """
        return Ask(question)


class Read(IO):
    """Gives the text of a file."""

    _called = "read"

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = fspath(path)

    def run(self, value: object, turn: "Turn") -> object:
        """Return the text, read once in a run."""
        return turn.value("read", self.path, self._text, where=self.path)

    def gives(self) -> frozenset[str]:
        """Return that it gives a text."""
        return frozenset()

    def _text(self) -> str:
        with Path(self.path).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise InvalidInput(
                f"`{self.path}` has more than {_MOST_BYTES:,} bytes, the most that a flow reads. "
                "Let a tool read the part that is wanted."
            )
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise InvalidInput(
                f"`{self.path}` is no text in UTF-8: {error.reason} at byte {error.start}. Let a "
                "tool read it."
            ) from error


class Write(IO):
    """Writes what it gets to a file, and gives it on."""

    _called = "write"

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = fspath(path)

    def run(self, value: object, turn: "Turn") -> object:
        """Return `value`, written once in a run."""
        text = as_text(value)
        path = Path(self.path).absolute()

        def write() -> None:
            if not path.parent.is_dir():
                raise FileNotFoundError(
                    f"`{self.path}` was to be written, and there is no folder `{path.parent}`. "
                    "Make it first."
                )
            write_atomically(str(path), [text.encode()], durable=True)

        turn.value("write", [self.path, text], write, where=self.path)
        return value


class Ask(IO):
    """Gives a person's answer."""

    _called = "ask"

    def __init__(self, question: str = "{input}") -> None:
        self.question = question
        self._prompt = Prompt(question)

    def run(self, value: object, turn: "Turn") -> object:
        """Return the answer; a run without one stops."""
        return turn.ask(self._prompt.fill(value))

    def missing(self, given: frozenset[str]) -> list[str]:
        """Return the fields of its question that are not among `given`."""
        return sorted(self._prompt.fields - given - {INPUT})
