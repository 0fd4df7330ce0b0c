"""`Stream`: one pass of chunks through a graph, of which it keeps no more than it must.

Nodes before the first barrier are early: they run once for each chunk. A barrier and all
that is behind it are late: they run once at the end, on all rows. What a late node reads of
early ones is collected, so the rows of a fan-in line up whatever its branches are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from soma.core import NodeId, per_root
from soma.engine._describe import describe
from soma.engine._plain import PlainCall
from soma.engine._program import Call, Program, lower
from soma.engine._rows import chunks, join, row_count
from soma.engine._run import run, run_observed
from soma.engine._runner import Bind, Runner
from soma.engine._seeding import derived_seed
from soma.engine._stream_nodes import evolving_nodes, late_nodes
from soma.engine._values import without_gradients
from soma.errors import InvalidInput

T = TypeVar("T")
Piece = dict[NodeId, object]  # outputs by leaf


class Stream:
    """A pass that has not begun yet; it is good for one.

    States are those of now: a fit that comes later is not seen, and none is changed.

    Args:
        seed: for nodes that draw; the graph's own by default.
        bind_for: says for each chunk how nodes answer that are no plain filters.

    Raises:
        NotFitted: a node has to be fitted first.
    """

    def __init__(
        self,
        runner: Runner,
        seed: int | None = None,
        bind_for: Callable[[object], Bind] | None = None,
    ) -> None:
        topology = runner.topology
        wiring = topology.wiring()
        self._runner = runner
        self._seed = runner.seed if seed is None else seed
        self._bind_for = bind_for
        self._bind: Bind | None = None
        self._steps = runner.plan("inference").steps()
        self._roots, self._leaves = wiring.roots, wiring.leaves
        self._late = late = late_nodes(topology)
        self._border = [
            node
            for node in wiring.order
            if node not in late and not late.isdisjoint(wiring.successors[node])
        ]
        late_roots = [root for root in wiring.roots if root in late]
        self._collected: dict[NodeId, list[object]] = {
            node: [] for node in [*self._border, *late_roots]
        }
        self._evolving = evolving_nodes(runner)
        self._calls = self._plain_calls()
        self._draws = any(not node.filter._deterministic for node in topology)
        self._program: tuple[object, Program] | None = None
        self._number = 0  # of the chunk that comes next

    def over(self, iterable: Iterable[object]) -> Iterator[object]:
        """Give each chunk's output as soon as it is there; close the source at the end.

        Several leaves give dicts by leaf; those behind a barrier come in one last item.

        Raises:
            InvalidInput: it is no iterable of chunks.
        """
        return self._pieces(_source(iterable), self._shown)

    def whole(self, x: object, chunk_size: int | None) -> object:
        """Return the output for all of `x`, in the kind that the chunks came out in.

        Raises:
            InvalidInput: `chunk_size` is not a number of rows, or `x` has none to count.
        """
        outputs: dict[NodeId, list[object]] = {leaf: [] for leaf in self._leaves}
        source = chunks(x, chunk_size)

        def kept(piece: Piece) -> None:
            for leaf, value in piece.items():
                outputs[leaf].append(value)

        for _ in self._pieces(source, kept):
            pass
        return self._shown({leaf: self._joined(leaf, outputs.pop(leaf)) for leaf in self._leaves})

    def _shown(self, piece: Piece) -> object:
        return piece if len(self._leaves) != 1 else piece[self._leaves[0]]

    def _pieces(self, source: Iterator[object], shown: Callable[[Piece], T]) -> Iterator[T]:
        try:
            for chunk in source:
                made = [self._early(chunk)]
                # While the next chunk is made, nothing here keeps this one or what came of it.
                del chunk
                if made[0]:
                    yield shown(made.pop())
            if self._number and self._late:
                yield shown(self._at_the_end())
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()

    def _early(self, chunk: object) -> Piece:
        """Run what can run on one chunk, and collect what waits for the others."""
        try:
            if row_count(chunk) is None:
                raise InvalidInput(
                    f"{describe(chunk)} came as a chunk, which has no rows that can be counted. "
                    "Give arrays, tensors, lists or frames, or a dict or an `Inputs` of as many "
                    "rows each."
                )
            self._bind = self._bind_for and self._bind_for(chunk)
            inputs = per_root(chunk, self._roots)
            piece = self._run(inputs, late=False) if len(self._late) < len(self._steps) else {}
        except Exception as error:
            _add_note(error, f"in chunk {self._number} of the stream, counted from 0")
            raise
        for one in self._evolving.values():
            one.move()
        for node, values in self._collected.items():
            values.append(piece.pop(node) if node in piece else inputs[node])
        self._number += 1
        return piece

    def _at_the_end(self) -> Piece:
        """Run the barriers and what is behind them on all rows."""
        collected, self._collected = self._collected, {}
        inputs = {node: self._joined(node, collected.pop(node)) for node in [*collected]}
        try:
            return self._run(inputs, late=True)
        except Exception as error:
            _add_note(error, f"at a barrier or behind it, on all {self._number} chunks together")
            raise

    def _joined(self, node: NodeId, values: list[object]) -> object:
        try:
            with without_gradients():
                return join(values)
        except Exception as error:
            _add_note(error, f"joining {len(values)} chunks at node {self._runner.name(node)}")
            raise

    def _run(self, inputs: Mapping[NodeId, object], *, late: bool) -> Piece:
        runner, program = self._runner, self._lowered(late=late)
        with without_gradients():
            if runner.listeners:
                answer = run_observed(program, inputs, {}, "forward", runner.name, runner.listeners)
            else:
                answer = run(program, inputs, {}, "forward", runner.name)
        if len(program.exits) == 1:
            return {program.exits[0][0]: answer}
        assert isinstance(answer, dict)
        return answer

    def _lowered(self, *, late: bool) -> Program:
        """Return the program of one half, which changes with the bind and with the seed."""
        seed = self._seed
        if self._draws and seed is not None and self._number and not late:
            # The first chunk draws what `forward` draws, and so do those that see all rows.
            seed = derived_seed(seed, "chunk", self._number)
        made_for = (self._bind, seed, late)
        if self._program is None or self._program[0] != made_for:
            nodes = self._runner.topology.nodes
            bound = {node: self._bind(nodes[node]) for node in nodes} if self._bind else {}
            calls = {node: bound.get(node) or call for node, call in self._calls.items()}
            half = [step for step in self._steps if (step.node in self._late) is late]
            kept = [leaf for leaf in self._leaves if (leaf in self._late) is late]
            guarded = self._runner.guarded(calls, seed)
            program = (
                lower(half, guarded, kept, self._border)
                if late
                else lower(half, guarded, [*kept, *self._border])
            )
            self._program = made_for, program
        return self._program[1]

    def _plain_calls(self) -> dict[NodeId, Call]:
        runner = self._runner
        nodes = list(runner.topology)
        runner.check_fitted([node for node in nodes if node.id not in self._evolving])
        calls: dict[NodeId, Call] = {}
        for node in nodes:
            plain = PlainCall(node.filter, runner.states.get(node.id))
            calls[node.id] = Call(self._evolving.get(node.id, plain))
        return calls


def _source(iterable: object) -> Iterator[object]:
    """Return the iterator of an iterable of chunks."""
    is_data = hasattr(iterable, "shape") or isinstance(iterable, Mapping | str | bytes)
    if is_data or not isinstance(iterable, Iterable):
        raise InvalidInput(
            f"`stream` got {describe(iterable)}; an iterable that gives chunks is wanted, for "
            "instance a generator or a list of arrays. For data that is here already there is "
            "`g.forward(x, stream=True, chunk_size=1024)`."
        )
    return iter(iterable)


def _add_note(error: Exception, note: str) -> None:
    with suppress(Exception):  # an error that takes no notes is raised all the same
        error.add_note(note)
