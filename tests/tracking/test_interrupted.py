"""Errors that only stop a run."""

from pathlib import Path

import pytest

import soma


def stopped(root: Path, error: Exception) -> None:
    """Have a run end with an error, for which a `LookupError` is no failure."""
    with soma.track_run("stopped", root=root) as run:
        run.interrupted_by(LookupError)
        raise error


@pytest.mark.parametrize(("error", "state"), [(KeyError, "interrupted"), (ValueError, "failed")])
def test_some_errors_stop_a_run(error: type[Exception], state: str, tmp_path: Path) -> None:
    """Those that were named beforehand leave it interrupted, with what they say; others failed."""
    with pytest.raises(error):
        stopped(tmp_path, error("enough"))

    (view,) = soma.runs(tmp_path)
    assert (view.state, "enough" in str(view.error)) == (state, True)
