"""Judges a topology and turns it into a plan.

The path: `_facts.py` gathers, `checks/` judge, `_arrange.py` and `_stretch.py` give the plan
its shape, `_plan.py` holds it.
"""

from collections.abc import Iterable
from typing import Protocol

from soma.compiler._arrange import arranged
from soma.compiler._facts import Facts
from soma.compiler._mode import CompileMode
from soma.compiler._parts import Execute, placed
from soma.compiler._plan import ExecutionPlan
from soma.compiler._stretch import with_stretches
from soma.compiler.checks import ERRORS, REMARKS, STRUCTURE, gradient
from soma.core import Diagnostic, NodeId, Topology
from soma.errors import CompileError


class HasTopology(Protocol):
    """Anything that holds a topology, as a graph does."""

    @property
    def topology(self) -> Topology:
        """The declared nodes and links."""


class Compiler:
    """Says what is wrong with a graph before it runs, and how it will run.

    >>> from soma.core import Filter, Topology
    >>> topology = Topology()
    >>> states = topology.add_expression(Filter() >> Filter())
    >>> print(Compiler().compile(topology))
    ExecutionPlan: inference, 2 nodes, nothing stored: no cache is attached
    └─ Sequence
       ├─ filter
       └─ filter_2
    """

    def compile(
        self,
        graph: Topology | HasTopology,
        cache: object | None = None,
        mode: CompileMode | str = CompileMode.Inference,
        *,
        seed: int | None = None,
    ) -> ExecutionPlan:
        """Return the plan of a graph, with its warnings and notes.

        Args:
            cache: where outputs would be stored; only asked whether there is one.
            seed: what makes the outputs of non-deterministic filters repeatable.

        Raises:
            CompileError: the graph cannot run; the message shows every reason.
        """
        mode = CompileMode(mode)
        facts = _sound_facts(graph)
        remarks = [found for check in REMARKS for found in check(facts)]
        steps = [
            Execute(
                node,
                facts.wiring.predecessors[node],
                facts.metas[node].differentiable,
                _why_uncached(facts, node, mode, cached=cache is not None, seeded=seed is not None),
            )
            for node in facts.wiring.order
        ]
        targets = {
            node.id: node.target
            for node in facts.topology.nodes.values()
            if node.target is not None
        }
        return ExecutionPlan(
            placed(with_stretches(arranged(steps)), targets),
            mode,
            tuple(sorted(remarks, key=lambda one: one.position or 0)),
            facts.wiring.order,
        )

    def check_gradient_flow(self, graph: Topology | HasTopology) -> list[Diagnostic]:
        """Return where gradients stop, in topological order, and who gets none because of it.

        Raises:
            CompileError: the graph cannot run; the message shows every reason.
        """
        return gradient(_sound_facts(graph))


def structural_errors(topology: Topology) -> list[Diagnostic]:
    """Return what is wrong with nodes and links, whatever the nodes are."""
    facts = Facts.of(topology)
    return [found for check in STRUCTURE for found in check(facts)]


def refusal(errors: Iterable[Diagnostic], what: str = "graph") -> CompileError:
    """Return the error that shows all of `errors`."""
    found = tuple(errors)
    reasons = "for this reason" if len(found) == 1 else f"for these {len(found)} reasons"
    text = "\n\n".join([f"this {what} cannot run, {reasons}:", *map(str, found)])
    return CompileError(text, found)


def _sound_facts(graph: Topology | HasTopology) -> Facts:
    facts = Facts.of(graph if isinstance(graph, Topology) else graph.topology)
    errors = [found for check in ERRORS for found in check(facts)]
    if errors:
        raise refusal(errors)
    return facts


def _why_uncached(
    facts: Facts, node: NodeId, mode: CompileMode, *, cached: bool, seeded: bool
) -> str | None:
    filter = facts.topology.nodes[node].filter
    if mode is CompileMode.NoCache:
        return "the mode `no_cache` stores nothing"
    if mode is CompileMode.Differentiable:
        return "the mode `differentiable` runs every forward anew, so that gradients can flow"
    if not cached:
        return "no cache is attached"
    if not facts.metas[node].cacheable:
        return f"`{facts.labels[node]}` says `_cacheable = False`"
    if not filter._deterministic and not seeded:
        return f"`{facts.labels[node]}` says `_deterministic = False` and no seed is given"
    return None
