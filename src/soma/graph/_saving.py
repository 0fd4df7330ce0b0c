"""`Graph.save`, `Graph.load`, `state` and `load_state`: a graph becomes data, and data a graph."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from warnings import warn

from soma._extras import loaded, require
from soma.checkpoint import (
    Additions,
    Allowed,
    Maker,
    Writer,
    graph_manifest,
    link_nodes,
    load_nodes,
    reading,
    restore_random,
)
from soma.core import has_module, needs_fit
from soma.draw import printable
from soma.engine import describe, generators_kept
from soma.errors import (
    CheckpointError,
    CheckpointWarning,
    InvalidInput,
    NoOptimizer,
    did_you_mean,
)
from soma.files import Before

if TYPE_CHECKING:
    from soma.graph._kept import KeptGraph

G = TypeVar("G", bound="KeptGraph")


def save(
    graph: "KeptGraph",
    path: str | Path,
    *,
    optimizer: bool,
    random: bool,
    extra: object,
    before: Before | None = None,
) -> None:
    """Write a graph as a bundle; `before` is called before each system call, for tests."""
    writer, weights, training = Writer(), {}, None
    if graph._has_modules() or loaded("torch") is not None:
        wing = require("soma.training", extra="torch")
        trainer = _trainer(graph, wing)
        weights = wing.WeightsWriter(trainer, writer).entries()
        if graph._has_modules() or optimizer:
            training = wing.training_entry(trainer, writer, optimizer=optimizer)
    elif optimizer:
        raise NoOptimizer("`save(optimizer=True)` was called on a graph without modules.")
    additions = Additions(weights=weights, training=training, random=random, extra=extra)
    writer.write(path, graph_manifest(writer, graph._runner, graph.name, additions), before=before)


def load(
    cls: type[G],
    path: str | Path,
    *,
    classes: Iterable[object],
    trust_modules: str | Iterable[str],
    strict: bool,
    device: object,
    **settings: Any,
) -> G:
    """Make a graph of a bundle."""
    allowed = Allowed(classes, trust_modules)
    problems: list[str] = []
    with reading(path) as reader:
        manifest = reader.manifest
        graph = cls(name=printable(manifest.name), seed=manifest.seed, **settings)
        weights = None
        if manifest.training is not None or any(node.weights for node in manifest.nodes):
            wing = require("soma.training", extra="torch")
            weights = wing.WeightsReader(reader, problems.append)
        with generators_kept():
            nodes = []
            maker = Maker(allowed, problems.append)
            for node in load_nodes(reader, maker, weights and weights.tensors):
                graph.topology.add(node.filter, node.id)
                if node.has_state:
                    graph._runner.states[node.id] = node.saved.state
                nodes.append(node)
            link_nodes(graph.topology, reader)
            if weights is not None:
                trainer = _trainer(graph, wing)
                for node in nodes:
                    weights.build(node, device)
                for node in nodes:
                    weights.freeze(trainer, node)
                if manifest.training is not None:
                    wing.load_training(trainer, manifest.training, reader, allowed)
        if manifest.extra is not None:
            graph.extra = reader.value(manifest.extra)
        if strict and problems:
            raise CheckpointError(
                f"{'; '.join(problems[:8])}. `strict=False` loads what fits, and leaves the rest "
                "as the classes make it."
            )
        if manifest.random is not None:
            restore_random(reader.value(manifest.random))
    if problems:
        told = printable("; ".join(problems[:8]))
        warn(f"`{path}`: {told}.", CheckpointWarning, stacklevel=3)
    return graph


def _trainer(graph: "KeptGraph", wing: Any) -> Any:
    """Return the graph's trainer, or a passing one where plain filters hold modules at most."""
    return graph._with_trainer() if graph._has_modules() else wing.Trainer(graph._runner)


def state(graph: "KeptGraph") -> dict[str, Any]:
    """Return what the nodes have learned, by node."""
    modules: Mapping[str, Any] = {}
    if graph._has_modules():
        wing = require("soma.training", extra="torch")
        modules = wing.module_states(graph._with_trainer())
    found: dict[str, Any] = {}
    for id, filter in graph.filters():
        if id in modules:
            found[id] = modules[id]
        elif not has_module(filter) and id in graph._runner.states:
            found[id] = graph._runner.state(id)
    return found


def load_state(graph: "KeptGraph", given: Mapping[str, Any], *, strict: bool) -> None:
    """Give the nodes what `state` returned: all of it, or nothing and an error."""
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"`load_state` got {describe(given)}; a mapping by node is wanted, as `g.state()` "
            "gives it."
        )
    filters = dict(graph.filters())
    modules = {id for id, filter in filters.items() if has_module(filter)}
    problems = []
    for id in given:
        if id not in filters:
            problems.append(f"there is no node `{id}`.{did_you_mean(str(id), filters)}".rstrip("."))
    for id, filter in filters.items():
        if id not in given and (id in modules or needs_fit(filter)):
            problems.append(f"`{id}` is missing")
    for id in modules & given.keys():
        if not isinstance(given[id], Mapping):
            problems.append(f"`{id}` is {describe(given[id])}, where tensors by name are wanted")
    weights = {id: given[id] for id in modules & given.keys() if isinstance(given[id], Mapping)}
    if weights:
        wing, trainer = require("soma.training", extra="torch"), graph._with_trainer()
        for id in sorted(weights):
            problems += wing.unfit_weights(trainer, id, weights[id])
    if problems and strict:
        raise InvalidInput(
            f"this is the state of another graph: {'; '.join(problems[:8])}. `strict=False` loads "
            "what fits."
        )
    for id in given:
        if id in filters and id not in modules:
            graph._runner.set_state(id, given[id])
    if weights:
        wing.load_module_states(trainer, weights)
    if problems:
        warn(f"{'; '.join(problems[:8])}.", CheckpointWarning, stacklevel=3)
