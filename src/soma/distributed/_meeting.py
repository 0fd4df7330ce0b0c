"""The folder where workers and the programs that use them meet; it knows nothing of torch.

    workers/NAME.json, NAME.lock     a worker; the lock is held while it lives
    requests/NAME/SESSION.json       a session that the worker is asked to join
    sessions/SESSION/                client.lock, NAME.ready or NAME.refused, torch's meeting file

Only its owner may enter it: whoever can ask a worker can have it run anything.
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

import msgspec

from soma.core import checked_target
from soma.distributed._records import MOST, Card, Request, versions
from soma.errors import WorkerUnavailable
from soma.files import locked, write_atomically

WITHIN = "SOMA_WORKER_SESSION"  # set in the processes that workers start
_Record = TypeVar("_Record", bound=msgspec.Struct)
_OLD_SECONDS = 24 * 3600.0  # after which a session without a client is swept


class Meeting:
    """One such folder."""

    def __init__(self, folder: "str | os.PathLike[str] | None" = None) -> None:
        self.folder = Path(folder or os.environ.get("SOMA_WORKERS_DIR") or _usual()).absolute()
        self._workers = self.folder / "workers"
        self._requests = self.folder / "requests"
        self._sessions = self.folder / "sessions"

    def make(self) -> None:
        """Make the folder, for its owner alone.

        Raises:
            WorkerUnavailable: it belongs to somebody else, or others may write to it.
        """
        for part in (self.folder, self._workers, self._requests, self._sessions):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = self.folder.stat()
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise WorkerUnavailable(
                f"the workers' folder {self.folder} is open to others, and whoever can write to it "
                f"can run code on the workers. Close it: `chmod 700 {self.folder}`."
            )

    # A worker's side

    @contextmanager
    def present(self, name: str, device: str) -> Iterator[None]:
        """Be a worker of this name inside.

        Raises:
            WorkerUnavailable: there is one already.
        """
        checked_target(name)
        self.make()
        with _held(self._workers / f"{name}.lock", patience=1.0) as got:
            if not got:
                raise WorkerUnavailable(
                    f"there is a worker `{name}` in {self.folder} already. `soma worker --list` "
                    "shows all; choose another name, or stop that one."
                )
            self._sweep(name)
            card = Card(name, os.getpid(), os.uname().nodename, device, time.time(), versions())
            self._write(self._workers / f"{name}.json", card)
            try:
                yield
            finally:
                with suppress(OSError):
                    (self._workers / f"{name}.json").unlink()

    def next_request(self, name: str) -> Request | None:
        """Return one request that is waiting, and take it; None where there is none."""
        for path in sorted((self._requests / name).glob("*.json")):
            request = _read(path, Request)
            with suppress(OSError):
                path.unlink()
            if request is not None:
                return request
        return None

    def answer(self, session: str, name: str, refusal: str | None) -> None:
        """Tell the client that a worker is ready to join, or why it is not."""
        kind = "ready" if refusal is None else "refused"
        path = self.session(session) / f"{name}.{kind}"
        write_atomically(str(path), [(refusal or "").encode()])

    def client_lives(self, session: str) -> bool:
        """Whether the program that opened a session still holds it."""
        return _is_held(self.session(session) / "client.lock")

    # The side of a program that uses workers

    def cards(self) -> list[Card]:
        """Return the workers that live, by name."""
        found = [_read(path, Card) for path in sorted(self._workers.glob("*.json"))]
        return [card for card in found if card is not None and self.lives(card.name)]

    @contextmanager
    def opened(self) -> Iterator[str]:
        """Open a session, and hold it inside; give its name."""
        refuse_within_a_session()
        self.make()
        session = token_hex(6)
        folder, process = self.session(session), os.getpid()
        folder.mkdir(mode=0o700)
        try:
            with locked(str(folder / "client.lock")):
                yield session
        finally:
            if os.getpid() == process:  # and not one that was forked from it
                for path in self._requests.glob(f"*/{session}.json"):  # nobody took it
                    path.unlink(missing_ok=True)
                _remove(folder)

    def ask(self, name: str, request: Request) -> None:
        """Leave a request where the worker finds it."""
        folder = self._requests / name
        folder.mkdir(mode=0o700, exist_ok=True)
        self._write(folder / f"{request.session}.json", request)

    def answered(self, session: str, name: str) -> str | None:
        """Return `""` when a worker is ready, its refusal, or None before it has answered."""
        folder = self.session(session)
        with suppress(OSError):
            return (folder / f"{name}.refused").read_text(encoding="utf-8", errors="replace")
        return "" if (folder / f"{name}.ready").exists() else None

    def rendezvous(self, session: str) -> str:
        """Return where torch's processes find each other."""
        return (self.session(session) / "meeting").as_uri()

    def session(self, session: str) -> Path:
        """Return a session's folder."""
        return self._sessions / str(checked_target(session))

    def lives(self, name: str) -> bool:
        """Whether there is a worker of this name."""
        return _is_held(self._workers / f"{name}.lock")

    def _sweep(self, name: str) -> None:
        """Drop what programs that died have left behind."""
        for path in (self._requests / name).glob("*.json"):
            path.unlink(missing_ok=True)
        for folder in self._sessions.iterdir():
            with suppress(OSError):
                if time.time() - folder.stat().st_mtime > _OLD_SECONDS:
                    _remove(folder)

    def _write(self, path: Path, record: msgspec.Struct) -> None:
        write_atomically(str(path), [msgspec.json.encode(record)])


def refuse_within_a_session() -> None:
    """Refuse workers to a script that a worker runs for its classes: it would start itself again.

    Raises:
        WorkerUnavailable: this process is a worker's.
    """
    if WITHIN in os.environ:
        raise WorkerUnavailable(
            "a worker runs this script to find its classes, and the script asked for workers "
            'itself. Put what it does below `if __name__ == "__main__":`.'
        )


def _usual() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "soma" / "workers"


def _read(path: Path, kind: type[_Record]) -> _Record | None:
    """Return what a file holds, or None: it is gone, or none of ours."""
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(MOST), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


@contextmanager
def _held(path: Path, patience: float) -> Iterator[bool]:
    """Try to hold a lock inside, which the system drops when this process ends, however.

    Args:
        path: of the lock.
        patience: seconds to try for; a look whether somebody holds it holds it for a moment.
    """
    deadline = time.monotonic() + patience
    while True:
        with locked(str(path)) as got:
            if got or time.monotonic() >= deadline:
                yield got
                return
        time.sleep(0.02)


def _is_held(path: Path) -> bool:
    try:
        with locked(str(path)) as got:
            return not got
    except FileNotFoundError:  # the folder is gone, and whoever held the lock with it
        return False


def _remove(folder: Path) -> None:
    """Remove a folder without folders in it."""
    with suppress(OSError):
        for path in folder.iterdir():
            path.unlink(missing_ok=True)
        folder.rmdir()
