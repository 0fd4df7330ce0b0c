"""Renders a diagnostic as a terminal shows it."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from soma.draw import cells, printable, shortened, wrapped

_WIDTH = 88
_LONGEST_LABEL = 40
_NARROWEST = 48  # a remark under a mark far to the right still gets this many columns
_ARROW = " → "
_ELIDED = "…"
_HELP = "  = help: "


class Renderable(Protocol):
    """What is shown of a diagnostic."""

    @property
    def level(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def node(self) -> str | None: ...
    @property
    def message(self) -> str: ...
    @property
    def position(self) -> int | None: ...
    @property
    def drawn(self) -> Sequence[str]: ...
    @property
    def marked(self) -> tuple[int, int]: ...
    @property
    def remarks(self) -> Sequence[str]: ...
    @property
    def help(self) -> str | None: ...


def render(diagnostic: Renderable) -> str:
    """Return the diagnostic as lines of text, safe to print whatever the names in it hold."""
    return "\n".join(line.rstrip() for line in _lines(diagnostic))


def _lines(diagnostic: Renderable) -> Iterator[str]:
    yield f"{diagnostic.level}[{printable(diagnostic.code)}]: {printable(diagnostic.message)}"
    if diagnostic.position is not None:
        yield f"  --> pipeline node {diagnostic.position}"
    elif diagnostic.node is not None:
        yield f"  --> node `{printable(diagnostic.node)}`"
    if diagnostic.drawn or diagnostic.remarks:
        yield "  |"
        yield from (f"  | {line}" for line in _place(diagnostic))
    if diagnostic.help is not None:
        yield "  |"
        first, *others = wrapped(printable(diagnostic.help), _WIDTH - len(_HELP)) or [""]
        yield f"{_HELP}{first}"
        yield from (f"{' ' * len(_HELP)}{line}" for line in others)


def _place(diagnostic: Renderable) -> Iterator[str]:
    names = [_boxed(label) for label in diagnostic.drawn]
    start, stop = diagnostic.marked
    indent = cells("".join(f"{name}{_ARROW}" for name in names[:start])) if start < stop else 0
    if names:
        yield _ARROW.join(names)
    if start < stop:
        yield " " * indent + "^" * cells(_ARROW.join(names[start:stop]))
    width = max(_WIDTH - len("  | ") - indent, _NARROWEST)
    for remark in diagnostic.remarks:
        yield from (" " * indent + line for line in wrapped(printable(remark), width))


def _boxed(label: str) -> str:
    return label if label == _ELIDED else f"[{shortened(printable(label), _LONGEST_LABEL)}]"
