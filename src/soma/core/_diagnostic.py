"""Diagnostics are data: what a check found, where, and what to do about it.

`_diagnostic_text.py` renders them for a terminal.
"""

from dataclasses import dataclass
from typing import Any, Literal

from soma.core._diagnostic_text import render
from soma.core._topology import NodeId

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One remark of a diagnostic about one node.

    `role` says why that node is named: `cut` interrupts the gradient, `cut-off` gets none,
    `learns` still gets one by another path, `restart` is where gradients reach back to;
    `fault` marks the nodes of an error.
    """

    node: NodeId
    role: Literal["cut", "cut-off", "learns", "restart", "fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """A finding about a graph that has not run yet.

    `drawn` is the line of node labels that shows the place, `marked` the half-open range of it
    that is underlined, `remarks` the sentences below the mark.
    """

    level: Level
    code: str
    node: NodeId | None
    message: str
    position: int | None = None  # 1-based, in topological order
    drawn: tuple[str, ...] = ()
    marked: tuple[int, int] = (0, 0)
    remarks: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()
    help: str | None = None

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the text, in a notebook, instead of the fields."""
        printer.text(str(self))

    def __str__(self) -> str:
        return render(self)
