"""A run while it goes on: what `log` takes, what a directory holds, how it ends."""

import copy
import re
import stat
import threading
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import inf, isnan, nan
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch

import soma
from soma.errors import InvalidInput, RunNotWritten
from soma.tracking import (
    GraphRecord,
    NodeRecord,
    Run,
    RunRecord,
    run_records,
    track_run,
)
from soma.tracking._lines import NodeLine
from tests.tracking.filters import Plus, strict


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of its own for each test."""
    with track_run("test", root=tmp_path) as run:
        yield run


def values(run: Run, name: str = "a") -> list[float]:
    """Return what can be read of a metric."""
    return [point["value"] for point in RunRecord(run.dir).metric_series(name)]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *((1, 1.0), (0.5, 0.5), (True, 1.0), (-0.0, -0.0), (Decimal("0.1"), 0.1), (2**80, 2.0**80)),
        *((np.float32(0.5), 0.5), (np.int64(3), 3.0), (np.array(2.5), 2.5)),
        *((torch.tensor(0.5), 0.5), (torch.tensor(3), 3.0), (torch.tensor(1.0).bfloat16(), 1.0)),
        (torch.tensor(0.25, requires_grad=True), 0.25),
        *((inf, inf), (-inf, -inf), (torch.tensor(inf), inf)),
    ],
)
def test_numbers_of_all_kinds_are_kept(run: Run, value: object, number: float) -> None:
    """Python's, NumPy's and torch's, also a loss that hangs on its history."""
    run.log("a", value)

    assert values(run) == [number]


@pytest.mark.parametrize(
    "value",
    [
        "1",
        b"one",
        None,
        [1.0],
        {},
        1j,
        object(),
        np.array([1.0, 2.0]),
        torch.ones(2),
        Fraction(10) ** 400,
    ],
)
def test_what_is_no_number_is_refused(run: Run, value: object) -> None:
    """The message names the metric, and nothing is kept."""
    with pytest.raises(InvalidInput, match=r"`a` was logged as a .*one number is wanted"):
        run.log("a", value)

    assert values(run) == []


def test_nan_and_infinity_are_kept_in_strict_json(run: Run) -> None:
    """As strings in the file, as floats when they are read."""
    for number in (1.0, nan, inf, -inf):
        run.log("a", number)

    assert values(run)[2:] == [inf, -inf]
    assert isnan(values(run)[1])
    assert [one["value"] for one in strict(run.dir) if "value" in one] == [
        *(1.0, "NaN", "Infinity", "-Infinity")
    ]


def test_each_name_counts_its_own_steps(run: Run) -> None:
    """From 0; a step that is given does not move the count."""
    for name, step in (("a", None), ("b", None), ("a", None), ("a", 70), ("a", np.int64(7))):
        run.log(name, 0, step=step)
    run.log("a", 0)
    record = RunRecord(run.dir)

    assert [point["step"] for point in record.metric_series("a")] == [0, 1, 70, 7, 2]
    assert [point["step"] for point in record.metric_series("b")] == [0]


