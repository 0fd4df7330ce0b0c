"""What the tests of figures have in common: runs of every kind, made as users make them."""

import math
import time
from pathlib import Path

from soma import Filter, Graph, RunView, track_run
from soma.tracking import RunRecord, Timing

HOSTILE = "<img src=x onerror=alert(1)></script>\x1b[2J$e=mc^2$&amp;"


class Load(Filter):
    """Reads."""

    def forward(self, x: float, state: object) -> float:
        return x


class Center(Filter):
    """Learns an offset."""

    def fit(self, x: float, y: object = None) -> float:
        time.sleep(0.001)
        return x

    def forward(self, x: float, state: float) -> float:
        return x - state


class Breaks(Filter):
    """Fails."""

    def forward(self, x: float, state: object) -> float:
        raise ValueError(HOSTILE)


def fitted(root: Path, name: str = "first try") -> RunView:
    """Return a run of a graph of two nodes, fitted and run again with a warm cache."""
    g = Graph.somatize(Load() >> Center(), cache=root / "cache")
    with g.track_run(name, kind="fit", tags=("demo", HOSTILE), root=root) as run:
        g.fit(3.0)
        g.forward(3.0)
        for step in range(20):
            run.log("loss", 10.0 ** (-step / 4), step=step)
            run.log("validation_loss", math.nan if step == 3 else 1.0 + step, step=step)
        run.log(HOSTILE, math.inf, step=0)
    return RunView(run.dir)


def failed(root: Path) -> RunView:
    """Return a run of which one node raised, and one did not get its turn."""
    g = Graph.somatize(Load() >> Breaks() >> Center(), cache=None)
    try:
        with g.track_run("fails", kind="fit", root=root) as run:
            g.fit(3.0)
    except ValueError:
        pass
    return RunView(run.dir)


def logged(root: Path, **series: list[float]) -> RunView:
    """Return a run without a graph, and the numbers it logged."""
    with track_run("numbers", root=root) as run:
        for name, values in series.items():
            for step, value in enumerate(values):
                run.log(name, value, step=step)
    return RunView(run.dir)


class Recorded(RunRecord):
    """A record with given turns, for runs too long to make here."""

    def __init__(self, folder: Path, turns: list[Timing]) -> None:
        super().__init__(folder)
        self.turns = turns

    def timings(self) -> list[Timing]:
        """Return what was given."""
        return self.turns
