"""`Outpost`: the part of an audit in another process, where some of the modules are.

It measures as the audit at home would, in steps that home counts, and hands its numbers over to
`_elsewhere.py`, which is home's side. How the two processes talk is left to the caller.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack

import torch
from torch import Tensor, nn

from soma.audit._processes._joint_recorder import JointRecorder
from soma.audit._replaced import mark_replaced
from soma.audit._scope import ChannelConfig, Inside, InsideByNode
from soma.audit._step._budget import Budget
from soma.audit._watch import Watch
from soma.health import Measurements, Unit


class Outpost:
    """Measures modules of a graph that is trained from another process.

    Args:
        inside: which submodules are watched, as the audit was told.
        channels: how channels are watched; None: they are not.
    """

    def __init__(self, inside: InsideByNode, channels: ChannelConfig | None) -> None:
        self._budget = _Told()
        self._recorder = JointRecorder(channels, self._budget)
        self._recorder.is_joint = True
        self._stack = ExitStack()
        self._watch = Watch(self._recorder, inside, self._stack)
        self._spots: dict[str, int] = {}

    def add(self, node: str, module: nn.Module, own: Inside | None) -> tuple[Unit, ...]:
        """Watch a node's module; return what is watched of it, itself first.

        Args:
            node: its id.
            module: the module.
            own: the scope that its filter asks for.
        """
        self._spots[node] = self._watch.add(node, module, own, is_tapped=True)
        return tuple(one.described() for one in self._recorder.spots if one.node == node)

    def turn_to(self, step: int, *, whole: bool, every: int) -> None:
        """Go on at a step, as it is counted at home.

        Args:
            step: its number.
            whole: every measure is taken.
            every: one in so many steps is measured whole.
        """
        self._budget.whole, self._budget.every = whole, every
        self._recorder.guarded(None, self._recorder.turn_to, step)

    def deaf(self) -> AbstractContextManager[None]:
        """Have the hooks do nothing inside a `with`."""
        return self._recorder.deaf()

    def begins(self, node: str, run: Callable[[object], object], x: object) -> None:
        """Take what a node's forward starts from."""
        if node in self._spots:
            self._recorder.guarded(
                None, self._recorder.forward_begins, node, run, (x,), dict[str, object]()
            )

    def answered(self, node: str, output: object) -> None:
        """Take a node's output."""
        at = self._spots.get(node)
        if at is not None:
            self._recorder.guarded(at, self._recorder.forward_seen, at, output)

    def gradients_came(self, gradients: Mapping[Tensor, Tensor]) -> None:
        """Take the gradients of a step, before any optimizer uses them."""
        for weight in self._recorder.weights.all:
            weight.parameter.grad = gradients.get(weight.parameter)
        self._recorder.guarded(None, self._recorder.gradients_came, [*gradients])

    def follow(self, optimizer: torch.optim.Optimizer) -> None:
        """Put hooks on an optimizer's steps."""
        self._watch.optimizers.follow([optimizer])

    def stepped(self) -> tuple[float, float, float]:
        """End the step that is under way.

        Return the norm of its gradients as backward left them, the same as the optimizers found
        them, and the seconds that measuring took.
        """
        recorder = self._recorder
        recorder.guarded(None, recorder.stepped_elsewhere)
        recorder.guarded(None, recorder.read)
        for weight in recorder.weights.all:
            weight.parameter.grad = None
        seconds, self._budget.seconds = self._budget.seconds, 0.0
        if not recorder.measurements.steps:
            return 0.0, 0.0, seconds
        last = recorder.measurements.steps[-1]
        return last.grad_norm, last.grad_norm_at_step, seconds

    def measured(self) -> Measurements:
        """Hand over what was measured since the last time; the origin of a NaN comes each time."""
        recorder, found = self._recorder, self._recorder.measurements
        if not recorder.is_closed:
            recorder.read()
            mark_replaced(recorder)
            recorder.settler.describe()
        handed = Measurements(
            units=dict(found.units),
            steps=found.steps,
            series=found.series,
            channels=found.channels,
            similarity=found.similarity,
            correlation=found.correlation,
            correlation_channels=found.correlation_channels,
            origins=list(found.origins),
            notes=list(found.notes),
        )
        found.steps, found.series, found.channels = [], {}, {}
        found.similarity, found.correlation, found.correlation_channels = {}, {}, {}
        return handed

    def close(self) -> None:
        """Take all hooks off."""
        mark_replaced(self._recorder)
        self._stack.close()
        self._recorder.close()


class _Told(Budget):
    """A budget of which home decides, and which only counts the seconds."""

    def __init__(self) -> None:
        super().__init__(None)
        self.whole = True
        self.seconds = 0.0

    def is_whole(self, step: int) -> bool:
        """Whether home measures a step whole."""
        return self.whole

    def note(self, step: int, spent: float, seconds: float) -> None:
        """Keep what a step cost, for home to know."""
        self.seconds += spent