class Hostile:
    """Fails when it is looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    @property
    def shape(self) -> object:
        raise RuntimeError("no")


@pytest.mark.parametrize("step", [1.5, "1", 2**63, 1 << 20_000, Hostile(), object()], ids=range(6))
def test_a_step_is_a_whole_number(run: Run, step: object) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidInput, match="`a` was logged at step"):
        run.log("a", 1.0, step=step)


@pytest.mark.parametrize("name", ["", None, 3, "x" * 1001])
def test_a_name_is_a_string(run: Run, name: object) -> None:
    """Not empty, and not endless."""
    with pytest.raises(InvalidInput, match="a string of 1 to 1000"):
        run.log(name, 1.0)


HOSTILE = ["../../etc", "a/b", "a\nb", "\x1b[31mred", "<script>", "é✓", "NaN", "\ud800", "a" * 900]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_display_only(tmp_path: Path, name: str) -> None:
    """No name becomes a path, breaks a line or gets lost."""
    with track_run(name, root=tmp_path, tags=[name], kind=name) as run:
        run.log(name, 1.0)
    record = RunRecord(run.dir)
    kept = name.replace("\ud800", "?")

    assert (record.name, record.manifest.tags, record.manifest.kind) == (kept, (kept,), kept)
    assert record.metric_names() == [kept]
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,80}", run.id)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        *((1, 1), (None, None), (True, True), ("a", "a"), (0.5, 0.5), (inf, inf)),
        *(((1, (2,)), [1, [2]]), ({"a": {1: 2}}, {"a": {"1": 2}}), (2**70, str(2**70))),
        *((np.float32(0.5), 0.5), (torch.tensor(3), 3), (Path("a"), "PosixPath('a')")),
        (Hostile(), "<Hostile>"),
        (np.zeros(2), "array([0., 0.])"),
    ],
)
def test_params_are_data(tmp_path: Path, value: object, kept: object) -> None:
    """What JSON knows stays; the rest is its `repr`, and no object can spoil the run."""
    with track_run("test", root=tmp_path, params={"p": value}) as run:
        pass

    assert RunRecord(run.dir).manifest.params == {"p": kept}
    assert strict(run.dir)


def test_params_without_end_are_cut(tmp_path: Path) -> None:
    """A list that holds itself, and a giant one, end somewhere."""
    loop: list[object] = []
    loop.append(loop)
    with track_run("test", root=tmp_path, params={"a": loop, "b": "x" * 9, "c": object}) as run:
        pass

    assert (run.dir / "manifest.json").stat().st_size < 5000


def test_a_directory_is_the_owners(run: Run) -> None:
    """Folders are 0700 and files 0600."""
    run.record_diagnostics([])
    run.record_modules([])
    for path in [run.dir.parents[1], *run.dir.parents[1].rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_a_relative_root_survives_a_change_of_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on where it began."""
    monkeypatch.chdir(tmp_path)
    with soma.track_run("test") as run:
        monkeypatch.chdir("/")
        run.log("a", 1)

    assert run.dir.parent == tmp_path / ".soma" / "runs"
    assert values(run) == [1.0]


def test_many_runs_of_one_second_are_many(tmp_path: Path) -> None:
    """Each has a directory, and the newest comes first."""
    runs = [track_run("test", root=tmp_path) for _ in range(20)]
    for run in runs:
        run.finish()

    assert [record.id for record in run_records(tmp_path)] == [run.id for run in runs[::-1]]


