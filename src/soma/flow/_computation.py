"""`Computation`: a computational graph as one node of a flow."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable
from zipfile import ZipFile

from soma.cache import Unfingerprintable, identity
from soma.core import Filter, NodeId, Topology, has_module
from soma.errors import InvalidInput, InvalidOutput, RunNotWritten
from soma.files import below
from soma.flow._kept import file_for
from soma.flow._node import FlowNode
from soma.tracking import Secrets

if TYPE_CHECKING:
    from soma.flow._turn import Turn


@runtime_checkable
class Computing(Protocol):
    """What a flow needs of a computational graph; `soma.Graph` is one."""

    name: str
    topology: Topology

    def filters(self) -> list[tuple[NodeId, Filter]]:
        """Return ids and filters."""
        ...

    def fit(self, x: object, y: object = None) -> object:
        """Learn from data."""
        ...

    def forward(self, x: object) -> Any:
        """Return the output."""
        ...

    def save(self, path: str) -> object:
        """Write all of it to a file."""
        ...

    def unfitted(self, filters: Any = None) -> Any:
        """Return a copy that has learned nothing."""
        ...


class Computation(FlowNode):
    """A computational graph in a flow: `a >> graph >> b` makes one that runs `forward`.

    >>> from tempfile import mkdtemp
    >>> from soma import Filter, Graph
    >>> from soma.flow import Computation, Flow
    >>> class Mean(Filter):
    ...     def fit(self, x, y=None):
    ...         return sum(x) / len(x)
    ...     def forward(self, x, state):
    ...         return state
    >>> g = Graph.somatize(Mean(), name="mean", cache=None)
    >>> flow = Flow.somatize(Computation(g, mode="fit"))
    >>> flow.run({"x": [1, 2, 6]}, root=mkdtemp()).output
    {'fitted': 'mean'}
    >>> g.forward([])
    3.0

    What it computed is kept in the run: values of `forward` as JSON or arrays, and after `fit` the
    graph as its own `save` writes it. A resumed run takes it from there, so that the graph of a
    flow that goes on has learned again what it had.

    Args:
        graph: is fitted itself, and no copy of it.
        mode: `"forward"`, or `"fit"` with `{"x": data, "y": targets}` or `(x, y)`, which gives the
            graph's name and the losses of each epoch.
        options: more arguments of `graph.fit` or `graph.forward`, such as `{"epochs": 5}`.
    """

    kind = "computation"

    def __init__(
        self,
        graph: Computing,
        mode: Literal["forward", "fit"] = "forward",
        options: Mapping[str, object] | None = None,
    ) -> None:
        if not is_graph(graph):
            raise InvalidInput(f"a `{type(graph).__name__}` came as a graph; a `Graph` is wanted.")
        if mode not in ("forward", "fit"):
            raise InvalidInput(f'the mode of a graph is {mode!r}; "forward" or "fit" is wanted.')
        self.graph = graph
        self.mode = mode
        self.options = dict(options or {})
        self.phase = mode
        self._called = graph.name if mode == "forward" else f"fit_{graph.name}"

    def run(self, value: object, turn: "Turn") -> object:
        """Return what the graph gives, or what its fit has shown; computed once in a run."""
        request = [self.mode, _shape(self.graph), self.options, value]
        if self.mode == "forward":
            return turn.value("forward", request, lambda: self.graph.forward(value, **self.options))
        folder = turn.scope.running.folder
        x, y = _data(value)
        computed = False

        def fit() -> object:
            nonlocal computed
            self.graph.fit(x, y, **self.options)
            name = file_for(folder, f"{turn.at}/fit", "soma")
            self.graph.save(str(folder / name))
            _check_secrets(folder / name, turn.scope.running.secrets)
            computed = True
            return {"bundle": name, **_told(self.graph)}

        kept = dict(turn.value("fit", request, fit))
        bundle = kept.pop("bundle")
        if not computed:
            _take_back(self.graph, folder, bundle, x)
        return kept


def is_graph(value: object) -> bool:
    """Whether a value is a computational graph."""
    return isinstance(value, Computing) and not isinstance(value, Filter)


def _take_back(graph: Any, folder: Path, bundle: str, x: Any) -> None:
    """Give a graph what a file says that it has learned; modules are built by the data first."""
    classes = [type(filter) for _, filter in graph.filters()]
    try:
        path = below(folder, bundle)
        learned = type(graph).load(str(path), classes=classes, cache=None).state()
    except (OSError, ValueError) as error:
        told = str(error).rstrip(".")
        raise RunNotWritten(
            f"what `{graph.name}` has learned cannot be read from `{bundle}`: {told}. The run "
            "cannot go on; start another one."
        ) from error
    modules = {id for id, filter in graph.filters() if has_module(filter)}
    for id in learned.keys() - modules:
        graph.set_node_state(id, learned[id])
    if modules:
        graph.materialize(x[:2] if hasattr(x, "shape") else x)
        graph.load_state(learned)
        graph.freeze()


def _check_secrets(bundle: Path, secrets: Secrets) -> None:
    """Keep no bundle that tells a secret in words; its tensors are not looked through."""
    with ZipFile(bundle) as members:
        told = secrets.stand_in(members.read("manifest.json"))
    if told:
        bundle.unlink()
        raise InvalidOutput(
            "the graph was fitted, and what it holds cannot be kept: a secret stands in it, among "
            "the parameters of a filter or in what one has learned. Let the filter read it where "
            "it is used, such as from a variable of the environment."
        )


def _data(value: object) -> tuple[object, object]:
    if isinstance(value, Mapping) and "x" in value and value.keys() <= {"x", "y"}:
        return value["x"], value.get("y")
    if isinstance(value, list | tuple) and len(value) == 2:
        return value[0], value[1]
    told = f"a mapping of {sorted(map(str, value))}" if isinstance(value, Mapping) else type(value)
    raise InvalidInput(
        f'a graph is fitted by `{{"x": data, "y": targets}}` or `(x, y)`; {told} came. Let what '
        "comes before give one of these."
    )


def _told(graph: Computing) -> dict[str, object]:
    """Return what a fit has shown, as plain data."""
    told: dict[str, object] = {"fitted": graph.name}
    epochs = [
        {"epoch": one.epoch, "loss": one.loss, "validation_loss": one.validation_loss}
        for one in getattr(graph, "history", None) or ()
    ]
    return {**told, "history": epochs} if epochs else told


def _shape(graph: Computing) -> list[object]:
    nodes = [[id, type(filter).__name__, _parameters(filter)] for id, filter in graph.filters()]
    return [graph.name, nodes, [list(link) for link in graph.topology.links]]


def _parameters(filter: Filter) -> dict[str, str] | None:
    """Return digests of what a filter was made with; None where it holds what has none.

    Its code is not part of it: who mends an error in it goes on with the run that found it.
    """
    try:
        return {name: digest for name, (digest, _) in identity(filter).config.items()}
    except Unfingerprintable:
        return None
