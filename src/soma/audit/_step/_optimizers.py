"""Optimizers: which ones there are, and how they step, inside each other or under a scaler."""

import gc
import sys
import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from types import FrameType
from typing import TYPE_CHECKING

import torch
from torch.optim import Optimizer

from soma.audit._measure._boards import Boards
from soma.audit._parameters._weights import Numbers, Weights
from soma.audit._step._hooks import Hook, StepBegins, StepEnds
from soma.errors import SomaWarning
from soma.health._words import quoted

if TYPE_CHECKING:
    from soma.audit._step._recorder import Recorder

_MOST_SEARCHES = 3


class Followed:
    """The optimizers whose steps an audit hears of."""

    def __init__(self, recorder: "Recorder", stack: ExitStack) -> None:
        self._recorder = recorder
        self._stack = stack
        self._all: dict[int, Optimizer] = {}
        self._searches = 0
        self._latest: int | None = None  # the optimizer that stepped last, where there are several
        self._turns: set[tuple[int, int]] = set()  # which stepped right before which

    def __bool__(self) -> bool:
        return bool(self._all)

    def follow(self, optimizers: Iterable[object]) -> None:
        """Put hooks on those that are new; what is no optimizer of torch is left out."""
        for one in map(_within_shells, optimizers):
            if isinstance(one, Optimizer) and id(one) not in self._all:
                self._all[id(one)] = one
                for handle in (
                    one.register_step_pre_hook(StepBegins(self._recorder)),
                    one.register_step_post_hook(StepEnds(self._recorder)),
                ):
                    self._stack.callback(handle.remove)
                if len(self._all) > 1:
                    self._watch_turns(list(self._all.values()) if len(self._all) == 2 else [one])
                if _times_on_stack(one):
                    self._recorder.in_the_middle_of(one)

    def search(self, weights: Weights) -> None:
        """Find the optimizers of some weights among all objects, since no weight knows its own.

        Hooks that torch offers on all optimizers at once are no way: while one thread calls
        them, another one may not put on or take off its own.
        """
        if self._searches <= _MOST_SEARCHES:
            self._searches += 1
            # By type: `isinstance` would ask each object, and some answer by loading things.
            found = [one for one in gc.get_objects() if issubclass(type(one), Optimizer)]
            self.follow(one for one in found if weights.known(parameters_of(one)))

    def _watch_turns(self, optimizers: Iterable[Optimizer]) -> None:
        for one in optimizers:
            self._stack.callback(one.register_step_pre_hook(TurnTaken(self._recorder)).remove)

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

    __slots__ = ()

    def __call__(self, optimizer: Optimizer, args: object, kwargs: object) -> None:
        """Say whose turn it is."""
        recorder = self.awake()
        if recorder is not None and recorder.followed is not None:
            recorder.guarded(None, recorder.followed.turn_taken, optimizer)


def _within_shells(optimizer: object) -> object:
    """Return the optimizer that steps: Accelerate's are shells that take no hooks."""
    while isinstance(optimizer, Optimizer) and not hasattr(optimizer, "_optimizer_step_pre_hooks"):
        optimizer = getattr(optimizer, "optimizer", None)
    return optimizer


def parameters_of(optimizer: Optimizer) -> list[torch.Tensor]:
    """Return all parameters of an optimizer."""
    return [one for group in getattr(optimizer, "param_groups", ()) for one in group["params"]]


class OpenSteps:
    """The optimizers that are in the middle of a step.

    A subclass that calls its parent's `step` makes torch call the hooks twice, one inside the
    other; an optimizer that raises makes it leave out the hook at the end.
    """

    def __init__(self) -> None:
        self._depth: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._depth)

    def enter(self, optimizer: Optimizer) -> bool:
        """Note a beginning; False: it is inside a step of the same optimizer."""
        key = id(optimizer)
        if key in self._depth and _times_on_stack(optimizer) > 1:
            self._depth[key] += 1
            return False
        self._depth[key] = 1
        return True

    def was_entered(self, optimizer: Optimizer) -> None:
        """Note that a step is under way whose beginning was not seen."""
        self._depth[id(optimizer)] = 1

    def leave(self, optimizer: Optimizer) -> bool:
        """Note an end; False: the step that it is inside of goes on."""
        key = id(optimizer)
        self._depth[key] = self._depth.get(key, 1) - 1
        if self._depth[key] > 0:
            return False
        del self._depth[key]
        return True


def scale_of(optimizer: Optimizer, numbers: Numbers, boards: Boards) -> None:
    """Note by what a gradient scaler has multiplied the loss, if one is at work."""
    fused = getattr(optimizer, "grad_scale", None)
    if isinstance(fused, torch.Tensor):
        numbers.scaled_at_step = True
    found = getattr(optimizer, "found_inf", None)
    if isinstance(found, torch.Tensor):
        numbers.found_inf = boards.put(found.reshape(1))
    scaler = _scaler_on_stack()
    if scaler is not None and scaler.is_enabled():
        scale = scaler._scale
        if scale is not None:
            numbers.scale = boards.put(scale.reshape(1))


def _scaler_on_stack() -> "torch.amp.GradScaler | None":
    """Return the scaler whose `step` has called the optimizer: nothing else tells which it is."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(16):
        if frame is None:
            return None
        if frame.f_code.co_filename.endswith("grad_scaler.py"):
            found = frame.f_locals.get("self")
            if isinstance(found, torch.amp.GradScaler):
                return found
        frame = frame.f_back
    return None


def _times_on_stack(optimizer: Optimizer) -> int:
    """Count the steps of an optimizer that are running, by torch's own wrapper around each."""
    frame: FrameType | None = sys._getframe(1)
    count = 0
    while frame is not None:
        if frame.f_code is _WRAPPER:
            args = frame.f_locals.get("args") or (None,)
            count += args[0] is optimizer
        frame = frame.f_back
    return count


def _never(_: object) -> None:
    """Stand in for a step, to learn what torch's wrapper around steps looks like."""


_WRAPPER = Optimizer.profile_hook_step(_never).__code__
