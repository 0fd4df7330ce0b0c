"""What the compiler gives: which nodes run, in which arrangement, and what it thinks of them."""

from collections import Counter
from dataclasses import dataclass

from soma.compiler._mode import CompileMode
from soma.compiler._parts import Empty, Execute, Part, Remote, executes
from soma.compiler._plan_json import read, written
from soma.compiler._plan_picture import plan_svg
from soma.core import Diagnostic, NodeId
from soma.draw import Tree


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """A graph made ready to run; `print` shows its tree.

    `order` names the nodes in topological order; `diagnostics` are its warnings and notes.
    """

    root: Part
    mode: CompileMode
    diagnostics: tuple[Diagnostic, ...]
    order: tuple[NodeId, ...]

    def steps(self) -> tuple[Execute, ...]:
        """The steps in topological order, as they may run one by one."""
        by_node = {step.node: step for step in executes(self.root)}
        return tuple(by_node[node] for node in self.order)

    def to_json(self) -> str:
        """Return the plan as text; `from_json` gives an equal plan back."""
        return written((self.root, self.mode, self.diagnostics, self.order))

    @classmethod
    def from_json(cls, text: str) -> "ExecutionPlan":
        """Return the plan that `to_json` wrote.

        Raises:
            ValueError: the text is no plan; the message names the first thing that is wrong.
        """
        return cls(*read(text))

    def to_svg(self) -> str:
        """Return the plan as a picture in SVG, without script."""
        return plan_svg(self.root, self.mode, len(self.order))

    def _repr_html_(self) -> str:
        return self.to_svg()

    def __str__(self) -> str:
        reasons = {step.uncached for step in executes(self.root)}
        common = reasons.pop() if len(reasons) == 1 else None
        nodes = f"{len(self.order)} node{'s' if len(self.order) != 1 else ''}"
        head = f"ExecutionPlan: {self.mode}, {nodes}"
        tree = Tree(
            head if common is None else f"{head}, nothing stored: {common}",
            (_drawn(self.root, with_reasons=common is None),),
        )
        told = Counter(one.level for one in self.diagnostics)
        counts = [f"{count} {level}{'s' if count > 1 else ''}" for level, count in told.items()]
        return f"{tree}\n{' and '.join(counts)}: see `diagnostics`" if counts else str(tree)


def _drawn(part: Part, *, with_reasons: bool) -> Tree:
    if isinstance(part, Execute):
        reason = f" (not stored: {part.uncached})" if with_reasons and part.uncached else ""
        return Tree(f"{part.node}{reason}")
    if isinstance(part, Empty):
        return Tree("Empty")
    inner = tuple(_drawn(one, with_reasons=with_reasons) for one in part.parts)
    name = type(part).__name__
    return Tree(f"{name} on {part.target}" if isinstance(part, Remote) else name, inner)
