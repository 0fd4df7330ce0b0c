"""Runs in MLflow, through its client: the user's active run stays the active one."""

import os
import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import copysign, isinf
from sys import float_info
from typing import Any

from soma._extras import require
from soma.integrations.sinks._names import allowed, findings_text, flat, plain_id, title
from soma.tracking import Manifest, Point, Sink, Standing

_ID = "soma.run_id"  # the tag that holds our id of the run
_REFUSED = re.compile(r"[^\w\-. :/]")
_LONGEST_NAME = 250
_LONGEST_PARAM = 6000
_LONGEST_TAG = 5000
_MOST_PARAMS = 100  # in one call
_STATUS = {
    "completed": "FINISHED",
    "failed": "FAILED",
    "crashed": "FAILED",
    "interrupted": "KILLED",
}
_Mark = tuple[int, int, str]  # step, time, value


class MLflowSink(Sink):
    """Writes each run to MLflow: params, metrics, tags, and what an audit flagged as a tag.

    A sink made inside `with mlflow.start_run():` adds to that run and leaves it open. Otherwise it
    creates a run, or continues the one with the same `soma.run_id`: exporting twice adds nothing.
    In names, characters that MLflow refuses become `_`; a changed or long name ends in a hash, 250
    characters at most. MLflow's databases keep infinity as the largest float.

    Args:
        uri: where MLflow keeps runs, such as `"sqlite:///mlflow.db"`; its own default otherwise.
        experiment: created if it does not exist; by default `$MLFLOW_EXPERIMENT_NAME` or `Default`.

    Raises:
        MissingExtra: MLflow is not installed.
    """

    def __init__(self, uri: str | None = None, *, experiment: str | None = None) -> None:
        mlflow = require("mlflow", extra="mlflow")
        self._new_client = mlflow.MlflowClient
        self._entities = require("mlflow.entities", extra="mlflow")
        self._uri = uri or mlflow.get_tracking_uri()
        self._experiment = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "Default"
        # Asked here, since each thread has an active run of its own.
        active = mlflow.active_run()
        self._active: str | None = None if active is None else active.info.run_id

    def start(self, run: Manifest) -> None:
        """Find or create the run, and add the params that it does not have yet."""
        # Not in the constructor: this opens a database, or asks a server.
        self._client: Any = self._new_client(tracking_uri=self._uri)
        self._began = run.created_at
        self._existing: dict[str, Counter[_Mark]] = {}
        found = self._find(run)
        self._is_new = found is None
        self._id = self._create(run) if found is None else found
        self.where = f"run {self._id} at {self._uri}"
        known = self._client.get_run(self._id).data.params if found else {}
        params = {_name(name): value for name, value in flat(run.params)}
        missing = [
            self._entities.Param(name, _cut(str(value), _LONGEST_PARAM))
            for name, value in params.items()
            if name not in known
        ]
        for first in range(0, len(missing), _MOST_PARAMS):
            self._client.log_batch(self._id, params=missing[first : first + _MOST_PARAMS])
        for tag, text in {
            _ID: plain_id(run),
            "soma.kind": run.kind,
            "soma.tags": ", ".join(run.tags),
        }.items():
            self._client.set_tag(self._id, tag, _cut(text, _LONGEST_TAG))

    def points(self, points: Sequence[Point]) -> None:
        """Add the points that the run does not have yet."""
        metrics = [metric for point in points if (metric := self._metric(point)) is not None]
        self._client.log_batch(self._id, metrics=metrics)  # it takes a thousand

    def findings(self, flags: Sequence[Mapping[str, Any]]) -> None:
        """Set the tag `soma.findings` to what was flagged."""
        self._client.set_tag(self._id, "soma.findings", findings_text(flags, _LONGEST_TAG))

    def close(self, standing: Standing) -> None:
        """End the run, unless the user started it or it still goes on."""
        if standing.error:
            self._client.set_tag(self._id, "soma.error", _cut(standing.error, _LONGEST_TAG))
        status = _STATUS.get(standing.state)
        if status is not None and self._active is None:
            ended = None if standing.ended_at is None else int(standing.ended_at * 1000)
            self._client.set_terminated(self._id, status, ended)

    def _find(self, run: Manifest) -> str | None:
        if self._active is not None:
            return self._active
        self._experiment_id = self._experiment_of(self._experiment)
        asked = f"tags.`{_ID}` = '{plain_id(run)}'"
        found = self._client.search_runs([self._experiment_id], asked, max_results=1)
        return found[0].info.run_id if found else None

    def _create(self, run: Manifest) -> str:
        made = self._client.create_run(
            self._experiment_id,
            start_time=int(run.created_at * 1000),
            tags={_ID: plain_id(run)},
            run_name=title(run.name, _LONGEST_NAME) or run.id,
        )
        return str(made.info.run_id)

    def _experiment_of(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            with suppress(Exception):  # another process may have made it in between
                return str(self._client.create_experiment(name))
            found = self._client.get_experiment_by_name(name)
        return str(found.experiment_id)

    def _metric(self, point: Point) -> Any:
        name = _name(point.name)
        time = int((self._began + point.time) * 1000)
        existing = self._existing_points(name)
        mark = _mark(point.step, time, point.value)
        if existing[mark]:
            existing[mark] -= 1
            return None
        return self._entities.Metric(name, point.value, time, point.step)

    def _existing_points(self, name: str) -> Counter[_Mark]:
        """Return the points that the run already has under a name; MLflow is asked once."""
        if name not in self._existing:
            found = [] if self._is_new else self._client.get_metric_history(self._id, name)
            self._existing[name] = Counter(
                _mark(one.step, one.timestamp, one.value) for one in found
            )
        return self._existing[name]


def _mark(step: int, time: int, value: float) -> _Mark:
    if isinf(value):
        value = copysign(float_info.max, value)
    return step, time, repr(value)  # NaN equals nothing, its text does


def _name(name: str) -> str:
    clean = allowed(name, _REFUSED, _LONGEST_NAME)
    if posixpath.normpath(clean) != clean or clean == "." or clean.startswith(("..", "/")):
        return allowed(name, re.compile(r"^\.|[^\w\-. :]"), _LONGEST_NAME)
    return clean


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
