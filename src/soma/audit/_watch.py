"""`Watch`: puts an audit's hooks on modules, and takes all of them off again."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from soma.audit._measure._activations import name_of
from soma.audit._optimizers import FollowedOptimizers
from soma.audit._scope import Inside, InsideByNode, scope_of
from soma.audit._spots import Spot, spots_in
from soma.audit._step._hooks import Accumulated, ForwardSeen, InputSeen, RootEnded, RootStarted
from soma.audit._step._recorder import Recorder


class Watch:
    """The hooks of one audit."""

    def __init__(self, recorder: Recorder, inside: InsideByNode, stack: ExitStack) -> None:
        self._recorder = recorder
        self._inside = inside
        self._stack = stack
        self._armed: dict[str, ExitStack] = {}
        self._hooked: dict[
            int, int
        ] = {}  # by id of a module, the index of the spot that its hook has
        self._inputs: set[int] = set()  # activations whose input is looked at
        self._known: tuple[int, list[bool]] | None = None
        self._has_lazy = False
        recorder.attach = self.attach
        recorder.arm = self.arm
        self.optimizers = FollowedOptimizers(recorder, stack)

    def add(
        self, node: str, module: nn.Module, own: Inside | None = None, *, is_tapped: bool = False
    ) -> int:
        """Watch a module and what is in scope inside it; return the index of its own spot.

        Args:
            node: the name that it goes by.
            module: the module.
            own: the scope that its filter asks for.
            is_tapped: somebody else tells of its outputs, so no hook is needed.
        """
        recorder = self._recorder
        spots = spots_in(node, module, scope_of(self._inside, node, own), recorder.channel_config)
        for spot in spots:
            spot.index = len(recorder.spots)
            recorder.spots.append(spot)
        if is_tapped:
            spots[0].unobserved = None
        else:
            hook = RootStarted(recorder, node)
            if spots[0].unobserved is None:
                self._keep(
                    self._stack,
                    lambda: module.register_forward_pre_hook(hook, with_kwargs=True),
                )
        for spot in spots[is_tapped:]:
            self._hook(spot)
        if is_tapped:
            self._look_at_input(spots[0], self._stack)
        recorder.settler.describe()
        self.attach()
        return spots[0].index

    def add_elsewhere(self, node: str, module: nn.Module) -> int:
        """Watch what comes from a module in another process; return the index of its spot.

        Args:
            node: the name that it goes by.
            module: what stands for it here, with parameters that have no numbers.
        """
        recorder = self._recorder
        spot = Spot(node, "", module, None)
        parameters = [*module.parameters()]
        trainable = _size(parameters, True)
        spot.parameters = (_size(parameters), trainable, trainable)
        spot.module, spot.index = None, len(recorder.spots)
        spot.elsewhere = spot.described()
        recorder.spots.append(spot)
        recorder.settler.describe()
        return spot.index

    def repeat_alone(self, node: str, module: nn.Module) -> None:
        """Have a module run again by itself, where the whole network cannot be."""
        recorder = self._recorder
        begins, ends = RootStarted(recorder, node), RootEnded(recorder, node)
        if not isinstance(module, torch.jit.ScriptModule):
            self._keep(
                self._stack, lambda: module.register_forward_pre_hook(begins, with_kwargs=True)
            )
            self._keep(self._stack, lambda: module.register_forward_hook(ends))

    def attach(self) -> None:
        """Index the parameters of all spots, and put hooks on those that now ask for a gradient."""
        recorder = self._recorder
        flags = [weight.parameter.requires_grad for weight in recorder.weights.all]
        if self._known == (len(recorder.spots), flags) and not self._has_lazy:
            return
        self._has_lazy = False
        recorder.read()  # steps that have ended knew other parameters
        for spot in recorder.spots:
            self._index_parameters(spot)
        recorder.weights.attach(partial(Accumulated, recorder), self._stack)
        flags = [weight.parameter.requires_grad for weight in recorder.weights.all]
        self._known = (len(recorder.spots), flags)

    def arm(self, node: str, on: bool) -> None:
        """Put on, or take off, a node's hooks that would make inference leave a fused kernel."""
        shy = [spot for spot in self._recorder.spots if spot.is_fused_in_eval and spot.node == node]
        if not shy or on == (node in self._armed):
            return
        if not on:
            self._armed.pop(node).close()
            return
        stack = self._armed[node] = ExitStack()
        self._stack.callback(stack.close)
        for spot in shy:
            if spot.path:
                self._install(spot, stack)

    def _hook(self, spot: Spot) -> None:
        if spot.unobserved is not None or spot.module is None:
            return
        first = self._hooked.setdefault(id(spot.module), spot.index)
        if first != spot.index:
            # A module in several nodes has one hook; the node that runs tells which spot it is.
            self._recorder.shared.setdefault(first, [first]).append(spot.index)
        elif not (spot.is_fused_in_eval and spot.path):
            self._install(spot, self._stack)

    def _install(self, spot: Spot, stack: ExitStack) -> None:
        module, recorder = spot.module, self._recorder
        if module is None or spot.unobserved is not None:
            return
        if self._hooked.get(id(module), spot.index) == spot.index:
            self._keep(
                stack, lambda: module.register_forward_hook(ForwardSeen(recorder, spot.index))
            )
        self._look_at_input(spot, stack)

    def _look_at_input(self, spot: Spot, stack: ExitStack) -> None:
        activation, recorder = spot.activation, self._recorder
        if activation is None or id(activation) in self._inputs:
            return
        if isinstance(activation, torch.jit.ScriptModule) or spot.unobserved is not None:
            return
        if recorder.channel_config is None and name_of(activation) != "softmax":
            return
        self._inputs.add(id(activation))
        stack.callback(self._inputs.discard, id(activation))
        self._keep(stack, lambda: activation.register_forward_pre_hook(InputSeen(recorder)))

    def _keep(self, stack: ExitStack, register: Callable[[], Any]) -> None:
        stack.callback(register().remove)

    def _index_parameters(self, spot: Spot) -> None:
        if spot.module is None:
            return
        parameters = _distinct(list(spot.module.parameters()))
        self._has_lazy |= any(is_lazy(one) for one in parameters)
        parameters = [one for one in parameters if not is_lazy(one)]
        own = [one for one in spot.module.parameters(recurse=False) if not is_lazy(one)]
        spot.weights = [self._recorder.weights.add(one) for one in parameters]
        spot.parameters = (_size(parameters), _size(parameters, True), _size(own, True))


def _distinct(parameters: Sequence[nn.Parameter]) -> list[nn.Parameter]:
    return list({id(one): one for one in parameters}.values())


def _size(parameters: Sequence[nn.Parameter], trainable: bool = False) -> int:
    return sum(one.numel() for one in parameters if one.requires_grad or not trainable)
