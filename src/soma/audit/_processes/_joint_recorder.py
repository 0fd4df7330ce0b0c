"""`SpreadRecorder`: a recorder of steps that several processes take together.

`_elsewhere.py` uses one at home and `_outpost.py` one in each other process.
"""

from collections.abc import Sequence

from torch import Tensor

from soma.audit._step._hooks import running_backward
from soma.audit._step._recorder import Recorder


class SpreadRecorder(Recorder):
    """What a recorder is told where torch's hooks, or the optimizers here, do not say it."""

    def pass_begins(self) -> None:
        """Be in a forward, before any of its modules is called."""
        if self.grad_mode and running_backward() == -1:
            self._pass(repeated=False)

    def turn_to(self, step: int) -> None:
        """Go on at a step that somebody else counts."""
        if self._now is not None and self._now.number != step:
            self._close(skipped=True)  # nobody has said that it ended
        self._steps = step

    def gradients_came(self, parameters: Sequence[Tensor]) -> None:
        """Take the gradients of a backward of which hooks of parameters have not heard.

        torch's distributed autograd calls none of them, and puts no gradient into `.grad`.
        """
        taken = self._now
        if taken is None:
            return
        fresh = self.weights.known(parameters)
        taken.arrived.update(fresh)
        taken.real |= taken.tasks
        if taken.passes:
            taken.passes[-1].has_backward = True
        for index in fresh:
            self.weights.arrived(index)
        self.weights.after_backward(fresh, self._numbers)

    def stepped_elsewhere(self) -> None:
        """End the step under way, if it has not ended with an optimizer's."""
        if self._now is not None:
            self._close(skipped=False)

    def step_dropped(self) -> None:
        """End a step whose gradients were cleared, and used by nobody."""
        if self._now is not None and self._now.passes and self._now.passes[-1].has_backward:
            self._close(skipped=True)

    def look_for_origin(self) -> None:
        """Look where a bad number comes from that showed in another process."""
        if self._now is not None:
            self.repeats.look(self._now, self._numbers, is_bad=True)
