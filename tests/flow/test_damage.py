"""Runs whose directory is damaged, or comes from a stranger."""

from pathlib import Path

import pytest

from soma import Flow
from soma.errors import JournalMismatch, RunNotWritten
from soma.flow import Tool


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
    (run,) = (folder / "runs").iterdir()
    return run


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


@pytest.mark.parametrize("name", ["journal.jsonl", "events.jsonl"])
def test_a_run_writes_through_no_link(tmp_path: Path, name: str) -> None:
    """A link in the directory of a run that goes on leads no line elsewhere."""
    flow = failing([])
    run = failed_run(flow, tmp_path)
    (tmp_path / "mine").write_bytes((run / name).read_bytes())
    (run / name).unlink()
    (run / name).symlink_to(tmp_path / "mine")
    before = (tmp_path / "mine").read_bytes()

    with pytest.raises(RunNotWritten):
        flow.resume(run)

    assert (tmp_path / "mine").read_bytes() == before
