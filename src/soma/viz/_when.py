"""Moments and the length of a run, for people."""

import time
from datetime import datetime

from soma.tracking import RunRecord, Standing
from soma.viz._durations import duration


def moment(seconds: float) -> str:
    """Return seconds since 1970 as a local date and time of day."""
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OSError, OverflowError, ValueError):
        return "at an unknown time"


def length(record: RunRecord, standing: Standing) -> str:
    """Return how long a run took, or goes on already; nothing where nobody knows."""
    began, ended = record.manifest.created_at, standing.ended_at
    if ended is None and standing.state == "running":
        ended = time.time()
    return "" if ended is None or ended < began else duration(ended - began)
