"""Moments and the length of a run, for people."""

import time
from datetime import datetime

from soma.tracking import Manifest, RunRecord, Standing
from soma.viz._durations import duration


def moment(seconds: float) -> str:
    """Return seconds since 1970 as a local date and time of day."""
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OSError, OverflowError, ValueError):
        return "at an unknown time"


def length(record: RunRecord, standing: Standing) -> str:
    """Return how long a run took, or goes on already; nothing where nobody knows."""
    seconds = seconds_taken(record.manifest, standing, time.time())
    return "" if seconds is None else duration(seconds)


def seconds_taken(manifest: Manifest, standing: Standing, now: float) -> float | None:
    """Return the seconds from a run's beginning to its end, or to now; None where nobody knows."""
    ended = now if standing.state == "running" else standing.ended_at
    if ended is None or ended < manifest.created_at:
        return None
    return ended - manifest.created_at
