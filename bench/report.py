"""What a report of a large run takes: 3,000,000 points of 800 metrics, a module of 400 layers.

Writes the lines of the run directory itself, makes the report, prints size and seconds.
"""

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from soma import RunView, track_run
from soma.core import FlowEdge, FlowNode, ModuleFlow
from soma.tracking import GraphRecord, NodeRecord

LAYERS = 400
MOST_BYTES, MOST_SECONDS = 5_000_000, 20.0


def lines(points: int) -> Iterator[bytes]:
    """Yield the points of two metrics a layer, as a run writes them."""
    rng = random.Random(0)
    names = [f"layer{i}/{what}" for i in range(LAYERS) for what in ("gradient", "activation")]
    for at in range(points):
        step, metric = divmod(at, len(names))
        value = 2.0 ** (-step / 1000) + rng.random() / 10
        text = f'{{"name":"{names[metric]}","step":{step},"value":{value},"time":{at / 1e4}}}\n'
        yield text.encode()


def turns(count: int) -> Iterator[bytes]:
    """Yield an optimizer step and a node's turn each."""
    for step in range(count):
        start = step / 100
        yield f'{{"event":"step","step":{step},"time":{start}}}\n'.encode()
        yield (
            f'{{"event":"node","node":"deep","phase":"train","start":{start},"seconds":0.005}}\n'
        ).encode()


def flow() -> ModuleFlow:
    """Return a module of layers with a branch over every fourth."""
    nodes = [
        FlowNode(id=f"blocks.{i}", kind="module", label="Linear", path=f"blocks.{i}",
                 parameters=1024, trainable=1024, shape=(32, 32), detail="", share=1.0)
        for i in range(LAYERS)
    ]  # fmt: skip
    pairs = [(i, i + 1) for i in range(LAYERS - 1)]
    pairs += [(i, i + 4) for i in range(0, LAYERS - 4, 4)]
    edges = [
        FlowEdge(source=f"blocks.{a}", target=f"blocks.{b}", cut=None, share=1.0) for a, b in pairs
    ]
    return ModuleFlow(
        node="deep", class_name="Deep", parameters=1024 * LAYERS, trainable=1024 * LAYERS,
        calls=1, nodes=tuple(nodes), edges=tuple(edges), note=None,
    )  # fmt: skip


def large_run(root: Path, points: int) -> Path:
    """Return the directory of a large run."""
    node = NodeRecord(
        id="deep", class_name="Deep", kind="trainable", has_module=True,
        parameters=1024 * LAYERS, trainable=1024 * LAYERS, config={}, doc="",
    )  # fmt: skip
    with track_run("large", kind="train", root=root) as run:
        run.record_graph(GraphRecord(name="graph", nodes=(node,), edges=()))
        run.record_modules([flow()])
    with (run.dir / "metrics.jsonl").open("ab") as file:
        file.writelines(lines(points))
    with (run.dir / "events.jsonl").open("ab") as file:
        file.writelines(turns(points // (2 * LAYERS)))
    return run.dir


def main() -> None:
    """Make a report and say what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=3_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        folder = large_run(Path(root), options.points)
        print(f"{options.points:,} points, {LAYERS} layers")
        for label, chosen in (("", {}), ("--static", {"static": True})):
            began = time.perf_counter()
            page = RunView(folder).to_html(**chosen)
            took = time.perf_counter() - began
            size = len(page.encode())
            fine = size < MOST_BYTES and took < MOST_SECONDS
            print(
                f"  {label:10} {size / 1e6:5.2f} MB (at most {MOST_BYTES / 1e6:.0f}),"
                f" {took:5.1f} s (at most {MOST_SECONDS:.0f})   {'ok' if fine else 'TOO MUCH'}"
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(f"  memory     {peak:,.0f} MB at most")
        start = page.index("<footer")
        print(page[start : page.index("</p>", start)])


if __name__ == "__main__":
    main()
