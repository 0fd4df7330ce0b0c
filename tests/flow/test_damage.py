"""Runs whose directory is damaged, or comes from a stranger."""

from pathlib import Path
from typing import Any

import pytest

from soma import Filter, Flow, Graph
from soma.errors import JournalMismatch, RunNotWritten, Suspended
from soma.flow import IO, Computation, Condition, Tool
from tests.flow.talking import only_run


def failing(seen: list[str]) -> Flow:
    """Return a flow that notes what it is given, and fails."""

    def fail(text: str) -> str:
        """Fail."""
        seen.append(text)
        raise ValueError(text)

    return Flow.somatize(Tool(fail))


def failed_run(flow: Flow, folder: Path) -> Path:
    """Return the directory of a run that has failed."""
    with pytest.raises(ValueError, match="x"):
        flow.run("x", root=folder)
    return only_run(folder)


@pytest.mark.parametrize("data", [None, b"", b'{"effect":"val', b"[]\nnull\n\x00\xff\n{}\n"])
def test_a_run_without_its_input_does_not_go_on(tmp_path: Path, data: bytes | None) -> None:
    """A journal that was lost, cut or damaged does not make the flow run on nothing."""
    seen: list[str] = []
    flow = failing(seen)
    run = failed_run(flow, tmp_path)
    (run / "journal.jsonl").unlink()
    if data is not None:
        (run / "journal.jsonl").write_bytes(data)

    with pytest.raises(JournalMismatch, match="does not tell what the flow was given"):
        flow.resume(run)

    assert seen == ["x"]


@pytest.mark.parametrize(
    ("line", "part", "other"),
    [("answered", '"effect":"answered"', '"effect":"nothing"'), ("route", '"on"', '"off"')],
)
def test_a_completed_run_with_a_changed_journal_is_told(
    tmp_path: Path, line: str, part: str, other: str
) -> None:
    """Nobody is asked, and no way is gone that there is not."""
    flow = Flow.somatize(Condition(lambda text: text, {"on": IO.ask()}))
    run = flow.run("on", root=tmp_path, answers={"condition.on.ask": "yes"}).run_dir
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    changed = [one.replace(part, other, 1) if f'"effect":"{line}"' in one else one for one in lines]
    (run / "journal.jsonl").write_text("".join(changed))

    with pytest.raises(JournalMismatch, match="journal"):
        flow.resume(run)


class Mean(Filter):
    """Learns a mean."""

    def fit(self, x: Any, y: object = None) -> object:
        """Return the mean."""
        return sum(x) / len(x)

    def forward(self, x: object, state: object) -> object:
        """Return the mean."""
        return state


@pytest.mark.parametrize("damage", [100, 0, None])
def test_a_damaged_bundle_is_told(tmp_path: Path, damage: int | None) -> None:
    """What a graph has learned is taken from its whole file or not at all."""
    flow = Flow.somatize(Computation(Graph.somatize(Mean(), cache=None), mode="fit"))
    run = flow.run({"x": [1, 2]}, root=tmp_path).run_dir
    (bundle,) = run.glob("values/*.soma")
    if damage is None:
        journal = run / "journal.jsonl"
        journal.write_text(journal.read_text().replace(f"values/{bundle.name}", "../../out.soma"))
    else:
        bundle.write_bytes(bundle.read_bytes()[:damage])

    with pytest.raises(RunNotWritten, match="has learned cannot be read from"):
        flow.resume(run)


def set_of(text: str) -> Any:
    """Give what no line of JSON holds."""
    return {text}


def test_a_run_keeps_no_value_elsewhere(tmp_path: Path) -> None:
    """A link in place of the folder of values is not followed."""
    flow = Flow.somatize(IO.ask() >> Tool(set_of))
    with pytest.raises(Suspended):
        flow.run("x", root=tmp_path)
    (run,) = (tmp_path / "runs").iterdir()
    (tmp_path / "mine").mkdir()
    (run / "values").symlink_to(tmp_path / "mine")

    with pytest.raises(RunNotWritten, match="leads out of"):
        flow.resume(run, answer="yes")

    assert [*(tmp_path / "mine").iterdir()] == []


@pytest.mark.parametrize("name", ["journal.jsonl", "events.jsonl", "lock"])
def test_a_run_writes_through_no_link(tmp_path: Path, name: str) -> None:
    """A link in the directory of a run that goes on leads no line elsewhere."""
    flow = failing([])
    run = failed_run(flow, tmp_path)
    (tmp_path / "mine").write_bytes((run / name).read_bytes() if (run / name).exists() else b"")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(tmp_path / "mine")
    before = (tmp_path / "mine").read_bytes()

    with pytest.raises(RunNotWritten):
        flow.resume(run)

    assert (tmp_path / "mine").read_bytes() == before
