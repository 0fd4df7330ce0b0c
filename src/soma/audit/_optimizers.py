"""`FollowedOptimizers`: the optimizers whose steps an audit hears of, and how they are found."""

import gc
import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from weakref import ref

from torch.optim import Optimizer

from soma.audit._step._hooks import Hook, StepBegins, StepEnds
from soma.audit._step._optimizer_steps import parameters_of, times_on_stack
from soma.audit._step._recorder import Recorder
from soma.errors import SomaWarning
from soma.health._words import quoted

_MOST_SEARCHES = 3


class FollowedOptimizers:
    """The optimizers whose steps a recorder hears of, until a stack is closed."""

    def __init__(self, recorder: Recorder, stack: ExitStack) -> None:
        self._recorder = recorder
        self._stack = stack
        self._all: dict[int, Optimizer] = {}
        self._searches = 0
        self._latest: int | None = None  # the optimizer that stepped last, where there are several
        self._turns: set[tuple[int, int]] = set()  # which stepped right before which
        recorder.find_optimizers = self.search

    def follow(self, optimizers: Iterable[object]) -> None:
        """Put hooks on those that are new; what is no optimizer of torch is left out."""
        for one in map(_within_shells, optimizers):
            if isinstance(one, Optimizer) and id(one) not in self._all:
                self._all[id(one)] = one
                self._recorder.has_optimizers = True
                for handle in (
                    one.register_step_pre_hook(StepBegins(self._recorder)),
                    one.register_step_post_hook(StepEnds(self._recorder)),
                ):
                    self._stack.callback(handle.remove)
                if len(self._all) > 1:
                    self._watch_turns(list(self._all.values()) if len(self._all) == 2 else [one])
                if times_on_stack(one):
                    self._recorder.in_the_middle_of(one)

    def search(self) -> None:
        """Find the optimizers of the audited weights among all objects of this process.

        No weight knows its own. The hooks that torch offers on all optimizers at once would tell,
        but while one thread calls them another one may not put on or take off its own.
        """
        if self._searches <= _MOST_SEARCHES:
            self._searches += 1
            # By type: `isinstance` would ask each object, and some answer by loading things.
            found = [one for one in gc.get_objects() if issubclass(type(one), Optimizer)]
            known = self._recorder.weights.known
            self.follow(one for one in found if known(parameters_of(one)))

    def _watch_turns(self, optimizers: Iterable[Optimizer]) -> None:
        for one in optimizers:
            self._stack.callback(one.register_step_pre_hook(TurnTaken(self._recorder, self)).remove)

    def turn_taken(self, optimizer: Optimizer) -> None:
        """Warn if an optimizer that steps in turns with another holds a tensor of it.

        One that takes the place of another, as for a second stage of training, may hold the same.
        """
        before, self._latest = self._latest, id(optimizer)
        turn = (before, self._latest)
        if before is None or before == self._latest or turn in self._turns:
            return
        self._turns.add((before, self._latest))
        if turn[::-1] in self._turns:
            self._warn_if_shared(self._all[before], optimizer)

    def _warn_if_shared(self, one: Optimizer, other: Optimizer) -> None:
        recorder = self._recorder
        mine = {id(parameter) for parameter in parameters_of(one)}
        both = recorder.weights.known(p for p in parameters_of(other) if id(p) in mine)
        if not both:
            return
        inner = {index: spot for spot in recorder.spots for index in spot.weights if index in both}
        units = list({spot.id: spot.described() for spot in inner.values()}.values())
        kinds = f"{type(one).__name__} and {type(other).__name__}"
        note = (
            f"two optimizers, {kinds}, hold the same parameters of {quoted(units)}, and both step "
            "them; give each parameter to one of them"
        )
        recorder.measurements.notes.append(note)
        warnings.warn(note, SomaWarning, stacklevel=2)


class TurnTaken(Hook):
    """Before a step of one of several optimizers."""

    __slots__ = ("_optimizers",)

    def __init__(self, recorder: Recorder, optimizers: FollowedOptimizers) -> None:
        super().__init__(recorder)
        self._optimizers = ref(optimizers)

    def __call__(self, optimizer: Optimizer, args: object, kwargs: object) -> None:
        """Tell which optimizer steps."""
        optimizers = self._optimizers()
        if (recorder := self.awake()) is not None and optimizers is not None:
            recorder.guarded(None, optimizers.turn_taken, optimizer)


def _within_shells(optimizer: object) -> object:
    """Return the optimizer that steps: Accelerate's are shells that take no hooks."""
    while isinstance(optimizer, Optimizer) and not hasattr(optimizer, "_optimizer_step_pre_hooks"):
        optimizer = getattr(optimizer, "optimizer", None)
    return optimizer
