"""`g.module()`: the differentiable stretch of a graph as one torch module.

`_stretch.py` says which nodes it is made of. It shares the live weights with the graph and runs
the filters' own code and nothing else, so torch may compile, export and wrap it as any module.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any, NamedTuple, Self

from torch import Tensor, nn

from soma.core import Filter, Inputs, Node, NodeId
from soma.engine import Runner, describe
from soma.errors import InvalidInput, InvalidNodeId, did_you_mean, listing
from soma.training._calls import checked_output, checked_pair, overrides_forward
from soma.training._convert import to_tensors, wanted_by
from soma.training._elsewhere import StandIn
from soma.training._filter import DifferentiableFilter
from soma.training._materialize import unbuilt
from soma.training._prefix import Prefix
from soma.training._stretch import Stretch, stretch_of


class GraphModule(nn.Module):
    """The part of a graph that gradients pass, as one module with the graph's live weights.

    `Graph.module` tells what it takes and gives.
    """

    def __init__(self, stretch: Stretch, turns: "tuple[Turn, ...]") -> None:
        super().__init__()
        self.reads = stretch.reads
        self._shares_input = stretch.shares_input
        self._leaves = stretch.leaves
        self._turns = turns
        self._sources = [
            node.filter for node in stretch.nodes if isinstance(node.filter, DifferentiableFilter)
        ]
        self.register_load_state_dict_post_hook(_drop_twins)  # type: ignore[no-untyped-call]

    def forward(self, x: Any) -> Any:
        """Return the output, or `(output, {node: aux})` where filters returned aux."""
        values = dict(self._by_node(x))
        aux: dict[NodeId, Mapping[str, object]] = {}
        for turn in self._turns:
            given: object
            if len(turn.sources) == 1:
                given = values[turn.sources[0]]
            else:
                given = {source: values[source] for source in turn.sources}
            try:
                values[turn.node], extra = turn.answer(given)
            except Exception as error:  # of the filter itself, or of `torch.export` inside it
                error.add_note(f"in node `{turn.node}` of a graph's module")
                raise
            if extra:
                aux[turn.node] = extra
        leaves = self._leaves
        output = values[leaves[0]] if len(leaves) == 1 else {one: values[one] for one in leaves}
        return (output, aux) if aux else output

    def train(self, mode: bool = True) -> Self:
        """Set the mode; training ends the use of frozen copies, as the weights will change."""
        if mode:
            _drop_twins(self)
        return super().train(mode)

    def _by_node(self, x: object) -> Mapping[NodeId, object]:
        reads = self.reads
        if isinstance(x, Prefix):
            x = x.values
        elif not isinstance(x, Inputs):
            if len(reads) == 1:
                return {reads[0]: x}
            if self._shares_input and not (isinstance(x, dict) and x.keys() == set(reads)):
                return dict.fromkeys(reads, x)
        given = list(x) if isinstance(x, Mapping) else None
        if not isinstance(x, Mapping) or not set(reads).issubset(x):
            came = describe(x) if given is None else f"values for {listing(given) or 'no node'}"
            raise InvalidInput(
                f"this module was given {came}; it reads {listing(reads)}, and wants a dict with "
                f"one value for each{'' if self._shares_input else ', as `g.prefix(x)` gives it'}."
                f"{did_you_mean(str(next(iter(given))), reads) if given else ''}"
            )
        return {one: x[one] for one in reads}


class Bare(NamedTuple):
    """A module that is called as it is."""

    node: NodeId
    sources: tuple[NodeId, ...]
    module: nn.Module

    def answer(self, x: object) -> tuple[object, Mapping[str, object]]:
        """Return the module's output."""
        return self.module(_tensors(x, self.module)), {}


class Own(NamedTuple):
    """A filter with a `forward` of its own, on a shallow copy that the graph does not change."""

    node: NodeId
    sources: tuple[NodeId, ...]
    module: nn.Module
    filter: DifferentiableFilter

    def answer(self, x: object) -> tuple[object, Mapping[str, object]]:
        """Return the output and the aux; the filter knows whether its module is in training."""
        filter = self.filter
        if filter.training != self.module.training:
            filter.training = self.module.training
        return checked_pair(filter, filter.forward(_tensors(x, self.module), None))


