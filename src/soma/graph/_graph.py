"""The half of a graph that runs: fitting, inference, training.

Each method is one line into a room: fitting and running go to `engine`, everything with
modules to `training`. `_declared.py` and `_kept.py` hold what comes before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

from soma._extras import require
from soma.cache import DEFAULT
from soma.engine import Stream
from soma.graph._kept import KeptGraph
from soma.graph._tracking import tracked
from soma.tracking import track_run

if TYPE_CHECKING:
    import torch
    from torch.optim import Optimizer

    from soma.audit import Audit, AuditScope, ChannelConfig
    from soma.health import Thresholds
    from soma.tracking import Run, Sink
    from soma.training import Context, GraphModule, History, Prefix


class Graph(KeptGraph):
    """Filters and modules connected into one pipeline that can be fitted, trained and run.

    >>> from soma import Filter, Graph
    >>> class Double(Filter):
    ...     def forward(self, x, state):
    ...         return [2 * value for value in x]
    >>> g = Graph.somatize(Double() >> Double())
    >>> g.forward([1, 2])
    [4, 8]

    Args:
        name: what the graph is called as part of another one.
        seed: for the nodes that draw random numbers, in fit and inference.
        executor: runs independent nodes side by side in fit and inference: `"threads"` or
            any `concurrent.futures.Executor`. Training is always sequential.
        cache: where states and outputs are kept: by default a folder that all graphs share
            (`$SOMA_CACHE_DIR`, or the platform's own); a folder, a bucket as
            `"s3://bucket/prefix"`, `"memory"`, a store, or None.
    """

    def __init__(
        self,
        *,
        name: str = "graph",
        seed: int | None = None,
        executor: "Executor | str | None" = None,
        cache: object = DEFAULT,
    ) -> None:
        super().__init__(name=name, seed=seed, executor=executor, cache=cache)
        self.history: History | None = None

    # Asking

    def optimizer(self) -> "Optimizer | dict[str, Optimizer] | None":
        """Return the optimizer, a dict of several, or None."""
        return self._trainer.optimizers.get() if self._trainer else None

    # Running

    def fit(
        self,
        x: object,
        y: object = None,
        *,
        epochs: int = 10,
        batch_size: int = 64,
        loss: object = None,
        optimizer: object = None,
        validation: object = None,
        scheduler: object = None,
        clip: float | None = None,
        progress: bool | None = None,
        seed: int | None = None,
        executor: "Executor | str | None" = None,
    ) -> Self:
        """Fit the filters that learn, in order; then train the modules and freeze them.

        Afterwards the graph is in eval, and `history` tells of each epoch. A second `fit` fits
        plain filters anew, and goes on from the weights and the optimizer of the first.

        Args:
            x: all the data, an `Inputs` with a part for each root, or a `DataLoader`.
            y: the targets, or a dict of targets by leaf.
            epochs: passes over the data; 0 fits and builds, ready for a loop of your own.
            batch_size: rows in one step.
            loss: `(out, y) -> loss`, or a dict by leaf. By default the leaf's `compute_loss`,
                which sees its own aux too, else cross-entropy for integer targets and mean squared
                error for floats.
            optimizer: an optimizer, or what makes one of the parameters; by default the one the
                graph has, else Adam.
            validation: `(x, y)` or a `DataLoader`, judged in eval after each epoch.
            scheduler: a learning rate scheduler, or what makes one of the optimizer.
            clip: the largest norm that the gradients may have in a step.
            progress: True or False; by default a bar where there is a terminal.
            seed: for shuffling, initial weights, dropout and nodes that draw.
            executor: for the nodes that are not trained, in place of the graph's own.
        """
        if not self._has_modules():
            self._runner.fit(x, y, seed=seed, executor=executor)
            return self
        training = require("soma.training", extra="torch")
        options = training.FitOptions(
            epochs=epochs,
            batch_size=batch_size,
            loss=loss,
            optimizer=optimizer,
            validation=validation,
            scheduler=scheduler,
            clip=clip,
            progress=progress,
            seed=seed,
            executor=executor,
        )
        before, self.history = self.history, training.History()
        try:
            training.fit(self._with_trainer(), x, y, options, self.history)
        except BaseException:
            # Epochs finished before an error or Ctrl-C are kept; a refused fit has none.
            self.history = self.history or before
            raise
        return self

    # `Any`, since what comes out is whatever the user's own filters make of it.
    def forward(
        self,
        x: object,
        *,
        stream: bool = False,
        chunk_size: int | None = None,
        seed: int | None = None,
        executor: "Executor | str | None" = None,
    ) -> Any:
        """Run the graph: `(output, aux_by_node)` in training, the output alone in eval.

        Several leaves give a dict by leaf. In eval nothing is recorded for autograd, unless
        the input itself asks for a gradient.

        Args:
            x: the input of every root, an `Inputs`, or in training a `prefix`.
            stream: run on `chunk_size` rows at a time, in eval.
            chunk_size: the rows in a chunk, of which the last one has what is left; given alone
                it asks for a stream too.
            seed: for nodes that draw, in eval; the graph's own by default.
            executor: for independent nodes in eval, in place of the graph's own. One of other
                processes or machines takes the plain filters; modules stay here.
        """
        if executor is not None:
            with self._runner.executors.using(executor):
                return self.forward(x, stream=stream, chunk_size=chunk_size, seed=seed)
        if stream or chunk_size is not None:
            return self._stream(seed).whole(x, chunk_size)
        if self._trainer is not None:
            return self._trainer.forward(x, seed)
        if self._has_modules():
            return self._with_trainer().forward(x, seed)
        return self._runner.forward(x, seed=seed)

    def stream(self, iterable: Iterable[object], *, seed: int | None = None) -> Iterator[Any]:
        """Run on one chunk after the other; give each one's output as soon as it is there.

        Args:
            iterable: gives chunks, each of them what `forward` takes; closed at the end.
            seed: for nodes that draw; the graph's own by default.
        """
        return self._stream(seed).over(iterable)

    # Training. The methods of a step look at `_trainer` themselves: a call less for each.

    def materialize(self, sample: object) -> Self:
        """Build every differentiable filter's module from one sample batch."""
        self._with_trainer().materialize(sample)
        return self

    def train(self) -> Self:
        """Put the graph and every module into training."""
        self._with_trainer().train()
        return self

    def eval(self) -> Self:
        """Put the graph and every module into eval."""
        if self._trainer is not None or self._has_modules():
            self._with_trainer().eval()
        return self

    def evaluating(self) -> AbstractContextManager[None]:
        """Be in eval inside a `with`; every mode is as it was afterwards."""
        return self._with_trainer().evaluating()

    def parameters(self) -> "Iterator[torch.nn.Parameter]":
        """Give every parameter once, in topological order."""
        return (parameter for _, parameter in self.named_parameters())

    def named_parameters(self) -> "Iterator[tuple[str, torch.nn.Parameter]]":
        """Give `(node.parameter, parameter)` pairs, each parameter once."""
        return self._with_trainer().named_parameters()

    def make_optimizer(
        self, cls: "Callable[..., Optimizer] | None" = None, **options: object
    ) -> "Optimizer":
        """Build an optimizer over `parameters()`, Adam by default, and use it from now on."""
        return self._with_trainer().make_optimizer(cls, options)

    def set_optimizer(self, optimizer: "Optimizer | Mapping[str, Optimizer]") -> Self:
        """Use an optimizer built elsewhere, or several by name."""
        self._with_trainer().optimizers.set(optimizer)
        return self

    def context(self) -> "Context":
        """Return the scope of one training step: `with g.context() as ctx`."""
        return (self._trainer or self._with_trainer()).context()

    def backward(
        self, ctx: "Context | None", loss_or_losses: object, retain_graph: bool = False
    ) -> None:
        """Run autograd from a loss, or from several."""
        (self._trainer or self._with_trainer()).backward(loss_or_losses, retain_graph=retain_graph)

    def step(
        self,
        ctx: "Context | None" = None,
        *,
        only: str | Sequence[str] | None = None,
        closure: Callable[[], object] | None = None,
    ) -> None:
        """Step the optimizer; `only` names some of several, `closure` is for LBFGS."""
        (self._trainer or self._with_trainer()).step(only, closure)

    def zero_grad(self) -> None:
        """Clear the gradients; nothing to do before there is an optimizer."""
        (self._trainer or self._with_trainer()).zero_grad()

    def clip_gradients(self, max_norm: float) -> "torch.Tensor":
        """Scale the gradients down to a norm of at most `max_norm`; return the norm before."""
        return self._with_trainer().clip_gradients(max_norm)

    def freeze(self) -> Self:
        """Copy the weights for inference, and switch to eval."""
        self._with_trainer().freeze()
        return self

    def prefix(self, x: object) -> "Prefix":
        """Run the opaque nodes before the first module once; `forward` goes on from there."""
        return self._with_trainer().prefix(x)

    def gradient_audit(
        self,
        thresholds: "Thresholds | Mapping[str, float] | None" = None,
        inside: "bool | int | Sequence[str] | AuditScope | Mapping[str, Any]" = False,
        channels: "bool | ChannelConfig" = False,
        budget: float | None = 0.05,
    ) -> "AbstractContextManager[Audit]":
        """Watch the modules while they are trained inside a `with`, and judge what they do.

        Args:
            thresholds: other limits than the usual ones, by name.
            inside: which submodules are watched too: True, a depth, patterns as `"trunk.*"`, or
                any of these by node.
            channels: look at each channel of outputs; a `ChannelConfig` says how.
            budget: the share of the time that later steps may cost; None measures every step
                whole.
        """
        audited: AbstractContextManager[Audit] = require("soma.audit", extra="torch").audit_graph(
            self._with_trainer(),
            thresholds=thresholds,
            inside=inside,
            channels=channels,
            budget=budget,
        )
        return audited

    def module(self) -> "GraphModule":
        """Return the part that gradients pass as one torch module, with the live weights.

        Weights are named `node.parameter`. It takes what its first nodes read: one value, or a
        dict by node (`module.reads`) where they read several; after opaque filters that is what
        `g.prefix(x)` gives, or `module.tensors(g.prefix(x))` for a DataLoader. Called, it gives
        the output, or a dict by leaf, and where filters returned aux `(output, {node: aux})`.
        Opaque filters at the end of the graph are left out.

        Raises:
            CompileError: an opaque filter stands between its nodes, or no node has a module.
            NotMaterialized: a module has not been built.
        """
        return self._with_trainer().module()

    def to(
        self, device: "torch.device | str | None" = None, dtype: "torch.dtype | None" = None
    ) -> Self:
        """Move the modules to a device, or give their weights another dtype."""
        self._with_trainer().to(device, dtype)
        return self

    # Telling

    def track_run(
        self,
        name: str,
        *,
        kind: str = "train",
        tags: Iterable[str] = (),
        params: Mapping[str, object] | None = None,
        root: "str | PathLike[str]" = ".soma",
        durable: bool = False,
        sinks: "Iterable[Sink]" = (),
    ) -> "AbstractContextManager[Run]":
        """Keep what happens inside a `with` in a directory below `<root>/runs`.

        An error or Ctrl-C goes on its way, and the run says that it ended so.

        Args:
            name: for people; several runs may have the same.
            kind: what is done in it, for people too.
            params: what the run was started with.
            root: the folder of the runs' folder.
            durable: have each logged point survive a power cut.
            sinks: take the run to other tools while it goes on, as `soma.integrations.sinks` has
                them; one that fails is told of and left alone.
        """
        started = partial(
            track_run,
            name,
            kind=kind,
            tags=tags,
            params=params,
            root=root,
            durable=durable,
            sinks=sinks,
        )
        return tracked(self._runner, self.name, started)

    # Within

    def _stream(self, seed: int | None) -> Stream:
        if self._trainer is not None or self._has_modules():
            return self._with_trainer().stream(seed)
        return Stream(self._runner, seed)
