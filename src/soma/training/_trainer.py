"""`Trainer`: the training half of a graph, around the same engine that fits and infers.

Modes, forward, backward, step and freeze are here; `_materialize.py` builds the modules,
`_calls.py` says what each node does, `_fit.py` drives the loop.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol
from warnings import warn

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from soma.core import NodeId, StepFinished
from soma.engine import Bind, Extras, Runner, Stream, describe
from soma.errors import InvalidInput, ModeError, NoOptimizer, SomaWarning
from soma.training import _optimizers
from soma.training._context import Context
from soma.training._elsewhere import Placement, StandIn, at_home
from soma.training._filter import DifferentiableFilter
from soma.training._graph_module import GraphModule, graph_module
from soma.training._inference import Inference
from soma.training._materialize import materialize, unbuilt
from soma.training._optimizers import Closure, Optimizers
from soma.training._prefix import Prefix, run_prefix
from soma.training._training_run import TrainingRun
from soma.training._twin import frozen_twin, same_weights
from soma.training._weights import load_weights


class Watcher(Protocol):
    """Somebody who is told what a training step starts from, as an audit is."""

    def forward_begins(self, x: object) -> None:
        """Hear of the input of a forward."""

    def backward_begins(self, losses: Sequence[Tensor]) -> None:
        """Hear of the losses that a backward starts from."""

    def gradients_came(self, parameters: Sequence[nn.Parameter]) -> None:
        """Hear which parameters have got gradients by other ways than torch's hooks know of."""


