"""`Graph.track_run`: what a graph says while it works, and what it is."""

import subprocess
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from soma import DifferentiableFilter, Filter, Graph
from soma.core import FlowEdge, FlowNode, ModuleFlow
from soma.tracking import RunRecord, graph_record
from soma.tracking._environment import environment, without_secrets
from tests.tracking.filters import Plus, Raises, script


class Dense(DifferentiableFilter):
    """A layer."""

    def build_module(self, input_shape: tuple[int, ...]) -> nn.Module:
        return nn.Linear(input_shape[-1], self.width)


class Waits(Filter):
    """Waits for the others of its barrier."""

    _cacheable = False

    def forward(self, x: object, state: object) -> object:
        self.barrier.wait(10)
        return x


def test_each_turn_of_a_node_is_a_line(tmp_path: Path) -> None:
    """With phase, times since the run began, and whether the cache had the answer."""
    g = Graph.somatize(Plus() >> Plus())
    with g.track_run("test", root=tmp_path) as run:
        g.forward(1)
        g.forward(1)
    timings = RunRecord(run.dir).timings()

    assert [(one.node, one.phase, one.cached, one.thread) for one in timings] == [
        ("plus", "forward", False, 0),
        ("plus_2", "forward", False, 0),
        ("plus", "forward", True, 0),
        ("plus_2", "forward", True, 0),
    ]
    assert all(0 <= one.start <= two.start for one, two in pairwise(timings))


def test_why_a_node_ran_is_kept(tmp_path: Path) -> None:
    """The words of `soma.why`, with how often the cache had the answer."""
    g = Graph.somatize(Plus() >> Plus(2))
    with g.track_run("test", root=tmp_path) as run:
        for x in (1, 1, 2):
            g.forward(x)
    first, second = RunRecord(run.dir).cache_activity()

    assert (first.node, first.hits, first.misses) == ("plus", 1, 2)
    assert first.why == "`plus` ran: its input changed"
    assert (second.node, second.hits, second.misses) == ("plus_2", 1, 2)


def test_without_a_cache_there_is_no_activity(tmp_path: Path) -> None:
    """Nor of chunks, which pass it by, though their nodes ran with it before."""
    with Graph.somatize(Plus(), cache=None).track_run("test", root=tmp_path) as run:
        pass
    g = Graph.somatize(Plus())
    g.forward(np.ones(2))
    with g.track_run("stream", root=tmp_path) as streamed:
        list(g.stream([np.ones(2), np.ones(2)]))

    assert RunRecord(run.dir).cache_activity() == []
    assert RunRecord(streamed.dir).cache_activity() == []
    assert len(RunRecord(streamed.dir).timings()) == 2


@pytest.mark.parametrize("executor", [None, "threads"])
def test_a_failing_node_is_told(tmp_path: Path, executor: str | None) -> None:
    """With the name of its error; the run has failed, and another one can start."""
    g = Graph.somatize(Plus() >> Raises(error=KeyError("k")), executor=executor)
    with pytest.raises(KeyError), g.track_run("test", root=tmp_path) as run:
        g.forward(1)
    *_, last = RunRecord(run.dir).timings()

    assert (last.node, last.failed, last.error) == ("raises", True, "KeyError")
    assert RunRecord(run.dir).error == "KeyError: 'k'"
    with g.track_run("again", root=tmp_path):
        pass


def test_nodes_side_by_side_have_numbers_of_their_own(tmp_path: Path) -> None:
    """So that a picture can put them below each other."""
    barrier = threading.Barrier(2)
    g = Graph.somatize((Waits(barrier=barrier) | Waits(barrier=barrier)), executor="threads")
    with g.track_run("test", root=tmp_path) as run:
        g.forward(1)
        g.forward(1)

    assert sorted(one.thread for one in RunRecord(run.dir).timings()) == [0, 0, 1, 1]


def test_two_runs_of_one_graph_both_hear(tmp_path: Path) -> None:
    """Nested or crossed; each hears from its start to its end, and then nobody listens."""
    g = Graph.somatize(Plus(), cache=None)
    first, second = g.track_run("first", root=tmp_path), g.track_run("second", root=tmp_path)
    one = first.__enter__()
    g.forward(1)
    two = second.__enter__()
    g.forward(1)
    first.__exit__(None, None, None)
    g.forward(1)
    second.__exit__(None, None, None)

    assert [len(RunRecord(run.dir).timings()) for run in (one, two)] == [2, 2]
    assert not g._runner.listeners


def test_a_fit_is_told_epoch_by_epoch(tmp_path: Path) -> None:
    """Losses as points, steps as events, turns of nodes in some steps only."""
    x, y = torch.randn(40, 3), torch.randn(40, 1)
    g = Graph.somatize(Dense(width=2) >> Dense(width=1))
    with g.track_run("test", root=tmp_path) as run:
        g.fit(x, y, epochs=3, batch_size=2, validation=(x, y), progress=False)
        g.fit(x, y, epochs=2, batch_size=40, progress=False)
    record = RunRecord(run.dir)
    kinds = [event["event"] for event in record.events()]

    assert [point["step"] for point in record.metric_series("loss")] == [1, 2, 3, 4, 5]
    assert [one["value"] for one in record.metric_series("loss")][3:] == [
        epoch.loss for epoch in g.history
    ]
    assert [point["step"] for point in record.metric_series("validation_loss")] == [1, 2, 3]
    assert (kinds.count("step"), kinds.count("epoch")) == (62, 5)
    assert kinds.count("training_started") == kinds.count("training_finished") == 2
    assert sum(one.phase == "train" for one in record.timings()) < 10


