"""One node on a worker, with its module: in a graph of its own, so that it runs as it would here.

`_host.py` has all of them; what stands for one in the program is in `_stand_in.py`.
"""

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn

from soma.core import NodeId, Topology
from soma.distributed._aligned import received, sent
from soma.distributed._messages import Answer, Contents, Mode, Weight
from soma.distributed._watched import Outposts
from soma.engine import Call, Runner
from soma.training import DifferentiableFilter, TrainingRun
from soma.training import build as build_module


class HostedNode:
    """One differentiable node, in a graph of its own."""

    def __init__(
        self,
        id: NodeId,
        filter: DifferentiableFilter,
        device: torch.device,
        outposts: Outposts,
    ) -> None:
        topology = Topology()
        topology.add(filter, id)
        self.filter = filter
        self.device = device
        self._outposts = outposts  # of the audits that listen
        self.node = topology.node(id)
        self.runner = Runner(topology, seed=None, executor=None)
        self._run = TrainingRun(self.runner)
        self._calls: dict[bool, Call] = {}
        self._frozen: tuple[str, ...] | None = None  # as the client last had it

    @property
    def module(self) -> nn.Module:
        """The module, once it is built."""
        assert self.filter._live is not None
        return self.filter._live

    def build(self, x: object) -> object:
        """Build the module, and answer to a sample in eval."""
        output = build_module(self.runner, self.node, received(x, self.device))
        self.module.to(self.device)
        self._calls = {}
        return sent(output)

    def answer(self, x: object, mode: Mode) -> Answer:
        """Return what the node gives."""
        if self.filter.training is not mode.module_trains:
            self.filter.train(mode.module_trains)
        if mode.frozen != self._frozen:
            for name, parameter in self.module.named_parameters():
                parameter.requires_grad_(name not in mode.frozen)
            self._frozen = mode.frozen
        call = self._calls.get(mode.graph_trains)
        if call is None:
            call = self._run.call(self.node, judging=not mode.graph_trains)
            self._calls[mode.graph_trains] = call
        if mode.generator is not None:
            torch.set_rng_state(mode.generator)
        before = torch.get_rng_state()
        with torch.set_grad_enabled(mode.gradients):
            given = received(x, self.device)
            with self._outposts.hearing(self.node.id, mode.turns, call.function, given) as heard:
                answer = call.function(given)
                both = answer if call.has_extra else (answer, {})
                output, aux = cast(tuple[object, object], both)
                heard(output)
            after = torch.get_rng_state()
            drawn = None if torch.equal(before, after) else after
            if aux:
                output, aux = cast(tuple[object, object], sent((output, aux)))
            else:
                output = sent(output)
            return output, aux, drawn

    def rebuild(self, weights: Mapping[str, Tensor]) -> None:
        """Build the module for the shape that the filter remembers, with given weights."""
        self.filter.materialize(self.filter._built_for)
        self.module.to(self.device)
        self.take(weights)

    def weights(self) -> tuple[Weight, ...]:
        """Return the parameters, without their numbers."""
        return tuple(
            Weight(name, tuple(one.shape), one.dtype, one.requires_grad)
            for name, one in self.module.named_parameters()
        )

    def contents(self) -> Contents:
        """Return what the module holds."""
        state = self.module.state_dict()
        extra = {name: state[name] for name in state if name.endswith("_extra_state")}
        tensors = {name: one.detach().cpu() for name, one in self._tensors().items()}
        return Contents(tensors, extra)

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Copy weights and buffers, by name, into the module."""
        with torch.no_grad():
            for name, tensor in self._tensors().items():
                if name in weights and weights[name].shape == tensor.shape:
                    tensor.copy_(weights[name])

    def _tensors(self) -> dict[str, Tensor]:
        """Return parameters and buffers by name."""
        return {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
