"""`StepLifecycle`: when a step begins, when it has ended, and when its numbers are settled.

A step is an optimizer's step, with the forwards and backwards before it:

    none       -> under way  at the first forward, gradient or optimizer's step
    under way  -> ended      when the optimizer's step ends, or the audit
    under way  -> ended      as skipped, when gradients turn out to be cleared and used by nobody
    ended      -> under way  again, when another optimizer steps before the next forward
    ended      -> settled    when all its numbers have arrived from their devices

`_recorder.py` goes on with what happens while it is under way.
"""

from collections.abc import Callable
from time import perf_counter

from soma.audit._parameters._weights import Weights
from soma.audit._scope import ChannelConfig
from soma.audit._step._arrivals import Arrivals
from soma.audit._step._budget import Budget
from soma.audit._step._guarded import Guarded
from soma.audit._step._optimizer_steps import OpenSteps
from soma.audit._step._outputs import Outputs
from soma.audit._step._reader import GradientHook, Reader
from soma.audit._step._replays import KeptGradientHook, Replays
from soma.audit._step._settler import Settler
from soma.audit._step._torch_state import running_backward
from soma.audit._step._trace import Pass, StepTrace


class StepLifecycle(Guarded):
    """The steps of one audit, one after the other, and the parts that measure them.

    Args:
        channel_config: which channels are told apart; None: none.
        budget: says which steps are measured whole.
        gradient_hook: makes the hook that takes a tensor's gradient for its numbers.
        kept_gradient_hook: makes the hook that keeps a gradient, to run a step again.
    """

    def __init__(
        self,
        channel_config: ChannelConfig | None,
        budget: Budget,
        *,
        gradient_hook: GradientHook,
        kept_gradient_hook: KeptGradientHook,
    ) -> None:
        super().__init__()
        self.channel_config = channel_config
        self.budget = budget
        self.reader = Reader(channel_config, gradient_hook)
        self.measures = self.reader.measures
        self.weights = Weights(self.measures)
        self.arrivals = Arrivals(self.weights)
        self.outputs = Outputs(self.spots)
        self.replays = Replays(
            self.spots,
            self.measurements.origins,
            self.arrivals,
            gradient_hook=kept_gradient_hook,
            deaf=self.deaf,
        )
        self.settler = Settler(
            self.measurements, self.spots, self.weights, self.measures.boards, self.reader.pools
        )
        self.on_step: list[Callable[[], None]] = []
        self.attach: Callable[[], None] = lambda: None  # hooks for parameters that are new
        self.bring: Callable[[], None] = lambda: None  # numbers from other processes
        self.is_closed = False
        self.step: StepTrace | None = None  # the one under way
        self._ended: StepTrace | None = None  # the one before, until a forward begins
        self._ended_at = perf_counter()
        self._count = 0  # of steps that have ended
        self._backwards: list[int] = []  # ids of those that run, the inner ones last
        self._open = OpenSteps()  # optimizers in the middle of their step
        self._has_news = False  # numbers have been settled since this was last looked at

    # A step begins

    def _pass(self, *, recomputed: bool) -> tuple[StepTrace, Pass]:
        """Return the step and the pass under way, new ones where there are none.

        Args:
            recomputed: a checkpoint runs a forward again inside a backward.
        """
        if self.step is None:
            self._begin()
            assert self.step is not None
        passes = self.step.passes
        if not passes or (passes[-1].has_backward and not recomputed):
            if running_backward() == -1:
                self._backwards.clear()
            passes.append(Pass())
        return self.step, passes[-1]

    def _begin(self) -> None:
        whole = self.weights.are_spread or self.budget.is_whole(self._count)
        self._ended = None
        self._backwards.clear()
        self.step = StepTrace(self._count, whole=whole, began=self._ended_at)
        self.arrivals.begin(self.step)
        self.attach()

    # A step ends

    def _end(self, *, skipped: bool) -> None:
        step = self.step
        assert step is not None
        self._take_calls_without_grad(step)
        self.settler.take(step, skipped=skipped)
        for one in step.passes:
            one.end()
        self.replays.forget(step)
        self._ended, self.step, self.arrivals.step = step, None, None
        self._count += 1
        now = perf_counter()
        self.budget.note(step.number, self.spent, now - step.began)
        self.spent, self._ended_at = 0.0, now
        self.measurements.every = self.budget.every
        if self.budget.every > 1 and step.whole:
            self.weights.let_go()
        self._settle_some()

    def _take_calls_without_grad(self, step: StepTrace) -> None:
        for at, spot in enumerate(self.spots):
            if spot.calls_without_grad:
                known = step.calls_without_grad.get(at, 0)
                step.calls_without_grad[at] = known + spot.calls_without_grad
                spot.calls_without_grad = 0

    def _reopen(self) -> None:
        """Go on with the step before: another optimizer has a part in it."""
        self.read()
        step = self._ended
        assert step is not None
        self.step, self.arrivals.step, self._ended = step, step, None
        self._count -= 1
        self.settler.take_back(step.number)

    def close(self, *, halfway: bool = False) -> None:
        """End the audit, and the step that is under way; halfway, only a bad one is kept."""
        self.arrivals.collect()
        self.measures.boards.read()
        step = self.step
        if step is not None and step.arrived and not (halfway and step.norms.are_fine):
            self._end(skipped=False)
        elif step is not None:
            for one in step.passes:
                one.end()
        self.step = self._ended = self.arrivals.step = None
        self.read()
        self.settler.describe()
        self.is_closed = self.is_deaf = True
        self.weights.let_go()
        for spot in self.spots:
            spot.module = spot.activation = None
        self.reader.pools.clear()

    # A step is settled

    def read(self) -> None:
        """Bring all numbers over that are still on their device."""
        self.measures.boards.read()
        self._settle()

    def tell(self) -> None:
        """Call those who asked to be told of new numbers; what they raise goes to the user."""
        if self._has_news and self.on_step:
            self._has_news = False
            self.settler.describe()
            for listener in tuple(self.on_step):
                listener()

    def _settle_some(self) -> None:
        """Settle what somebody waits for; of the rest many steps in one go, which is faster."""
        if self.on_step or self.settler.has_many:
            self._settle()

    def _settle(self) -> None:
        if self.settler.settle():
            self._has_news = True