class Trainer:
    """Everything a graph does with modules."""

    def __init__(self, runner: Runner, place: Callable[[Runner], Placement] | None = None) -> None:
        self.runner = runner
        self.placement: Placement | None = None  # once a node is built elsewhere
        self._place = place
        self.training = False
        self.optimizers = Optimizers()
        self.steps = 0
        self.watchers: list[Watcher] = []
        self._context = Context()
        self._run = TrainingRun(runner)
        self._inference = Inference(runner, self._run)
        self._seen_exchange = -1
        self._filters: tuple[int, list[tuple[NodeId, DifferentiableFilter]]] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "watchers": []}  # who watches a graph does not watch its copies

    # What there is

    @property
    def filters(self) -> list[tuple[NodeId, DifferentiableFilter]]:
        """The differentiable filters with their ids, in topological order."""
        version = self.runner.topology.version
        if self._filters is None or self._filters[0] != version:
            found = [
                (node.id, node.filter)
                for node in self.runner.topology
                if isinstance(node.filter, DifferentiableFilter)
            ]
            self._filters = (version, found)
        return self._filters[1]

    def materialize(self, sample: object, prefix: Prefix | None = None) -> None:
        """Build every module from one sample batch, or from what a prefix gave for it."""
        self._find_placement()
        with self.runner.executors.in_order():  # weights are drawn in the order of the nodes
            materialize(self.runner, sample, self.placement, prefix)
        unbuilt(self.filters)
        if self.training:
            for _, filter in self.filters:
                if not filter.training:  # built or added since `train()`
                    filter.train()

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Give `node.parameter` names with the live weights, each weight once."""
        seen: set[int] = set()
        for node, filter in self.filters:
            if filter._live is None:
                continue
            for name, parameter in filter._live.named_parameters():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield f"{node}.{name}", parameter

    def clip_gradients(self, max_norm: float) -> Tensor:
        """Scale all gradients down to a norm of at most `max_norm`; return the norm before."""
        parameters = [one for _, one in self.named_parameters()]
        if self.placement is not None:
            return self.placement.clip(parameters, max_norm)
        return nn.utils.clip_grad_norm_(parameters, max_norm)

    def to(self, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        """Move every module, the frozen twins with them, and what the optimizers remember."""
        for _, filter in self.filters:
            filter._move(device, dtype)
        for optimizer in self.optimizers:
            if getattr(optimizer, "state", None) and hasattr(optimizer, "load_state_dict"):
                optimizer.load_state_dict(optimizer.state_dict())  # moves it to where weights are
        self.runner.changed()

    # Modes

    def train(self) -> None:
        """Put the graph and every module into training; the live modules are back in use."""
        self.training = True
        for _, filter in self.filters:
            filter._bring_back_live()
            filter.train()

    def eval(self) -> None:
        """Put the graph and every module into eval."""
        self._context.blocks_inference = False
        was_training, self.training = self.training, False
        for _, filter in self.filters:
            filter.eval()
        if was_training:
            self._settle_twins()

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Be in eval inside, and put every mode back as it was, submodule by submodule."""
        training, blocks = self.training, self._context.blocks_inference
        filters = [(filter, filter.training) for _, filter in self.filters]
        parts = [
            (part, part.training)
            for filter, _ in filters
            if filter._live is not None
            for part in filter._live.modules()
        ]
        self.eval()
        try:
            yield
        finally:
            if training:
                self.train()
            self.training = training
            self._context.blocks_inference = blocks
            for filter, mode in filters:
                filter.training = mode
            for part, mode in parts:
                part.training = mode

    def freeze(self) -> None:
        """Copy every module into a frozen twin, which inference uses from now on.

        All modules are copied before any twin is used; one that cannot be copied is named in a
        warning, and its live weights stay in use.
        """
        unbuilt(self.filters)
        shared: dict[int, object] = {}
        twins = [(filter, self._twin_of(node, filter, shared)) for node, filter in self.filters]
        self.training = False
        self._context.blocks_inference = False
        for (node, filter), (_, twin) in zip(self.filters, twins, strict=True):
            filter.eval()
            if twin is None:
                filter._drop_twin()
                self.runner.states.pop(node, None)
            else:
                filter._set_twin(twin)
                self.runner.states[node] = filter._twin_state

    def load_state(self, node: NodeId, state: object) -> None:
        """Put the weights of a node state into the live module, now or when it is built.

        Raises:
            InvalidInput: the state holds no weights, or those of another module.
        """
        if not isinstance(state, Mapping) or "weights_b64" not in state:
            raise InvalidInput(
                f"the state for `{node}` is {describe(state)}; a mapping with `weights_b64`, as "
                "`get_node_state` gives it after `freeze`, is wanted."
            )
        filter = dict(self.filters)[node]
        if filter._live is not None:
            home = at_home(filter._live)
            load_weights(home, state["weights_b64"])
            if isinstance(filter._live, StandIn):
                filter._live.take(home.state_dict())
            filter._drop_twin()
        self.runner.states[node] = state
        self.runner.changed()

    def _twin_of(
        self, node: NodeId, filter: DifferentiableFilter, shared: dict[int, object]
    ) -> nn.Module | None:
        assert filter._live is not None
        home = at_home(filter._live)
        try:
            return frozen_twin(home, shared)
        except Exception as error:
            warn(
                f"`{node}` ({filter._description()}) cannot be copied, so inference goes on with "
                f"its live weights: {type(error).__name__}: {error}",
                SomaWarning,
                stacklevel=4,
            )
            return None

    def _settle_twins(self) -> None:
        """Keep the twins that still equal the live weights, drop the others."""
        for _, filter in self.filters:
            if filter._twin is None or filter._live is None:
                continue
            if same_weights(filter._live, filter._twin):
                filter._use_twin(use=True)
            else:
                filter._drop_twin()

    # One step

    def context(self) -> Context:
        """Return the scope of one training step."""
        self._context.opened_in_eval = not self.training
        return self._context

    def forward(self, x: object, seed: int | None = None) -> object:
        """Give `(output, aux_by_node)` in training, the output alone in eval."""
        if self._seen_exchange != DifferentiableFilter._last_exchange:
            self._look_for_exchanges()
        if not self.training:
            if self._context.blocks_inference or isinstance(x, Prefix):
                self._refuse_inference()
            return self._inference.forward(x, seed)
        if seed is not None:
            raise ModeError(
                "`seed` was given to a training forward. It seeds inference and fit; seed a "
                "training loop once, before it, with `torch.manual_seed(seed)`."
            )
        for watcher in self.watchers:
            watcher.forward_begins(x)
        return self._run.forward(x)

    def stream(self, seed: int | None) -> Stream:
        """Return a pass of chunks through the graph, in eval.

        Raises:
            ModeError: the graph is in training, or gets there while the stream goes on.
            NotMaterialized: a module has not been built.
        """
        self._look_for_exchanges()
        self._check_stream()
        unbuilt(self.filters)

        def bind_for(chunk: object) -> Bind:
            self._check_stream()
            return self._inference.bind_for(chunk)

        return Stream(self.runner, seed, bind_for)

    def judged(self, x: object) -> tuple[object, Extras]:
        """Give `(output, aux_by_node)` as in training, from modules that are in eval."""
        self._look_for_exchanges()
        return self._run.judged(x)

    def prefix(self, x: object) -> Prefix:
        """Return what the opaque prefix gives for `x`."""
        return run_prefix(self.runner, x)

    def module(self) -> GraphModule:
        """Return the differentiable stretch as one module, in the mode of the graph."""
        return graph_module(self.runner, training=self.training)

    def backward(self, losses: object, *, retain_graph: bool) -> None:
        """Run autograd from one loss or several.

        Raises:
            ModeError: the loss has no gradient.
        """
        if isinstance(losses, Tensor) and not losses.requires_grad:
            raise ModeError(
                "the loss has no gradient, because it was made from an output of eval. Call "
                "`g.train()` before the forward."
                if not self.training
                else "the loss has no gradient, because gradients are off: leave `torch.no_grad()` "
                "or `torch.inference_mode()` before the forward."
                if not torch.is_grad_enabled()
                else "the loss has no gradient: no trainable node reaches it. Look for a "
                "`requires_grad_(False)`, and at where gradients stop: "
                "`for one in g.compile('differentiable').diagnostics: print(one)`."
            )
        if self.watchers:
            losses = _optimizers.loss_tensors(losses)
            for watcher in self.watchers:
                watcher.backward_begins(losses)
        if self.placement is not None:
            given = _optimizers.loss_tensors(losses)
            found = self.placement.backward(given, retain_graph=retain_graph)
            for watcher in self.watchers:
                watcher.gradients_came(found)
            return
        _optimizers.backward(losses, retain_graph=retain_graph)

    def step(self, only: str | Sequence[str] | None, closure: Closure | None) -> None:
        """Step the optimizers."""
        if self.placement is None:
            self.optimizers.step(only, closure)
        else:
            _refuse_closure(closure)
            self.placement.step(self.optimizers, only)
        if not self.training:
            self._settle_twins()
        if self.runner.listeners.events:
            self.runner.listeners.say(StepFinished(step=self.steps))
        self.steps += 1

    def zero_grad(self) -> None:
        """Clear the gradients."""
        self.optimizers.zero_grad()
        if self.placement is not None:
            self.placement.cleared()

    def _find_placement(self) -> None:
        nodes = self.runner.topology.nodes.values()
        if self.placement is not None or all(node.target is None for node in nodes):
            return
        if self._place is not None:
            self.placement = self._place(self.runner)
            self._context.begins = self.placement.begin

    def _look_for_exchanges(self) -> None:
        """Lower again if any module was built or exchanged since the last look."""
        if self._seen_exchange != DifferentiableFilter._last_exchange:
            self._seen_exchange = DifferentiableFilter._last_exchange
            self.runner.changed()
            if self.training:
                # A graph that shares filters with this one may have frozen them.
                for _, filter in self.filters:
                    filter._bring_back_live()

    def _check_stream(self) -> None:
        if self.training:
            raise ModeError(
                "a stream was asked of a graph in training; chunks run in eval only. Call "
                "`g.freeze()` or `g.eval()` first."
            )
        if self._context.blocks_inference:
            self._refuse_inference()

    def _refuse_inference(self) -> None:
        if self._context.blocks_inference:
            raise ModeError(
                "`forward` was called inside `g.context()` while the graph is in eval, so it would "
                "return the output alone and not `(output, aux)`. Call `g.train()` before the "
                "loop; for inference leave the context out."
            )
        raise ModeError("a prefix goes on in training only. Call `g.train()` first.")

    def make_optimizer(
        self, cls: Callable[..., Optimizer] | None, options: Mapping[str, object]
    ) -> Optimizer:
        """Build `cls`, Adam by default, over all parameters and keep it."""
        unbuilt(self.filters)
        make: Callable[..., Optimizer] = cls or Adam
        optimizer = make((parameter for _, parameter in self.named_parameters()), **options)
        self.optimizers.set(optimizer)
        return optimizer


def _refuse_closure(closure: Closure | None) -> None:
    if closure is not None:
        raise NoOptimizer(
            "`step` got a closure, and nodes of this graph are on workers: optimizers that run "
            "forward and backward themselves would need all weights in one place. Take another "
            "optimizer, such as Adam or SGD."
        )
