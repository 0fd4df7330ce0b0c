"""What torch says when a call to a worker fails, told as one of our errors.

torch has one class for all of it, so its texts are read here and nowhere else.
"""

import re
from collections.abc import Sequence

from soma.core import NodeId
from soma.distributed._messages import Failure
from soma.errors import NotSent, RemoteFailure, WorkerLost, WorkerTimeout, listing

# What a process that reads a message says when it lacks a class.
_UNREADABLE = re.compile(
    r"(?:ModuleNotFoundError|ImportError)\W[^\n]*|No module named[^\n]*"
    r"|Can't get attribute [^\n]*?<module [^\n]*?>(?= |$)"
)

# What torch adds to the error of an answer that cannot be put into a message.
_UNSENDABLE = re.compile(r"rpc.internal\.py\(\d+\): serialize\b")

_PICKLED = (
    "What crosses is pickled: a function or a class has to stand at the top of a module (no "
    "lambda), and nothing in it is a lock, an open file or a connection."
)
_GO_ON = "Go on from a copy: `g.load_state(state)`, or `Graph.load(path)`"


def is_timeout(error: Exception) -> bool:
    """Whether no answer came in time."""
    text = str(error)
    return "RPC ran for more than" in text or "timed out" in text.lower()


def rank(error: Exception) -> int | None:
    """Return the process that an error of a backward over several comes from, if it says so."""
    found = re.findall(r"Error on Node (\d+)", str(error))
    return int(found[-1]) if found else None


def not_sent(error: Exception, worker: str, node: NodeId | None) -> NotSent:
    """Return what to raise for something that cannot be put into a message."""
    return NotSent(
        f"something{_of(node)} cannot be sent to {worker}: {type(error).__name__}: {error}. "
        f"{_PICKLED}"
    )


def raised(error: Exception, worker: str, node: NodeId | None) -> Exception:
    """Return what to raise for an error that torch reports of a worker which lives."""
    text = str(error)
    if _UNSENDABLE.search(text):
        return NotSent(
            f"what {worker}{_of(node)} answers cannot be sent here: {text.partition(chr(10))[0]}. "
            f"{_PICKLED}"
        )
    lacking = _UNREADABLE.search(text) if "deserialize" in text else None
    if lacking is None:
        return RemoteFailure(f"{worker}{_of(node)} failed: {text}")
    return NotSent(
        f"{worker}{_of(node)} cannot read what it was sent: {lacking[0].strip()}. A filter, and "
        "all that it holds, is of classes that can be imported there too: put them at the top of "
        "a module (not into a function, a notebook or a shell) that lies below the folder where "
        f"{worker} was started, is installed there, or is on its PYTHONPATH."
    )


def failed(failure: Failure, worker: str, node: NodeId | None) -> RemoteFailure:
    """Return what to raise for an exception of a filter."""
    return RemoteFailure(
        f"{failure.kind} on {worker}{_of(node)}: {failure.text}\n\nThere:\n{failure.trace}"
    )


def timeout(workers: Sequence[str], node: NodeId | None, seconds: float) -> WorkerTimeout:
    """Return what to raise for a worker, one of those named, that gave no answer in time."""
    one = workers[0] if len(workers) == 1 else f"one of {listing(workers)}"
    return WorkerTimeout(
        f"{one}{_of(node)} gave no answer within {seconds:g} s. It hangs, or has more to do than "
        f"that: `soma.distributed.connect(timeout=...)` waits longer. {_GO_ON}."
    )


def lost(worker: str, node: NodeId | None) -> WorkerLost:
    """Return what to raise for a worker that is gone."""
    return WorkerLost(
        f"{worker}{_of(node)} is gone, with what its nodes had learned since that was last brought "
        f"home. {_GO_ON}; where `soma worker --list` does not show {worker} any more, start it "
        f"first: `soma worker --name {worker}`."
    )


def out_of_reach(worker: str, node: NodeId | None, why: str) -> WorkerLost:
    """Return what to raise for a call on a connection that is over."""
    return WorkerLost(f"{worker}{_of(node)} is out of reach, since {why}. {_GO_ON}.")


def _of(node: NodeId | None) -> str:
    return "" if node is None else f" (`{node}`)"
