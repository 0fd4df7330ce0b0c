"""Dates, times, durations and zones. A zone counts: noon there is not noon here."""

import re
from datetime import date, datetime, time, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from soma.cache._parts import Parts, PutTogether, Refused, Stored, TakeApart

ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")


def find(cls: type) -> TakeApart | None:
    """Return how a moment, a duration or a zone is taken apart."""
    return _TAKERS.get(cls)


def _date(value: date) -> Parts:
    return Parts("date", (value.year, value.month, value.day))


def _time(value: time) -> Parts:
    return Parts("time", (*_clock(value), value.tzinfo))


def _datetime(value: datetime) -> Parts:
    day = (value.year, value.month, value.day)
    return Parts("datetime", (*day, *_clock(value), value.tzinfo))


def _clock(value: time | datetime) -> tuple[int, ...]:
    return (value.hour, value.minute, value.second, value.microsecond, value.fold)


def _build_moment(kind: Any, items: list[Any]) -> object:
    *numbers, fold, zone = items
    return kind(*numbers, fold=fold, tzinfo=zone)


def _timedelta(value: timedelta) -> Parts:
    return Parts("timedelta", (value.days, value.seconds, value.microseconds))


def _timezone(value: timezone) -> Parts:
    return Parts("timezone", (value.utcoffset(None), value.tzname(None)))


def _build_timezone(stored: Stored) -> object:
    offset, name = stored.items
    unnamed = timezone(offset)
    return unnamed if unnamed.tzname(None) == name else timezone(offset, name)


def _zoneinfo(value: ZoneInfo) -> Parts:
    if value.key is None:
        raise Refused("a ZoneInfo without a key cannot be found again")
    return Parts("ZoneInfo", (value.key,))


def _build_zoneinfo(stored: Stored) -> object:
    (key,) = stored.items
    if not ZONE.fullmatch(key):
        raise ValueError(f"{key!r} is no time zone")
    return ZoneInfo(key)


_TAKERS: dict[type, TakeApart] = {
    date: _date,
    time: _time,
    datetime: _datetime,
    timedelta: _timedelta,
    timezone: _timezone,
    ZoneInfo: _zoneinfo,
}

BUILDERS: dict[str, PutTogether] = {
    "date": lambda stored: date(*stored.items),
    "time": lambda stored: _build_moment(time, stored.items),
    "datetime": lambda stored: _build_moment(datetime, stored.items),
    "timedelta": lambda stored: timedelta(*stored.items),
    "timezone": _build_timezone,
    "ZoneInfo": _build_zoneinfo,
}