class Plain(NamedTuple):
    """A plain differentiable filter, with its state as a constant."""

    node: NodeId
    sources: tuple[NodeId, ...]
    filter: Filter
    state: object

    def answer(self, x: object) -> tuple[object, Mapping[str, object]]:
        """Return the filter's output."""
        return checked_output(self.filter, self.filter.forward(x, self.state)), {}


Turn = Bare | Own | Plain


def graph_module(runner: Runner, *, training: bool) -> GraphModule:
    """Return the differentiable stretch of a graph, in the mode of the graph.

    Raises:
        CompileError: there is no such stretch, or it is interrupted.
        NotFitted: a plain filter in it has to be fitted first.
        NotMaterialized: a module in it has not been built.
        InvalidInput: a module in it is in another process.
        InvalidNodeId: a node's name cannot be the name of a submodule.
    """
    runner.plan("differentiable")  # what is wrong with the graph is told first
    stretch = stretch_of(runner.topology)
    runner.check_fitted(list(stretch.nodes))
    held = [
        (node.id, node.filter)
        for node in stretch.nodes
        if isinstance(node.filter, DifferentiableFilter)
    ]
    unbuilt(held)
    away = [id for id, filter in held if isinstance(filter._live, StandIn)]
    if away:
        raise InvalidInput(
            f"{listing(away)} of this graph is on a worker, and one torch module is all in one "
            "process. `g.save(path)` and `Graph.load(path)` give a graph with all modules here."
        )
    predecessors = runner.topology.wiring().predecessors
    turns = tuple(
        _turn(node, predecessors[node.id] or (node.id,), runner) for node in stretch.nodes
    )
    module = GraphModule(stretch, turns)
    for id, filter in held:
        assert filter._live is not None
        _add(module, id, filter._live)
    module.training = training
    return module


def _turn(node: Node, sources: tuple[NodeId, ...], runner: Runner) -> Turn:
    filter = node.filter
    if not isinstance(filter, DifferentiableFilter):
        return Plain(node.id, sources, filter, runner.states.get(node.id))
    assert filter._live is not None
    if not overrides_forward(filter):
        return Bare(node.id, sources, filter._live)
    own = copy(filter)
    vars(own).update(
        _current=filter._live, _twin=None, _twin_state=None, _uses_twin=False, _in_a_module=True
    )
    return Own(node.id, sources, filter._live, own)


def _add(module: nn.Module, id: NodeId, live: nn.Module) -> None:
    """Hang a module in under its node's id; a dot in it makes a level, as in `state_dict`."""
    *levels, name = id.split(".")
    parent = module
    for level in levels:
        below = parent._modules.get(level)
        if below is None:
            _named(parent, level, id).add_module(level, below := nn.Module())
        if type(below) is not nn.Module:
            raise InvalidNodeId(
                f"node `{id}` would be a part of the module of another node. Give one of the two "
                "another id."
            )
        parent = below
    _named(parent, name, id).add_module(name, live)


def _named(parent: nn.Module, name: str, id: NodeId) -> nn.Module:
    if not name or hasattr(parent, name):
        raise InvalidNodeId(
            f"node `{id}` cannot be a submodule: {name!r} is a name that the module around it has "
            "for something of its own. Give the node another id, as in `g.node(id, filter)`."
        )
    return parent


def _tensors(x: object, module: nn.Module) -> object:
    """Return numbers as tensors; what are tensors stay as they are, without a look at the rest."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, dict) and all(isinstance(part, Tensor) for part in x.values()):
        return x
    return to_tensors(x, wanted_by(module))


def _drop_twins(module: nn.Module, keys: object = None) -> None:
    """Have the graph use its live weights: the frozen copies will not equal them for long."""
    if isinstance(module, GraphModule):
        for filter in module._sources:
            if filter._twin is not None:
                filter._drop_twin()