def test_the_first_step_of_each_run_is_timed(tmp_path: Path) -> None:
    """However many steps the graph has made before."""
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    g = Graph.somatize(Dense(width=1))
    for steps in (3, 2):
        with g.track_run("test", root=tmp_path) as run:
            g.fit(x, y, epochs=steps, batch_size=8, progress=False)

        assert sum(one.phase == "train" for one in RunRecord(run.dir).timings()) == 1


@pytest.mark.parametrize("ends", ["after", "by an error"])
def test_modules_built_in_a_run_are_counted(tmp_path: Path, ends: str) -> None:
    """At the end, and already when training begins."""
    g = Graph.somatize(Plus(2) >> Dense(width=2))
    with g.track_run("test", root=tmp_path) as run:
        before = RunRecord(run.dir).graph().nodes[1]
        if ends == "after":
            g.materialize(torch.zeros(4, 3))
        else:
            g.fit(torch.zeros(4, 3), torch.zeros(4, 2), epochs=1, progress=False)
    plus, dense = RunRecord(run.dir).graph().nodes

    assert (before.has_module, before.parameters) == (True, None)
    assert (dense.parameters, dense.trainable) == (8, 8)
    assert (plus.has_module, plus.parameters, plus.kind) == (False, None, "stateless")
    assert (plus.class_name, plus.config, plus.doc) == ("Plus", {"number": "2"}, "Adds a number.")


def test_what_the_compiler_found_is_data(tmp_path: Path) -> None:
    """The same diagnostics, read back."""
    g = Graph.somatize(Dense(width=2) >> Plus() >> Dense(width=2))
    with g.track_run("test", root=tmp_path) as run:
        pass

    assert RunRecord(run.dir).diagnostics() == g.compile().diagnostics != ()


def test_a_graph_that_cannot_run_is_recorded_all_the_same(tmp_path: Path) -> None:
    """A cycle is shown with what is wrong; an empty graph may be filled inside."""
    g = Graph()
    with g.track_run("test", root=tmp_path) as run:
        empty = RunRecord(run.dir).graph()
        g.connect(g.node("a", Plus()), g.node("b", Plus()))
        g.connect("b", "a")
    record = RunRecord(run.dir)

    assert empty.nodes == ()
    assert [node.id for node in record.graph().nodes] == ["a", "b"]
    assert sorted(record.graph().edges) == [("a", "b"), ("b", "a")]
    assert [one.level for one in record.diagnostics()] == ["error"]


def test_the_inside_of_modules_is_read_back(tmp_path: Path) -> None:
    """As it was recorded."""
    node = FlowNode(
        id="a",
        kind="module",
        label="Linear",
        path="a",
        parameters=6,
        trainable=6,
        shape=(2, 3),
        detail="",
        share=1.0,
    )
    edge = FlowEdge(source="a", target="a", cut="detach", share=0.5)
    flow = ModuleFlow(
        node="n",
        class_name="Net",
        parameters=6,
        trainable=6,
        calls=2,
        nodes=(node,),
        edges=(edge,),
        note=None,
    )
    with Graph.somatize(Plus()).track_run("test", root=tmp_path) as run:
        run.record_modules([flow])

    assert RunRecord(run.dir).modules() == (flow,)


def f() -> None:
    """Stand as an argument."""


def test_a_record_shows_any_argument(tmp_path: Path) -> None:
    """Shortened, on one line, also one whose `repr` fails."""

    class Wordless:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    class Named(Filter):
        def forward(self, x: object, state: object) -> object:
            return x

    g = Graph.somatize(
        Named(long="x" * 999, lines="a\nb\x1b[31m", wordless=Wordless(), of=[len, f])
    )
    (node,) = graph_record(g.topology, "g").nodes

    assert len(node.config["long"]) == 200
    assert node.config["of"] == "[<built-in function len>, <function f>]"
    assert node.config["wordless"] == "<Wordless>"
    assert node.doc == ""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["run.py", "--lr", "0.1", "x=1"], ["run.py", "--lr", "0.1", "x=1"]),
        (["--token", "abc", "data"], ["--token", "***", "data"]),
        (["--token=abc", "--API_KEY=x=y"], ["--token=***", "--API_KEY=***"]),
        (["db_password=abc", "-secret", "-abc"], ["db_password=***", "-secret", "***"]),
        (["--use-auth", "--lr", "1"], ["--use-auth", "--lr", "1"]),
        (["s3://me:pass@host/x"], ["s3://***@host/x"]),
    ],
)
def test_secrets_of_a_command_line_are_hidden(given: list[str], told: list[str]) -> None:
    """The values of what is called like one, in every way to write it."""
    assert without_secrets(given) == told


def test_a_commit_is_told_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its branch and whether files differ; outside of a repository there is none."""
    monkeypatch.chdir(tmp_path)
    outside = environment()["git"]
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q", "-b", "trunk"], ["add", "."], ["commit", "-qm", "a"]):
        (tmp_path / "file").write_text("a")
        subprocess.run([*git, *words], check=True)
    clean = environment()["git"]
    (tmp_path / "file").write_text("b")

    assert outside is None
    assert (clean["branch"], clean["dirty"], len(clean["commit"])) == ("trunk", False, 40)
    assert environment()["git"] == clean | {"dirty": True}


@pytest.mark.process
def test_starting_a_run_imports_no_library(tmp_path: Path) -> None:
    """Versions are told without."""
    code = (
        "import sys; from soma.tracking import *\n"
        "with track_run('a', root=sys.argv[1]) as run: run.log('a', 1)\n"
        "heavy = {'torch', 'numpy', 'plotly', 'pandas', 'rich', 'click'} & set(sys.modules)\n"
        "print(run.manifest.environment['libraries']['torch'], heavy)"
    )

    assert script(code, tmp_path).stdout.split() == [torch.__version__, "set()"]
