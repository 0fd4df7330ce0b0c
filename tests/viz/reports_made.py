"""What the tests of reports have in common: runs with something in every section, and a reader."""

import math
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

from soma import Filter, Graph, RunView, track_run
from soma.core import (
    Diagnostic,
    FlowEdge,
    FlowNode,
    ModuleFlow,
    NodeFailed,
    NodeFinished,
    NodeStarted,
)
from soma.tracking import GraphRecord, NodeRecord, RunListener

Attributes = list[tuple[str, str | None]]


class Load(Filter):
    """Reads a number."""

    def forward(self, x: float, state: object) -> float:
        return x


class Center(Filter):
    """Takes an offset away that it has learnt."""

    def __init__(self, weight: float = 0.5) -> None:
        self.weight = weight

    def fit(self, x: float, y: object = None) -> float:
        return x

    def forward(self, x: float, state: float) -> float:
        return x - state * self.weight


class Page(HTMLParser):
    """Reads a page as a browser does: elements, what they hold, and the text a reader sees."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.held: dict[str, str] = {}  # by id, of what holds text alone
        self.text = ""
        self._id = ""
        self._unseen = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        """Keep an element."""
        self.elements.append((tag, dict(attrs)))
        self._unseen += tag in ("script", "style")
        self._id = dict(attrs).get("id") or ""

    def handle_endtag(self, tag: str) -> None:
        """Close what no reader sees."""
        self._unseen -= tag in ("script", "style")
        self._id = ""

    def handle_data(self, data: str) -> None:
        """Keep text."""
        self.held[self._id] = self.held.get(self._id, "") + data
        if not self._unseen:
            self.text += data


def flow(name: str) -> ModuleFlow:
    """Return a module of two layers, of which one gets no gradient, with `name` all over it."""
    layers = [
        FlowNode(id=f"{number}.{name}", kind="module", label=name, path=f"{number}.{name}",
                 parameters=8, trainable=8, shape=(1, 2), detail=name, share=1.0)
        for number in range(2)
    ]  # fmt: skip
    edge = FlowEdge(source=layers[0].id, target=layers[1].id, cut="detach", share=1.0)
    return ModuleFlow(node=name, class_name=name, parameters=16, trainable=16, calls=1,
                      nodes=tuple(layers), edges=(edge,), note=name)  # fmt: skip


def tracked(root: Path, name: str = "first try") -> RunView:
    """Return a run that fits and runs a graph of two nodes, with something in every section."""
    g = Graph.somatize(Load() >> Center(weight=0.25), cache=root / "cache")
    with g.track_run(name, kind="fit", tags=["demo"], params={"lr": 0.1}, root=root) as run:
        g.fit(3.0)
        g.forward(3.0)
        for step in range(20):
            run.log("loss", 10.0 ** (-step / 4), step=step)
            run.log("validation_loss", math.nan if step == 3 else 1.0 + step, step=step)
    run.record_modules([flow("center")])
    run.record_diagnostics([finding("center")])
    return RunView(run.dir)


def finding(name: str) -> Diagnostic:
    """Return a finding of the compiler that quotes `name`."""
    return Diagnostic(
        level="warning", code="gradient", node=name, message=f"Gradient stops at {name}",
        drawn=(name, "head"), marked=(0, 1), remarks=(name,), help=name,
    )  # fmt: skip


class Unshowable:
    """Cannot be shown."""

    def __repr__(self) -> str:
        """Fail."""
        raise RuntimeError("no repr")


def named(root: Path, name: str) -> RunView:
    """Return a failed run that is called `name` wherever anything in a run is called something."""
    said = name.encode("utf-8", "replace").decode()  # what a file of the record can hold
    node = NodeRecord(id=said, class_name=said, kind="trainable", has_module=True, parameters=16,
                      trainable=16, config={said: said}, doc=said)  # fmt: skip
    params = {name: name, "nested": {name: [name]}, "unshowable": Unshowable()}
    with (
        suppress(ValueError),
        track_run(name, kind=name, tags=[name], params=params, root=root) as run,
    ):
        run.record_graph(GraphRecord(name=said, nodes=(node,), edges=()))
        run.record_modules([flow(said)])
        run.record_diagnostics([finding(said)])
        listener = RunListener(run, {said: said})
        listener(NodeStarted(node=said, phase="fit"))
        listener(NodeFinished(node=said, phase="fit", seconds=0.01))
        listener(NodeStarted(node=said, phase="forward"))
        listener(NodeFailed(node=said, phase="forward", error=said))
        run.log(name, 1.0)
        raise ValueError(name)
    return RunView(run.dir)
