"""`Recorder`: what happens while a step is under way, as hooks tell it, in whatever order.

Its three parts are those of a step: forward, backward, the optimizer's step. When a step begins
and ends is told in `_lifecycle.py`; `_reader.py` and `_parameters/` take the numbers meanwhile.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from soma.audit._scope import ChannelConfig
from soma.audit._step._budget import Budget
from soma.audit._step._hooks import BackwardEnded, GradientSeen, OutputGradientSeen
from soma.audit._step._lifecycle import StepLifecycle
from soma.audit._step._loss import loss_on_stack
from soma.audit._step._optimizer_steps import parameters_of, read_scaler
from soma.audit._step._settler import USED
from soma.audit._step._torch_state import at_backward_end, running_backward
from soma.audit._step._trace import Call, Reading


class Recorder(StepLifecycle):
    """Takes what hooks bring, and adds it to the step under way."""

    def __init__(self, channel_config: ChannelConfig | None, budget: Budget) -> None:
        super().__init__(
            channel_config,
            budget,
            gradient_hook=partial(GradientSeen, self),
            kept_gradient_hook=partial(OutputGradientSeen, self),
        )
        self.node: str | None = None  # the node whose forward runs
        self.shared: dict[int, list[int]] = {}  # spots of one module in several nodes
        self.is_joint = False  # other processes step too, and it is told when all have
        self.has_optimizers = False  # some are known
        # `Watch` puts its own in place of these.
        self.arm: Callable[[str, bool], None] = lambda node, on: None  # hooks off in inference
        self.find_optimizers: Callable[[], None] = lambda: None  # that are not known yet
        self._order = 0  # of the next spot that is called for the first time

    # Forward

    def forward_begins(
        self,
        node: str | None,
        run: Callable[..., object],
        args: Sequence[object],
        named: Mapping[str, object],
    ) -> None:
        """Take what a forward of a named module, or of the whole graph, starts from."""
        if node is not None:
            self.node_started(node)
        if not self.grad_mode or running_backward() != -1:
            return
        step, this_pass = self._pass(recomputed=False)
        in_eval = isinstance(run, nn.Module) and not run.training
        is_outermost = node is None or not self.replays.is_inside
        if is_outermost and this_pass.begin_forward(node, in_eval=in_eval):
            self.replays.forget(step)
        if not self.replays.found:  # else nothing will be run again
            self.replays.begin(step, node, run, args, named)

    def node_started(self, node: str) -> None:
        """Remember which node's forward runs, to tell calls of a shared module apart."""
        self.node = node
        self.arm(node, self.grad_mode)

    def forward_seen(self, at: int, output: object) -> None:
        """Take a call of the spot with the index `at`."""
        if at in self.shared:
            at = next((one for one in self.shared[at] if self.spots[one].node == self.node), at)
        spot = self.spots[at]
        recomputed = running_backward() != -1
        if not self.grad_mode:
            spot.calls_without_grad += not recomputed
            return
        if recomputed:
            # A checkpoint runs its part again. It counts where the first run had no gradients.
            if not spot.calls_without_grad:
                return
            spot.calls_without_grad -= 1
        step, this_pass = self._pass(recomputed=recomputed)
        if spot.order < 0:
            self._order += spot.inner_units
            spot.order = self._order
            if spot.unobserved == USED:
                spot.unobserved = None
            self._order += 1
            self.attach()
        step.calls[at] = step.calls.get(at, 0) + 1
        is_root = not spot.path and not self.outputs.are_told and not recomputed
        if not step.whole:
            if is_root:
                self.replays.end(spot.node, output)
            return
        read = spot if spot.elsewhere is None else None  # of those more is known elsewhere
        parts = self.reader.output(this_pass, read, output, step)
        if is_root:
            self.replays.end(spot.node, output, parts=parts)
        given = this_pass.inputs.get(id(spot.activation))
        this_pass.calls.setdefault(at, []).append(Call(parts, given))
        if not spot.path:
            this_pass.roots.append((at, [reading for _, reading in parts]))

    def input_seen(self, activation: nn.Module, given: object) -> None:
        """Take what an activation is given."""
        if self.grad_mode and running_backward() == -1 and isinstance(given, Tensor):
            step, this_pass = self._pass(recomputed=False)
            self.reader.activation_input(this_pass, activation, given, step)

    def network_output(self, value: object, name: str) -> None:
        """Take the output of the whole network, where a graph says which that is."""
        if not self.grad_mode or running_backward() != -1:
            return
        step, this_pass = self._pass(recomputed=False)
        self.replays.end(None, value, name)
        if step.whole:
            found = self.reader.output(this_pass, None, value, step)
            this_pass.outputs += [reading for _, reading in found]

    # Backward

    def given_loss(self, losses: Sequence[Tensor]) -> None:
        """Take the loss that a backward is about to start from."""
        if self.step is not None and losses and not (self._open and self.step.loss):
            total = losses[0].detach()
            if len(losses) > 1 or total.numel() > 1:
                total = torch.stack([one.detach().float().sum() for one in losses]).sum()
            self.step.loss.append(self.measures.boards.put(total.reshape(1)))

    def gradient_seen(self, reading: Reading, gradient: Tensor) -> None:
        """Take the gradient of a tensor."""
        backward = self._backward()
        if self.step is not None and self.step.whole:
            row = self.reader.gradient(reading, backward, gradient)
            for call, suffix in reading.kept_for:
                self.replays.gradient_came(call, suffix, gradient, row)

    def accumulated(self, index: int) -> None:
        """Take note that a parameter has got a gradient."""
        backward = self._backward()
        self.arrivals.collect()
        step = self.step or self._pass(recomputed=True)[0]
        if not step.arrived and not self.has_optimizers:
            self.find_optimizers()
        step.arrived.add(index)
        self.given_loss(loss_on_stack(step, backward))
        step.reached.add(backward)
        if step.passes:
            step.passes[-1].has_backward = True
        self.weights.arrived(index)
        if self.weights.has_other_hooks(index):
            # It may be cleared before the backward ends.
            self.weights.measure([index], step.norms)
        self.arrivals.came(index, backward, is_innermost=self._backwards[-1:] == [backward])

    def backward_ended(self, backward: int) -> None:
        """Measure the gradients as they are now."""
        if backward in self._backwards:
            del self._backwards[self._backwards.index(backward) :]
        self.arrivals.end_backward()
        step = self.step
        if step is None or backward not in step.reached:
            return
        self.weights.after_backward(self.arrivals.unread(), step.norms)
        if step.has_stepped and not self._open:
            self._end(skipped=False)  # the optimizer steps within the backward

    def _backward(self) -> int:
        """Return the id of the backward that runs; take note of one that was not seen before."""
        backward = running_backward()
        if backward not in self._backwards:
            self._backward_begins(backward)
        return backward

    def _backward_begins(self, backward: int) -> None:
        self.arrivals.end_backward()
        if self.step is not None and not self._backwards and not self._open:
            self._look_for_dropped()
        if (step := self.step) is not None:
            if self._backwards:
                step.outer[backward] = self._backwards[-1]
            if step.passes:
                self.outputs.find(step.passes[-1])
                step.passes[-1].forget_graph()
            step.backwards.add(backward)
        self._backwards.append(backward)
        at_backward_end(BackwardEnded(self, backward))

    def _look_for_dropped(self) -> None:
        """End a step whose gradients were cleared before any optimizer used them."""
        step = self.step
        if step is None or not step.arrived or len(step.passes) < 2:
            return
        if self.weights.were_cleared(step.arrived):
            current = step.passes.pop()
            self._end(skipped=True)
            self.find_optimizers()  # is there one that is not known yet?
            again, _ = self._pass(recomputed=False)
            again.passes[:] = [current]

    # The optimizer's step

    def before_step(self, optimizer: Optimizer) -> None:
        """Measure gradients as the optimizer finds them, and weights before it moves them."""
        own = self._own(optimizer)
        if not own or not self._open.enter(optimizer):
            return
        self.arrivals.collect()
        ended = self._ended
        if self.step is None and ended is not None and id(optimizer) not in ended.optimizers:
            self._reopen()
        if self.step is None:
            self._pass(recomputed=False)
        step = self.step
        assert step is not None
        step.optimizers.add(id(optimizer))
        step.held.update(own)
        read_scaler(optimizer, step.norms, self.measures.boards)
        self.weights.before_step(own, step.arrived, step.norms)
        self.measures.boards.read()
        self._settle_some()
        self.replays.look(step)
        if step.whole:
            self.weights.keep(own, step.norms)

    def in_the_middle_of(self, optimizer: Optimizer) -> None:
        """Take note of an optimizer's step that began before its hooks were put on."""
        self._open.was_entered(optimizer)

    def closure_ran(self) -> None:
        """Look for an origin inside an optimizer's step, after a backward that ran in there."""
        if self.step is not None and self._open:
            self.measures.boards.read()
            self.replays.look(self.step)

    def after_step(self, optimizer: Optimizer) -> None:
        """Measure what the optimizer has changed; the step is over."""
        own = self._own(optimizer)
        step = self.step
        if not own or not self._open.leave(optimizer) or step is None:
            return
        self.weights.after_step(own, step.norms, whole=step.whole)
        step.has_stepped = True
        if running_backward() == -1 and not self.is_joint:
            self._end(skipped=False)

    def stepped_unseen(self) -> None:
        """End a step of an optimizer that torch's hooks know nothing of."""
        if self.step is not None and self.step.arrived and not self.step.has_stepped:
            self._end(skipped=False)

    def _own(self, optimizer: Optimizer) -> list[int]:
        """Return the indices of the parameters under audit that an optimizer holds."""
        return self.weights.known(parameters_of(optimizer))