def test_threads_may_log(run: Run) -> None:
    """All points arrive, and each has a step of its own."""

    def work() -> None:
        for _ in range(300):
            run.log("a", 0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    steps = [point["step"] for point in RunRecord(run.dir).metric_series("a")]

    assert sorted(steps) == [*range(1200)]


@pytest.mark.parametrize(
    ("error", "state", "told"),
    [
        (ValueError("bad\nbatch"), "failed", "ValueError: bad\nbatch"),
        (KeyError(), "failed", "KeyError"),
        (KeyboardInterrupt(), "interrupted", "KeyboardInterrupt"),
        (SystemExit(3), "interrupted", "SystemExit: 3"),
        (None, "completed", None),
    ],
)
def test_how_a_run_ends_is_told(
    tmp_path: Path, error: BaseException | None, state: str, told: str | None
) -> None:
    """The error goes on its way unchanged, points are kept, and another run can start."""
    seen = None
    try:
        with track_run("test", root=tmp_path) as run:
            run.log("a", 1.0)
            if error is not None:
                raise error
    except BaseException as raised:
        seen = raised
    record = RunRecord(run.dir)

    assert seen is error
    assert (record.state, record.error, values(run)) == (state, told, [1.0])
    with track_run("again", root=tmp_path):
        pass


def test_an_error_without_words_is_told_too(tmp_path: Path) -> None:
    """One whose own message fails."""

    class Wordless(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    with pytest.raises(Wordless), track_run("test", root=tmp_path) as run:
        raise Wordless

    assert RunRecord(run.dir).error == "Wordless"


def test_after_the_end_nothing_is_taken(run: Run) -> None:
    """Finishing twice is once; a point after it is refused."""
    run.finish()
    run.finish(ValueError("late"))

    assert RunRecord(run.dir).state == "completed"
    with pytest.raises(RunNotWritten, match="after the run"):
        run.log("a", 1.0)


def test_the_heart_beats_no_more_after_the_end(run: Run) -> None:
    """No thread is left behind."""
    during = [thread.name for thread in threading.enumerate()]
    run.finish()

    assert "soma-heartbeat" in during
    assert "soma-heartbeat" not in [thread.name for thread in threading.enumerate()]


def fails() -> None:
    """Stand for a last word that cannot be written."""
    raise OSError("no room")


def test_last_words_are_written_before_the_end(run: Run) -> None:
    """One that fails keeps no other back, and is raised at last."""
    run.at_end(fails)
    run.at_end(lambda: run.record_modules([]))
    with pytest.raises(OSError, match="no room"):
        run.finish()

    assert (run.dir / "modules.json").exists()
    assert RunRecord(run.dir).error == "OSError: no room"


def test_last_words_that_fail_hide_no_error(run: Run) -> None:
    """They become a note on the one that there is."""
    error = ValueError("mine")
    run.at_end(fails)
    run.finish(error)

    assert error.__notes__ == [f"the run `{run.id}` is not whole: no room"]
    assert RunRecord(run.dir).error == "ValueError: mine"


def test_a_root_that_cannot_be_is_told(tmp_path: Path) -> None:
    """The error names it and the reason."""
    (tmp_path / "file").touch()
    with pytest.raises(RunNotWritten, match=r"file.*cannot be written"):
        track_run("test", root=tmp_path / "file")


def test_a_run_has_a_name(tmp_path: Path) -> None:
    """A string, and nothing is made for anything else."""
    with pytest.raises(InvalidInput, match="`name` of a run is 3"):
        track_run(3, root=tmp_path)

    assert [*tmp_path.iterdir()] == []


def test_a_copy_of_a_tracked_graph_is_silent(tmp_path: Path) -> None:
    """As one that keeps an average of weights; only the original is in the run."""
    g = soma.Graph.somatize(Plus())
    with g.track_run("test", root=tmp_path) as run:
        copy.deepcopy(g).forward(1)

    assert RunRecord(run.dir).timings() == []


class Broken(dict[str, object]):
    """Cannot be looked through."""

    def items(self) -> NoReturn:
        raise RuntimeError("no")


def holding_itself() -> list[object]:
    """Return a list whose parts, and theirs, are the list."""
    many: list[object] = []
    many.extend([many] * 50)
    return many


@pytest.mark.parametrize(
    "params",
    [
        Broken(a=1),
        {"a": holding_itself()},
        {"a": "x" * 20_000_000},
        {"a": "\0" * 20_000_000},
        {str(n): "x" * 30_000 for n in range(1000)},
        {str(n) * 3000: n for n in range(1000)},
    ],
    ids=["broken", "itself", "text", "escaped", "texts", "names"],
)
def test_no_params_make_a_run_unreadable(tmp_path: Path, params: dict[str, object]) -> None:
    """They are cut to what a reader opens."""
    with track_run("x" * 20_000_000, root=tmp_path, params=params, tags=["x" * 20_000_000]) as run:
        pass

    assert RunRecord(run.dir).state == "completed"


@pytest.mark.parametrize("wrong", [{"params": [1]}, {"params": Hostile()}, {"tags": 5}])
def test_what_holds_no_params_or_tags_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """Before a directory is made for it."""
    with pytest.raises(InvalidInput, match="wanted"):
        track_run("test", root=tmp_path, **wrong)

    assert [*tmp_path.iterdir()] == []


def test_half_a_character_is_kept_as_a_sign(tmp_path: Path) -> None:
    """In every file, whatever the text comes from."""
    node = NodeRecord(id="a", class_name="\ud800", kind="stateless", has_module=False,
                      parameters=None, trainable=None, config={"\ud800": ""}, doc="")  # fmt: skip
    with track_run("test", root=tmp_path) as run:
        run.record_graph(GraphRecord(name="\ud800", nodes=(node,), edges=()))
        run.write(NodeLine(node="\ud800", phase="fit", start=0.0, seconds=0.0))
    record = RunRecord(run.dir)

    assert record.graph() == GraphRecord(
        name="?", nodes=(replace(node, class_name="?", config={"?": ""}),), edges=()
    )
    assert [timing.node for timing in record.timings()] == ["?"]
