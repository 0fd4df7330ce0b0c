"""`Recorder`: takes what hooks bring, in whatever order, and knows when a step has ended.

A step is an optimizer's step. Forwards and backwards before it belong to it; where nobody
steps an optimizer, the next forward after cleared gradients, or the end of the audit, ends it.
`_settler.py` then makes plain numbers of what was taken.
"""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from soma.audit._parameters._weights import Numbers, Weights
from soma.audit._scope import ChannelConfig
from soma.audit._step._arrivals import Arrivals
from soma.audit._step._budget import Budget
from soma.audit._step._guarded import Guarded
from soma.audit._step._hooks import BackwardEnded, at_backward_end, running_backward
from soma.audit._step._loss import untold_loss
from soma.audit._step._optimizers import Followed, OpenSteps, parameters_of, scale_of
from soma.audit._step._outputs import Outputs
from soma.audit._step._passes import Call, Pass, Reading, Taken
from soma.audit._step._reader import Reader
from soma.audit._step._replays import Repeats
from soma.audit._step._settler import USED, Settler


class Recorder(Guarded):
    """The state of one audit."""

    def __init__(self, config: ChannelConfig | None, budget: Budget) -> None:
        super().__init__()
        self.config = config
        self.budget = budget
        self.is_closed = False
        self.is_deaf = False  # closed, or running a step again to see where it went wrong
        self.reader = Reader(self, config)
        self.measures = self.reader.measures
        self.weights = Weights(self.measures)
        self.arrivals = Arrivals(self)
        self.outputs = Outputs(self.spots)
        self.repeats = Repeats(self)
        self.settler = Settler(
            self.measurements, self.spots, self.weights, self.measures.boards, self.reader.pools
        )
        self.node: str | None = None  # whose turn it is
        self.shared: dict[int, list[int]] = {}  # spots of one module in several nodes
        self.arm: Callable[[str, bool], None] | None = None
        self.on_step: list[Callable[[], None]] = []
        self.attach: Callable[[], None] = lambda: None  # hooks for parameters that are new
        self.bring: Callable[[], None] = lambda: None  # numbers from other processes
        self.is_joint = False  # a step ends when all processes have stepped, which is told
        self.settled = False  # numbers of a step have come since this was last looked at
        self.followed: Followed | None = None
        self._order = 0
        self._now: Taken | None = None  # the step that is under way
        self._last: Taken | None = None  # the one before, until a forward begins
        self._numbers = Numbers()
        self._last_numbers = Numbers()
        self._running: list[int] = []  # backwards on their way, the inner ones last
        self._open = OpenSteps()
        self._steps = 0
        self._ended = perf_counter()

    @property
    def under_way(self) -> tuple[Taken | None, Numbers]:
        """The step that is under way, and its numbers."""
        return self._now, self._numbers

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
        # Once an origin is known, nothing will be run again.
        if self.grad_mode and not self.repeats.found and running_backward() == -1:
            taken, _ = self._pass(repeated=False)
            self.repeats.begin(taken, node, run, args, named)

    def node_started(self, node: str) -> None:
        """Know whose turn it is; what follows belongs to that node."""
        self.node = node
        if self.arm is not None:
            self.arm(node, self.grad_mode)

    def forward_seen(self, at: int, output: object) -> None:
        """Take a call of a spot."""
        if at in self.shared:
            at = next((one for one in self.shared[at] if self.spots[one].node == self.node), at)
        spot = self.spots[at]
        repeated = running_backward() != -1
        if not self.grad_mode:
            spot.dark += not repeated
            return
        if repeated:
            # A checkpoint runs its part again. It counts where the first run had no gradients.
            if not spot.dark:
                return
            spot.dark -= 1
        taken, at_pass = self._pass(repeated=repeated)
        if spot.order < 0:
            self._order += spot.places
            spot.order = self._order
            if spot.unobserved == USED:
                spot.unobserved = None
            self._order += 1
            self.attach()
        taken.calls[at] = taken.calls.get(at, 0) + 1
        ends = not spot.path and not self.outputs.are_told and not repeated
        if not taken.whole:
            if ends:
                self.repeats.end(spot.node, output)
            return
        read = spot if spot.elsewhere is None else None  # of those more is known elsewhere
        parts = self.reader.output(at_pass, read, output, taken)
        if ends:
            self.repeats.end(spot.node, output, parts=parts)
        given = at_pass.inputs.get(id(spot.activation))
        at_pass.calls.setdefault(at, []).append(Call(parts, given))
        if not spot.path:
            at_pass.roots.append((at, [reading for _, reading in parts]))

    def input_seen(self, activation: nn.Module, given: object) -> None:
        """Take what an activation is given."""
        if self.grad_mode and running_backward() == -1 and isinstance(given, Tensor):
            taken, at_pass = self._pass(repeated=False)
            self.reader.activation_input(at_pass, activation, given, taken)

    def network_output(self, value: object, name: str) -> None:
        """Take the output of the whole network, where a graph says which that is."""
        if not self.grad_mode or running_backward() != -1:
            return
        taken, at_pass = self._pass(repeated=False)
        self.repeats.end(None, value, name)
        if taken.whole:
            at_pass.outputs += [one for _, one in self.reader.output(at_pass, None, value, taken)]

    def _pass(self, *, repeated: bool) -> tuple[Taken, Pass]:
        if self._now is None:
            number = self._steps
            self._last = None
            self._running.clear()
            whole = self.weights.are_spread or self.budget.is_whole(number)
            self._now = Taken(number, whole=whole, began=self._ended)
            self._numbers = Numbers()
            self.arrivals.begin()
            self.attach()
        passes = self._now.passes
        if not passes or (passes[-1].has_backward and not repeated):
            if running_backward() == -1:
                self._running.clear()
            passes.append(Pass())
        return self._now, passes[-1]

    # Backward

    def given_loss(self, losses: Sequence[Tensor]) -> None:
        """Take the loss that a backward is about to start from."""
        if self._now is not None and losses and not (self._open and self._now.loss):
            total = losses[0].detach()
            if len(losses) > 1 or total.numel() > 1:
                total = torch.stack([one.detach().float().sum() for one in losses]).sum()
            self._now.loss.append(self.measures.boards.put(total.reshape(1)))

    def gradient_seen(self, reading: Reading, gradient: Tensor) -> None:
        """Take the gradient of a tensor."""
        task = self._task()
        if self._now is not None and self._now.whole:
            row = self.reader.gradient(reading, task, gradient)
            for call, suffix in reading.kept_for:
                self.repeats.gradient_came(call, suffix, gradient, row)

    def accumulated(self, index: int) -> None:
        """Take note that a parameter has got a gradient."""
        task = self._task()
        self.arrivals.land()
        taken = self._now or self._pass(repeated=True)[0]
        if not taken.arrived and not self.followed and self.followed is not None:
            self.followed.search(self.weights)
        taken.arrived.add(index)
        self.given_loss(untold_loss(taken, task))
        taken.real.add(task)
        if taken.passes:
            taken.passes[-1].has_backward = True
        self.weights.arrived(index)
        if self.weights.is_of_interest(index):
            # It may be cleared before the backward ends.
            self.weights.measure([index], self._numbers)
        self.arrivals.came(index, task, is_innermost=self._running[-1:] == [task])

    def backward_ended(self, task: int) -> None:
        """Measure the gradients as they are now."""
        if task in self._running:
            del self._running[self._running.index(task) :]
        self.arrivals.end()
        if self._now is None or task not in self._now.real:
            return
        self.weights.after_backward(self.arrivals.unread(), self._numbers)
        if self._now.stepped and not self._open:
            self._close(skipped=False)  # the optimizer steps within the backward

    def _task(self) -> int:
        task = running_backward()
        if task not in self._running:
            self.arrivals.end()
            if self._now is not None and not self._running and not self._open:
                self._look_for_dropped()
            if self._now is not None and self._running:
                self._now.parents[task] = self._running[-1]
            if self._now is not None and self._now.passes:
                at_pass = self._now.passes[-1]
                self.outputs.find(at_pass)
                at_pass.forget()
            self._running.append(task)
            if self._now is not None:
                self._now.tasks.add(task)
            at_backward_end(BackwardEnded(self, task))
        return task

    def _look_for_dropped(self) -> None:
        """End a step whose gradients were cleared before any optimizer used them."""
        taken = self._now
        if taken is None or not taken.arrived or len(taken.passes) < 2:
            return
        if self.weights.were_cleared(taken.arrived):
            current = taken.passes.pop()
            self._close(skipped=True)
            if self.followed is not None:
                self.followed.search(self.weights)  # is there one that is not known yet?
            again, _ = self._pass(repeated=False)
            again.passes[:] = [current]

    # The optimizer's step

    def before_step(self, optimizer: Optimizer) -> None:
        """Measure gradients as the optimizer finds them, and weights before it moves them."""
        own = self._own(optimizer)
        if not own or not self._open.enter(optimizer):
            return
        self.arrivals.land()
        if (
            self._now is None
            and self._last is not None
            and id(optimizer) not in self._last.steppers
        ):
            self._reopen()
        if self._now is None:
            self._pass(repeated=False)
        assert self._now is not None
        numbers = self._numbers
        self._now.steppers.add(id(optimizer))
        self._now.held.update(own)
        scale_of(optimizer, numbers, self.measures.boards)
        self.weights.before_step(own, self._now.arrived, numbers)
        self.measures.boards.read()
        self._settle_some()
        self.repeats.look(self._now, numbers)
        if self._now.whole:
            self.weights.keep(own, numbers)

    def in_the_middle_of(self, optimizer: Optimizer) -> None:
        """Know of a step that had begun before anybody looked."""
        self._open.was_entered(optimizer)

    def closure_ran(self) -> None:
        """Look for an origin inside an optimizer's step, after a backward that ran in there."""
        if self._now is not None and self._open:
            self.measures.boards.read()
            self.repeats.look(self._now, self._numbers)

    def after_step(self, optimizer: Optimizer) -> None:
        """Measure what has moved; the step is over."""
        own = self._own(optimizer)
        if not own or not self._open.leave(optimizer) or self._now is None:
            return
        self.weights.after_step(own, self._numbers, whole=self._now.whole)
        self._now.stepped = True
        if running_backward() == -1 and not self.is_joint:
            self._close(skipped=False)

    def stepped_unseen(self) -> None:
        """End a step of an optimizer that torch's hooks know nothing of."""
        if self._now is not None and self._now.arrived and not self._now.stepped:
            self._close(skipped=False)

    def _own(self, optimizer: Optimizer) -> list[int]:
        return self.weights.known(parameters_of(optimizer))

    # The end of a step

    def tell(self) -> None:
        """Call those who asked to be told of new numbers; what they raise goes to the user."""
        if self.settled and self.on_step:
            self.settled = False
            self.settler.describe()
            for listener in tuple(self.on_step):
                listener()

    def close(self, *, halfway: bool = False) -> None:
        """End the audit, and the step that is under way; halfway, only a bad one is kept."""
        self.arrivals.land()
        self.measures.boards.read()
        if self._now is not None and self._now.arrived and not (halfway and self._numbers.are_fine):
            self._close(skipped=False)
        elif self._now is not None:
            for at_pass in self._now.passes:
                at_pass.end()
        self._now = self._last = None
        self.read()
        self.settler.describe()
        self.is_closed = self.is_deaf = True
        self.weights.let_go()
        for spot in self.spots:
            spot.module = spot.activation = None
        self.reader.pools.clear()

    def read(self) -> None:
        """Bring all numbers over that are still on their device."""
        self.measures.boards.read()
        self._settle()

    def _close(self, *, skipped: bool) -> None:
        taken, numbers = self._now, self._numbers
        assert taken is not None
        self._gather_dark(taken)
        self.settler.take(taken, numbers, skipped=skipped)
        for at_pass in taken.passes:
            at_pass.end()
        self.repeats.forget(taken)
        self._last, self._last_numbers, self._now = taken, numbers, None
        self._steps += 1
        now = perf_counter()
        self.budget.note(taken.number, self.spent, now - taken.began)
        self.spent, self._ended = 0.0, now
        self.measurements.every = self.budget.every
        if self.budget.every > 1 and taken.whole:
            self.weights.let_go()
        self._settle_some()

    def _gather_dark(self, taken: Taken) -> None:
        for at, spot in enumerate(self.spots):
            if spot.dark:
                taken.dark[at] = taken.dark.get(at, 0) + spot.dark
                spot.dark = 0

    def _settle_some(self) -> None:
        """Settle what somebody waits for; of the rest many steps in one go, which is faster."""
        if self.on_step or self.settler.has_many:
            self._settle()

    def _settle(self) -> None:
        if self.settler.settle():
            self.settled = True

    def _reopen(self) -> None:
        """Go on with a step of which another optimizer has been seen already."""
        self.read()
        self._now, self._numbers = self._last, self._last_numbers
        self._last = None
        self._steps -= 1
        assert self._now is not None
        self.settler.take_back(self._now.number)
