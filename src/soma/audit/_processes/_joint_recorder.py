"""`JointRecorder`: a recorder of steps that several processes take together.

`_elsewhere.py` uses one at home and `_outpost.py` one in each other process.
"""

from collections.abc import Sequence

from torch import Tensor

from soma.audit._step._recorder import Recorder
from soma.audit._step._torch_state import running_backward


class JointRecorder(Recorder):
    """A recorder that is told what torch's hooks, or the optimizers here, do not tell."""

    def pass_begins(self) -> None:
        """Begin a pass, before any module is called."""
        if self.grad_mode and running_backward() == -1:
            self._pass(recomputed=False)

    def turn_to(self, step: int) -> None:
        """Go on at a step that somebody else counts."""
        if self.step is not None and self.step.number != step:
            self._end(skipped=True)  # nobody has said that it ended
        self._count = step

    def gradients_came(self, parameters: Sequence[Tensor]) -> None:
        """Take the gradients of a backward of which hooks of parameters have not heard.

        torch's distributed autograd calls none of them, and puts no gradient into `.grad`.
        """
        step = self.step
        if step is None:
            return
        fresh = self.weights.known(parameters)
        step.arrived.update(fresh)
        step.reached |= step.backwards
        if step.passes:
            step.passes[-1].has_backward = True
        for index in fresh:
            self.weights.arrived(index)
        self.weights.after_backward(fresh, step.norms)

    def stepped_elsewhere(self) -> None:
        """End the step under way, if it has not ended with an optimizer's."""
        if self.step is not None:
            self._end(skipped=False)

    def step_dropped(self) -> None:
        """End a step whose gradients were cleared, and used by nobody."""
        if self.step is not None and self.step.passes and self.step.passes[-1].has_backward:
            self._end(skipped=True)

    def look_for_origin(self) -> None:
        """Look where a bad number comes from that showed in another process."""
        if self.step is not None:
            self.replays.look(self.step, is_bad=True)
