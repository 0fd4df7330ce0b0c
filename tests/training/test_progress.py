"""What a fit shows on stderr, and the table of its history."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr

import pytest
import torch

from soma import Graph
from soma.core import EpochFinished, StepFinished, TrainingFinished, TrainingStarted
from soma.training._progress import Bar, Lines, Progress
from soma.training._progress_choice import progress_for
from tests.training.filters import Dense, data

X, Y = data()
STARTED = TrainingStarted(epochs=3, steps_per_epoch=5, losses=(("head", "cross-entropy"),))


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def ended(epoch: int, loss: float = 0.5, validation: float | None = 0.25) -> EpochFinished:
    return EpochFinished(epoch=epoch, loss=loss, validation_loss=validation, seconds=1.0)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("SOMA_PROGRESS", raising=False)
    return Terminal()


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    monkeypatch.delenv("SOMA_PROGRESS", raising=False)
    return io.StringIO()


def test_a_terminal_gets_a_bar(terminal: Terminal) -> None:
    """By default, and when asked for."""
    with redirect_stderr(terminal):
        shown = [type(progress_for(wanted)) for wanted in (None, True, False)]

    assert shown == [Bar, Bar, Progress]


def test_a_file_gets_lines_when_asked_for(file: io.StringIO) -> None:
    """Logs stay free of bars, and empty by default."""
    with redirect_stderr(file):
        shown = [type(progress_for(wanted)) for wanted in (None, True, False)]

    assert shown == [Progress, Lines, Progress]


def test_the_environment_can_silence_it(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`SOMA_PROGRESS=0` wins over everything."""
    monkeypatch.setenv("SOMA_PROGRESS", "0")
    with redirect_stderr(terminal):
        assert type(progress_for(True)) is Progress


def test_lines_begin_with_the_loss_and_end_with_the_last_epoch(file: io.StringIO) -> None:
    """Epochs that end within ten seconds of a line get none, but the last one does."""
    lines = Lines(file)
    lines.started(STARTED)
    for epoch in (1, 2, 3):
        lines.epoch_ended(ended(epoch))

    assert file.getvalue().splitlines() == [
        "minimises head: cross-entropy",
        "epoch 1/3  loss 0.5  validation 0.25  1.0 s",
        "epoch 3/3  loss 0.5  validation 0.25  1.0 s",
    ]


def test_the_bar_shows_epoch_steps_and_losses(terminal: Terminal) -> None:
    """All that one wants to see at a glance is on one line, below the loss."""
    bar = Bar(terminal)
    bar.started(STARTED)
    for _ in range(5):
        bar.stepped({"head": torch.tensor(0.75)})
    bar.epoch_ended(ended(1))
    bar.finished()
    shown = terminal.getvalue()

    assert "minimises head: cross-entropy" in shown
    for part in ("epoch 1/3", "5/5", "loss 0.75", "loss 0.5", "validation 0.25"):
        assert part in shown


def test_the_bar_shows_what_is_not_a_number(terminal: Terminal) -> None:
    """A loss of NaN and an unknown number of steps are drawn like any other."""
    bar = Bar(terminal)
    bar.started(TrainingStarted(epochs=1, steps_per_epoch=None, losses=()))
    bar.stepped({"head": torch.tensor(float("nan"))})
    bar.finished()

    assert "loss nan" in terminal.getvalue()


def test_a_bar_is_drawn_now_and_then_not_at_each_step(terminal: Terminal) -> None:
    """Between drawings a step is a count and a look at the clock."""
    bar = Bar(terminal)
    bar.started(STARTED)
    losses = {"head": torch.tensor(1.0)}
    for _ in range(20_000):
        bar.stepped(losses)
    bar.finished()

    assert terminal.getvalue().count("loss") < 2_000


def test_a_fit_draws_and_gives_the_terminal_back(terminal: Terminal) -> None:
    """The bar of an interrupted fit shows the cursor again."""

    def stop(out, y):
        raise KeyboardInterrupt

    with redirect_stderr(terminal):
        Graph.somatize(Dense(3)).fit(X, Y, epochs=2)
    assert "epoch 2/2" in terminal.getvalue()
    with redirect_stderr(terminal), pytest.raises(KeyboardInterrupt):
        Graph.somatize(Dense(3)).fit(X, Y, epochs=2, loss=stop)

    hidden, shown = terminal.getvalue().rfind("\x1b[?25l"), terminal.getvalue().rfind("\x1b[?25h")
    assert hidden < shown


def test_events_tell_a_listener_the_same() -> None:
    """Start, steps, epochs and end are said in order, with what is minimised."""
    g = Graph.somatize(Dense(3))
    heard: list[object] = []
    with g._runner.listeners.listening(heard.append):
        g.fit(X, Y, epochs=2, batch_size=32, validation=(X, Y))
    told = [
        event
        for event in heard
        if isinstance(event, TrainingStarted | StepFinished | EpochFinished | TrainingFinished)
    ]

    assert told[0] == TrainingStarted(
        epochs=2,
        steps_per_epoch=2,
        losses=(("dense", "mean squared error (float targets)"),),
    )
    assert told[1:3] == [StepFinished(step=0), StepFinished(step=1)]
    assert told[3].validation_loss == g.history[0].validation_loss
    assert told[-1] == TrainingFinished()


def test_a_fit_without_a_bar_does_not_load_rich() -> None:
    """Training in a script pays for no drawing."""
    script = (
        "import sys, torch\n"
        "from soma import Graph\n"
        "from tests.training.filters import Dense, data\n"
        "Graph.somatize(Dense(3)).fit(*data(), epochs=1)\n"
        "assert 'rich' not in sys.modules\n"
    )
    path = os.pathsep.join(["src", ".", os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr


def test_a_history_reads_as_a_table() -> None:
    """One line an epoch, with the middle left out when it is long."""
    g = Graph.somatize(Dense(3)).fit(X, Y, epochs=40, validation=(X, Y))
    lines = str(g.history).splitlines()

    assert lines[0] == "dense: mean squared error (float targets)"
    assert lines[1].split() == ["epoch", "loss", "validation", "rate", "seconds"]
    assert lines[8].strip() == "…"
    assert lines[-1].split()[0] == "40"
    assert len(lines) == 15
    assert len({len(line) for line in lines[1:8]}) == 1


def test_a_history_is_a_sequence() -> None:
    """It has a length, items, slices and a reading for no epochs."""
    g = Graph.somatize(Dense(3)).fit(X, Y, epochs=3)

    assert [record.epoch for record in g.history] == [1, 2, 3]
    assert [record.epoch for record in g.history[1:]] == [2, 3]
    assert str(g.fit(X, epochs=0).history) == "no epochs"
