"""`Graph.track_run`: a run that listens to a graph and keeps what the graph is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

from soma._extras import require
from soma.core import Diagnostic, Event, StepFinished, TrainingStarted, has_module
from soma.engine import Runner
from soma.errors import CompileError
from soma.tracking import Run, RunListener, graph_record


@contextmanager
def tracked(
    runner: Runner,
    graph_name: str,
    started: Callable[[], Run],
) -> Iterator[Run]:
    """Keep what a graph does inside a `with` in the run that begins with it."""
    with started() as run:
        record = _Records(run, runner, graph_name)
        record()
        run.at_end(record)  # nodes may be added, and modules built
        reasons = None if runner.memory is None else runner.memory.reasons
        with (
            runner.listeners.listening(RunListener(run, reasons)),
            runner.listeners.listening(record.when_built),
            _insides(run, runner),
        ):
            yield run


@contextmanager
def _insides(run: Run, runner: Runner) -> Iterator[None]:
    """Keep what is executed inside modules, as far as training shows it."""
    if not any(has_module(node.filter) for node in runner.topology.nodes.values()):
        yield
        return
    tracer = require("soma.audit", extra="torch").FlowTracer(runner.topology)

    def record() -> None:
        run.record_modules(tracer.flows())

    def when_stepped(event: Event) -> None:
        # As often as the tracer looks: a run that crashes shows what it had inside.
        if isinstance(event, StepFinished) and (event.step + 1).bit_count() == 1:
            run.attempt(record)

    run.at_end(record)
    with runner.listeners.listening(when_stepped, watcher=tracer):
        yield


class _Records:
    """Writes down the graph of a run as it is now."""

    def __init__(self, run: Run, runner: Runner, name: str) -> None:
        self.run = run
        self.runner = runner
        self.name = name
        self.is_built = False

    def __call__(self) -> None:
        self.run.record_graph(graph_record(self.runner.topology, self.name))
        try:
            found = self.runner.plan("inference").diagnostics
        except CompileError as error:
            found = cast(tuple[Diagnostic, ...], error.diagnostics)
        self.run.record_diagnostics(found)

    def when_built(self, event: Event) -> None:
        """Write again once training begins: a run that crashes shows its modules too."""
        if not self.is_built and isinstance(event, TrainingStarted | StepFinished):
            self.is_built = True
            self.run.attempt(self)
