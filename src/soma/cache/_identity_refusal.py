"""What cannot be told apart, with the reason and what to do instead.

A node whose identity is refused runs as ever and is never cached; the reason is shown.
"""

import sys
from collections.abc import Callable, Iterator
from io import IOBase
from logging import Handler, Logger, LoggerAdapter
from os import environ
from random import Random
from threading import (
    Barrier,
    Condition,
    Event,
    Lock,
    RLock,
    Semaphore,
    Thread,
)

from soma._extras import loaded
from soma.errors import SomaError

INSTEAD = "give the filter a plain value, such as a path, a list or a seed, and make it from that"
PIN = "give the value to the constructor, or set `_cache_version` on the class"

# What a filter may hold without being another filter for it.
_BY_TYPE: tuple[type, ...] = (
    *(type(Lock()), type(RLock()), Condition, Event, Semaphore, Barrier),
    *(Logger, LoggerAdapter, Handler),
    type(environ),
)


class Unfingerprintable(SomaError, ValueError):
    """A filter has no identity; `path` says which part has none and `reason` why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"`{path}`: {reason}")
        self.path = path
        self.reason = reason


def counts_by_type(value: object) -> bool:
    """Whether a value only helps along: a lock, a logger, a standard stream."""
    streams = (sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return isinstance(value, _BY_TYPE) or any(value is stream for stream in streams if stream)


def refuse_live(value: object, path: str) -> None:
    """Refuse what changes by being used.

    Raises:
        Unfingerprintable: it does; the message says what to give instead.
    """
    for is_one, what in _LIVE:
        if is_one(value):
            raise Unfingerprintable(path, f"a `{type(value).__name__}` is {what}; {INSTEAD}")


def _draws(value: object) -> bool:
    if isinstance(value, Random):
        return True
    random, torch = loaded("numpy.random"), loaded("torch")
    generators: list[type] = []
    if random is not None:
        generators += [random.Generator, random.RandomState, random.BitGenerator]
    if torch is not None:
        generators.append(torch.Generator)
    return isinstance(value, tuple(generators))


_LIVE: tuple[tuple[Callable[[object], bool], str], ...] = (
    (lambda value: isinstance(value, IOBase), "an open file or stream"),
    (lambda value: isinstance(value, Iterator), "used up by being read"),
    (lambda value: isinstance(value, Thread), "a running thing"),
    (_draws, "a random generator, which moves on with each draw"),
)
