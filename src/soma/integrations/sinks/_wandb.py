"""Runs in Weights & Biases, on disk only by default: `wandb sync` sends them later."""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

from soma._extras import require
from soma.files import make_folder
from soma.integrations.sinks._names import allowed, findings_text, flat, plain_id, title
from soma.tracking import Manifest, Point, Sink, Standing

_REPORTING = "WANDB_ERROR_REPORTING"  # W&B reports on itself, over the network, offline too
_STEP = "soma_step"  # W&B's own step only grows; ours begins again with each name
_PREFIX = "soma-"
_REFUSED = re.compile(r"[^\w\-. :/]")
_LONGEST_NAME = 250
_LONGEST_TITLE = 128
_LONGEST_TAG = 64
_LONGEST_TEXT = 10_000


class WandbSink(Sink):
    """Writes each run as an offline run of W&B: config, history over `soma_step`, summary.

    A sink made while `wandb.run` is active adds to that run and leaves it open. Otherwise each run
    becomes one below `<folder>/wandb`, with the same id, and replaces an earlier one of that id. In
    names, characters that W&B cannot take become `_`; a changed name ends in a hash.

    Args:
        mode: `"offline"` uses no network, and so turns off W&B's error reports unless
            `$WANDB_ERROR_REPORTING` is set; `"online"` sends the run at once.

    Raises:
        MissingExtra: W&B is not installed.
    """

    def __init__(
        self,
        folder: str | PathLike[str] = ".",
        *,
        project: str = "soma",
        mode: Literal["offline", "online"] = "offline",
    ) -> None:
        self._wandb = require("wandb", extra="wandb")
        self._folder = Path(fspath(folder)).absolute()
        self._project = project
        self._mode = mode
        self._active: Any = self._wandb.run

    def start(self, run: Manifest) -> None:
        """Begin a run of W&B, or continue the active one."""
        self._began = run.created_at
        self._defined: set[str] = set()
        # W&B adds a number to the folder's name where two begin in one second.
        files = (self._folder / "wandb").glob(f"offline-run-*/run-{plain_id(run)}.wandb")
        self._earlier = [file.parent for file in files]
        self._run = self._begin(run) if self._active is None else self._active
        known = self._run.config
        config = {name: value for name, value in flat(run.params) if name not in known}
        config |= {"soma_kind": run.kind, "soma_run": run.id}
        # The user's run may have taken an earlier run of ours, with other values.
        self._run.config.update(config, allow_val_change=True)
        self.where = str(Path(self._run.dir).parent)

    def points(self, points: Sequence[Point]) -> None:
        """Add a row for each sequence of points with the same step."""
        row: dict[str, float] = {}
        for point in points:
            name = _name(point.name)
            if name in row or row.get(_STEP, point.step) != point.step:
                self._run.log(row)
                row = {}
            if name not in self._defined:
                self._defined.add(name)
                self._run.define_metric(name.replace(".", "\\."), step_metric=_STEP)
            row[name] = point.value
            row[_STEP] = point.step
            row["_timestamp"] = self._began + point.time
        self._run.log(row)

    def findings(self, flags: Sequence[Mapping[str, Any]]) -> None:
        """Keep what was flagged in the summary, as `soma_findings`."""
        self._run.summary["soma_findings"] = findings_text(flags, _LONGEST_TEXT)

    def close(self, standing: Standing) -> None:
        """Finish the run, unless the user started it."""
        self._run.summary["soma_state"] = standing.state
        if standing.error:
            self._run.summary["soma_error"] = standing.error[:_LONGEST_TEXT]
        if self._active is None:
            self._run.finish(exit_code=0 if standing.state in ("completed", "running") else 1)
            for folder in self._earlier:
                shutil.rmtree(folder, ignore_errors=True)

    def _begin(self, run: Manifest) -> Any:
        make_folder(str(self._folder))
        if self._mode == "offline":
            os.environ.setdefault(_REPORTING, "false")
        tags = dict.fromkeys(title(tag, _LONGEST_TAG) for tag in run.tags)
        return self._wandb.init(
            project=self._project,
            id=plain_id(run),
            name=title(run.name, _LONGEST_TITLE) or run.id,
            tags=[*filter(None, tags)],
            dir=str(self._folder),
            mode=self._mode,
            reinit="create_new",  # `wandb.run` stays what it is
            settings=self._wandb.Settings(
                console="off",  # what the program prints is its own
                silent=True,
                disable_code=True,
                disable_git=True,
            ),
        )


def _name(name: str) -> str:
    # What begins with `_` is W&B's own and hidden. The prefix itself is set before its like, so
    # that two names stay two.
    if name == _STEP or name.startswith(("_", _PREFIX)):
        name = _PREFIX + name
    return allowed(name, _REFUSED, _LONGEST_NAME)
