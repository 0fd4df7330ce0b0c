"""Begins a session: asks each worker to join, waits until all are ready, and joins with them."""

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from soma.distributed import _group
from soma.distributed._interface import LOOPBACK
from soma.distributed._meeting import Meeting
from soma.distributed._records import Card, Request, versions
from soma.distributed._ways import Way
from soma.errors import WorkerLost, WorkerMismatch, WorkerTimeout, WorkerUnavailable, listing

_CLIENT = ":client"  # which no worker can be called
_BEGIN_SECONDS = 60.0  # that a worker has to start a process, which imports torch
_LOOK_SECONDS = 0.02


def join_with(ways: Sequence[Way], session: str, meeting: Meeting, timeout: float) -> None:
    """Be in one group with workers, as its first process.

    Args:
        ways: to the workers, in the order of their ranks.
        session: that this program has opened.
        meeting: where it has.
        timeout: seconds that each call may take.

    Raises:
        WorkerMismatch: a worker has other versions, or a reason not to begin.
        WorkerUnavailable: a worker ended meanwhile.
        WorkerTimeout: a worker does not answer.
        WorkerLost: a worker was ready, and did not join.
    """
    for way in ways:
        _check_versions(way.card)
    far = next((way for way in ways if way.host is not None), None)
    names = [way.card.name for way in ways]
    with ExitStack() as stack:
        rendezvous = meeting.rendezvous(session)
        if far is not None and far.host is not None:
            rendezvous = stack.enter_context(_group.meeting_point(far.host))
        requests = [
            Request(
                session=session,
                group=session,
                rank=rank,
                size=len(ways) + 1,
                number=_group.number(),
                timeout=timeout,
                versions=versions(),
                interface=LOOPBACK if far is None else far.interface,
                rendezvous=rendezvous,
                import_path=tuple(str(Path(one).absolute()) for one in sys.path),
                main=_main_script(),
                main_module=_main_module(),
                arguments=tuple(sys.argv),
            )
            for rank in range(len(ways) + 1)
        ]
        for way, request in zip(ways, requests[1:], strict=True):
            way.ask(request)
        _wait(ways, session)
        try:
            _group.join(_CLIENT, requests[0])
        except RuntimeError as error:
            raise WorkerLost(
                f"{listing(names)} began a session, and did not all join it within "
                f"{timeout:g} s: {str(error).partition(chr(10))[0]}"
            ) from error


def _check_versions(card: Card) -> None:
    differing = versions().differing(card.versions)
    if differing:
        raise WorkerMismatch(
            f"{card.name} cannot work for this program: {'; '.join(differing)}. Start it from an "
            "installation like this one."
        )


def _wait(ways: Sequence[Way], session: str) -> None:
    """Come back when every worker is ready."""
    deadline = time.monotonic() + _BEGIN_SECONDS
    for way in ways:
        name = way.card.name
        while (refusal := way.answered(session)) is None:
            if not way.lives():
                raise WorkerUnavailable(
                    f"{name} ended while it was asked to begin a session. Start it again: `soma "
                    f"worker --name {name}`."
                )
            if time.monotonic() > deadline:
                raise WorkerTimeout(
                    f"{name} began no session within {_BEGIN_SECONDS:g} s. It hangs or is stopped, "
                    "or its machine is overloaded: see what it printed, or start it anew."
                )
            time.sleep(_LOOK_SECONDS)
        if refusal:
            raise WorkerMismatch(f"{name} refuses: {refusal.rstrip('.')}.")


def _main_module() -> str | None:
    """Return the name by which `python -m` has found the script."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is None or spec.name.split(".")[-1] == "__main__":  # a package's has no guard
        return None
    return str(spec.name)


def _main_script() -> str | None:
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if file is None or not file.endswith(".py") or getattr(main, "__spec__", None) is not None:
        return None
    return str(Path(file).absolute())
