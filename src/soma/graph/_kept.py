"""The part of a graph that is kept: what its nodes have learned, as data and in a file.

`_saving.py` does it. `_declared.py` holds the part before, `_graph.py` the part that runs.
"""

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

from soma._extras import require
from soma.cache import DEFAULT
from soma.core import NodeId, has_module
from soma.graph import _saving as saving
from soma.graph._declared import DeclaredGraph

if TYPE_CHECKING:
    import torch

    from soma.engine import Runner
    from soma.training import Placement, Trainer


class KeptGraph(DeclaredGraph):
    """A declared graph with what its nodes have learned; `Graph` says what the arguments are."""

    def __init__(
        self,
        *,
        name: str = "graph",
        seed: int | None = None,
        executor: "Executor | str | None" = None,
        cache: object = DEFAULT,
    ) -> None:
        super().__init__(name=name, seed=seed, executor=executor, cache=cache)
        self.extra: Any = None  # what a file had beside the graph
        self._trainer: Trainer | None = None

    @property
    def training(self) -> bool:
        """Whether the graph is in training; it starts in eval."""
        return self._trainer is not None and self._trainer.training

    def get_node_state(self, id: NodeId) -> Any:
        """Return what a node learned in `fit`, or a frozen module's weights; None before."""
        return self._runner.state(id)

    def set_node_state(self, id: NodeId, state: object) -> Self:
        """Give a node a state as `get_node_state` returned it; a module takes its weights."""
        if has_module(self.topology.node(id).filter):
            self._with_trainer().load_state(id, state)
        else:
            self._runner.set_state(id, state)
        return self

    def save(
        self,
        path: "str | PathLike[str]",
        *,
        optimizer: bool = False,
        random: bool = False,
        extra: object = None,
    ) -> Self:
        """Write the graph to one file: nodes, edges, states, weights, and frozen copies of them.

        The file is whole or, after an error or a crash, the old one. It holds no code: `load`
        finds the classes again by their names.

        Args:
            optimizer: the optimizers too, to go on training.
            random: where the random generators stand, too.
            extra: plain data of yours, such as a scheduler's `state_dict()`.

        Raises:
            CheckpointError: an argument or a state of a node cannot be stored.
        """
        saving.save(self, os.fspath(path), optimizer=optimizer, random=random, extra=extra)
        return self

    @classmethod
    def load(
        cls,
        path: "str | PathLike[str]",
        *,
        classes: Iterable[object] = (),
        trust_modules: "str | Iterable[str]" = (),
        strict: bool = True,
        device: "torch.device | str | None" = None,
        executor: "Executor | str | None" = None,
        cache: object = DEFAULT,
    ) -> Self:
        """Make a graph of a file that `save` wrote; it is in eval, and `extra` is on it.

        Nothing is imported because the file names it. Filters whose classes are imported already
        are found; others are allowed by the two arguments.

        Args:
            classes: classes that the file may name, also where they have moved.
            trust_modules: prefixes such as `"myproject."`, below which modules may be imported.
            strict: refuse a file that lacks weights, has too many, or is of another
                `class_version`; else a warning names them.
            device: where modules stand; main memory by default.
            executor: of the new graph, as in `Graph`.
            cache: of the new graph, as in `Graph`.

        Raises:
            CheckpointError: the file is damaged, foreign, newer, or names what is not allowed.
        """
        return saving.load(
            cls, os.fspath(path), classes=classes, trust_modules=trust_modules, strict=strict,
            device=device, executor=executor, cache=cache,
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return copies of what the nodes learned: `{node: {name: tensor}}`, or what `fit` gave."""
        return saving.state(self)

    def load_state(self, state: Mapping[str, Any], *, strict: bool = True) -> Self:
        """Take what `state()` gave, here or in another graph of these nodes; all of it or nothing.

        Args:
            strict: refuse what is missing or too much; else a warning names it.
        """
        saving.load_state(self, state, strict=strict)
        return self

    # Within

    def _with_trainer(self) -> "Trainer":
        if self._trainer is None:
            wing = require("soma.training", extra="torch")
            self._trainer = wing.Trainer(self._runner, _placement)
        return self._trainer


def _placement(runner: "Runner") -> "Placement":
    """Return what trains the nodes that are on workers."""
    placement: Placement = require("soma.distributed", extra="torch").RpcPlacement(runner)
    return placement
