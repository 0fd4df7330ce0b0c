"""`Graph.fit` for graphs with modules: learn, build, train, freeze.

`_batches.py` cuts the data, `_losses.py` says what is minimised, `_fit_loop.py` runs the
epochs.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import isfinite
from time import perf_counter
from warnings import warn

import torch

from soma.compiler import Execute
from soma.core import (
    EpochFinished,
    Node,
    NodeId,
    Topology,
    TrainingFinished,
    TrainingStarted,
    needs_fit,
    per_root,
)
from soma.engine import Extras, Runner, lower, seeded
from soma.errors import InvalidInput, SomaWarning, UntrainedWarning, listing
from soma.training._batches import Batches
from soma.training._convert import kind_of
from soma.training._filter import DifferentiableFilter
from soma.training._fit_data import Data
from soma.training._fit_loop import Loop, judged, trial
from soma.training._fit_steppers import Schedulers, choose_optimizer
from soma.training._fit_unreached import users_level
from soma.training._history import EpochRecord, History
from soma.training._losses import Asked, asked_losses, chosen_losses, computes_loss
from soma.training._materialize import building_call
from soma.training._prefix import prefix_nodes
from soma.training._progress_choice import progress_for
from soma.training._targets import Addressees
from soma.training._trainer import Trainer


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """The keywords of `Graph.fit`, with its defaults."""

    epochs: int = 10
    batch_size: int = 64
    loss: object = None
    optimizer: object = None
    validation: object = None
    scheduler: object = None
    clip: float | None = None
    progress: bool | None = None
    seed: int | None = None
    executor: Executor | str | None = None

    def __post_init__(self) -> None:
        for name, least in (("epochs", 0), ("batch_size", 1), ("seed", 0)):
            value = getattr(self, name)
            if name == "seed" and value is None:
                continue
            if not hasattr(value, "__index__") or isinstance(value, bool) or value < least:
                raise InvalidInput(f"`{name}` is {value!r}; a whole number from {least} is wanted.")
            if name == "seed" and value >= 2**64:
                raise InvalidInput(f"`seed` is {value!r}; a whole number below 2**64 is wanted.")
            object.__setattr__(self, name, int(value))  # NumPy's integers among them
        if self.clip is not None and not (hasattr(self.clip, "__float__") and self.clip > 0):
            raise InvalidInput(f"`clip` is {self.clip!r}; a norm above 0, or None, is wanted.")


def fit(
    trainer: Trainer, x: object, y: object, options: FitOptions, history: History | None = None
) -> History:
    """Fit the plain filters, build the modules and train them; return what happened.

    With a loader every batch runs through the whole graph; where a plain filter learns, one
    more pass is gathered before, and held in memory, for it to learn from.

    Args:
        trainer: of the graph.
        x: data in memory, an `Inputs` of such, or a loader of batches.
        y: targets in memory, by leaf or for all of them; None with a loader.
        options: all the rest.
        history: is filled and returned; whoever holds it has the finished epochs also after an
            error or Ctrl-C.
    """
    history = History() if history is None else history
    runner = trainer.runner
    leaves = runner.topology.wiring().leaves
    asked = asked_losses(options.loss, leaves)
    data = Data.checked(x, y, leaves)
    held_out = Data.for_validation(options.validation, leaves)
    learning = _learning_steps(runner)
    builds = any(_is_module(runner, step) for step in learning)
    reasons: dict[NodeId, str] = {}  # why plain nodes ran: here, not when they are read again

    def prepare() -> None:
        if learning:
            _learn(runner, learning, data, runner.seed if options.seed is None else options.seed)
            reasons.update(runner.reasons({step.node for step in learning}))
        data.run_prefix(trainer)
        reasons.update(runner.reasons(prefix_nodes(runner.topology) - reasons.keys()))
        if held_out is not None:
            held_out.run_prefix(trainer)

    with runner.executors.using(options.executor):
        if not builds:
            prepare()
        # Building draws weights, so from here on nodes run in order. An executor's threads could
        # not draw anyway: whoever seeds holds the generators of the whole process.
        with (
            runner.executors.in_order(),
            nullcontext() if options.seed is None else seeded(options.seed),
        ):
            if builds:
                prepare()
            trainer.materialize(*data.sample(options.batch_size))
            if runner.memory is not None:
                runner.memory.reasons.update(reasons)
            trainer.eval()
            if options.epochs:
                _train(trainer, data, held_out, asked, options, history)
    return history


def _learning_steps(runner: Runner) -> list[Execute]:
    """Return the steps of the plain filters that learn, and of all that they read."""
    wiring = runner.topology.wiring()
    needed = {
        node.id
        for node in runner.topology
        if needs_fit(node.filter) and not isinstance(node.filter, DifferentiableFilter)
    }
    for node in reversed(wiring.order):
        if node in needed:
            needed.update(wiring.predecessors[node])
    return [step for step in runner.plan("differentiable").steps() if step.node in needed]


def _is_module(runner: Runner, step: Execute) -> bool:
    return isinstance(runner.topology.nodes[step.node].filter, DifferentiableFilter)


def _learn(runner: Runner, steps: list[Execute], data: Data, seed: int | None) -> None:
    """Fit the plain filters on all the data, building the modules that they read."""
    x, y = data.whole()
    calls = runner.fit_calls(y, seed, bind=partial(building_call, runner, kind_of(x)))
    learned: Extras = {}
    inputs = per_root(x, runner.topology.wiring().roots)
    runner.execute(lower(steps, calls, kept=()), inputs, learned, "fit")
    runner.learned(learned)


def _train(
    trainer: Trainer,
    data: Data,
    held_out: Data | None,
    asked: Asked,
    options: FitOptions,
    history: History,
) -> None:
    topology = trainer.runner.topology
    addressees = Addressees.of(trainer)
    batches = data.batches(addressees, options.batch_size)
    judging = held_out.batches(addressees, options.batch_size) if held_out else None
    if not batches.targets and not any(computes_loss(node.filter) for node in _leaves(topology)):
        warn(
            f"no targets were given, so {listing(node for node, _ in trainer.filters)} stay "
            "untrained. Train with `g.fit(x, y)`, or define `compute_loss` on a leaf that needs "
            "no targets; `epochs=0` prepares for a loop of your own.",
            UntrainedWarning,
            stacklevel=users_level(),
        )
        trainer.freeze()
        return

    first = batches.first()
    losses = chosen_losses(topology, asked, batches.targets, first, trial(trainer, first)[0])
    history.losses = losses.names
    choose_optimizer(trainer, options.optimizer)
    schedulers = Schedulers(options.scheduler, trainer.optimizers)
    progress = progress_for(options.progress)
    loop = Loop(trainer, losses, options.clip, progress)
    say = trainer.runner.listeners.say
    started = TrainingStarted(
        epochs=options.epochs, steps_per_epoch=batches.steps, losses=tuple(losses.names.items())
    )
    say(started)
    try:
        progress.started(started)
        trainer.train()
        for record in _epochs(loop, batches, judging, schedulers, options):
            history.append(record)
            ended = EpochFinished(
                epoch=record.epoch,
                loss=record.loss,
                validation_loss=record.validation_loss,
                seconds=record.seconds,
            )
            say(ended)
            progress.epoch_ended(ended)
    finally:
        trainer.eval()
        progress.finished()
        say(TrainingFinished())
    trainer.freeze()


def _epochs(
    loop: Loop,
    batches: Batches,
    judging: Batches | None,
    schedulers: Schedulers,
    options: FitOptions,
) -> Iterator[EpochRecord]:
    """Train epoch by epoch, and give the record of each as it ends."""
    trainer = loop.trainer
    generator = torch.Generator().manual_seed(options.seed) if options.seed is not None else None
    told = False
    for epoch in range(1, options.epochs + 1):
        began = perf_counter()
        rate = float(next(iter(trainer.optimizers)).param_groups[0]["lr"])
        trained = loop.epoch(batches, generator).by_leaf()
        validated = judged(trainer, loop.losses, judging).by_leaf() if judging else None
        loss = sum(trained.values())
        validation_loss = sum(validated.values()) if validated is not None else None
        if not isfinite(loss) and not told:
            told = True
            named = listing(leaf for leaf, one in trained.items() if not isfinite(one))
            warn(
                f"the loss of {named} is {loss} since epoch {epoch}: the weights are lost, or will "
                "be. Look for NaN in the data, lower the learning rate, or clip with `clip=1.0`.",
                SomaWarning,
                stacklevel=users_level(),
            )
        schedulers.step(loss if validation_loss is None else validation_loss)
        yield EpochRecord(
            epoch=epoch,
            loss=loss,
            validation_loss=validation_loss,
            losses=trained,
            validation_losses=validated,
            learning_rate=rate,
            seconds=perf_counter() - began,
        )


def _leaves(topology: Topology) -> list[Node]:
    return [topology.nodes[leaf] for leaf in topology.wiring().leaves]
