"""Reads back what sinks wrote, with the real tools; and a run with all that is hard to keep."""

import json
import struct
from collections.abc import Iterator
from math import inf, nan
from pathlib import Path
from typing import Any

import soma
from soma.tracking import Point, RunRecord

HARD = [  # name, value, step
    ("loss", 0.1, 0),
    ("loss", 1 / 3, 1),
    ("loss", nan, 2),
    ("loss", inf, 3),
    ("loss", -inf, 4),
    ("loss", 0.1, 0),
    ("far", -1e30, 2**62),
    ("far", 5e-324, -3),
    ("a.b/c d:é", 1.0, 0),
    ("_hidden", 2.0, 0),
    ("soma_step", 3.0, 7),
    ("../../up", 4.0, 0),
    ('line\nbreak,"quoted" *\x1b[2J', 5.0, 0),
    ('line\rbreak,"quoted" *\x1b[2J', 6.0, 0),
    ("x" * 999 + "a", 7.0, 0),
    ("x" * 999 + "b", 8.0, 0),
    ("=cmd()", 9.0, 0),
]
PARAMS = {
    "lr": 0.1,
    "name": "line\nbreak",
    "deep": {"on": True, "list": [1, nan]},
    "none": None,
    "k" * 300 + "\x1b": "v" * 9000,
}


def hard_run(root: Path, **options: Any) -> Path:
    """Keep a run with hard names, numbers, params and tags, and return its directory."""
    tags = ["demo", "t" * 99, "demo\n"]
    with soma.track_run("hard\x1b[2J", root=root, params=PARAMS, tags=tags, **options) as run:
        for name, value, step in HARD:
            run.log(name, value, step)
    return run.dir


def points(folder: Path) -> list[Point]:
    """Return what a run's directory holds, in the order of its names."""
    record = RunRecord(folder)
    return [
        Point(name, **point)
        for name in record.metric_names()
        for point in record.metric_series(name)
    ]


def by_name(found: list[Point]) -> dict[str, list[tuple[int, str]]]:
    """Return steps and exact values by name; NaN as its text, since it equals nothing."""
    series: dict[str, list[tuple[int, str]]] = {}
    for point in found:
        series.setdefault(point.name, []).append((point.step, repr(point.value)))
    return series


def wandb_records(folder: Path) -> Iterator[Any]:
    """Give the records of an offline run of W&B: LevelDB's log format after seven bytes."""
    import wandb
    from wandb.proto import wandb_internal_pb2 as proto

    wandb.teardown()  # its own process has written all when it has ended

    (path,) = folder.glob("wandb/offline-run-*/*.wandb")
    data = path.read_bytes()
    assert data[:4] == b":W&B"
    at, whole = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:  # no header fits before the end of a block
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + 7])
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # full, last
            record = proto.Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


def wandb_history(folder: Path) -> list[dict[str, Any]]:
    """Return the rows that an offline run of W&B holds."""
    return [
        {
            item.key or "/".join(item.nested_key): json.loads(item.value_json)
            for item in one.history.item
        }
        for one in wandb_records(folder)
        if one.WhichOneof("record_type") == "history"
    ]
