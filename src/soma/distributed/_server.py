"""The process of one session on a worker: joins torch's group, and lives as long as its client."""

import os
import runpy
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from soma.distributed import _group, _host
from soma.distributed._meeting import Meeting
from soma.distributed._records import Request

_LOOK_SECONDS = 0.25


def main() -> None:
    """Run the session that standard input describes, for the worker that the arguments name."""
    folder, name, device = sys.argv[1:]
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    meeting = Meeting(folder)
    parent = os.getppid()
    threading.Thread(target=_watch, args=(meeting, request, parent), daemon=True).start()
    try:
        _find_classes(request)
        _host.HOST.begin(device)
    except BaseException as error:
        with suppress(OSError):
            meeting.answer(request.session, name, f"{type(error).__name__}: {error}")
        raise
    meeting.answer(request.session, name, None)
    _group.join(name, request)
    threading.Event().wait()


def _watch(meeting: Meeting, request: Request, parent: int) -> None:
    """End the process when its client or its worker is gone; torch would have it wait for ever."""
    while meeting.client_lives(request.session) and os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    sys.stdout.flush()
    os._exit(0)  # a filter may still be running, and would break the interpreter as it ends


def _find_classes(request: Request) -> None:
    """Make importable what the client can import, where it lies on this machine too."""
    sys.path += [one for one in request.import_path if one not in sys.path and Path(one).exists()]
    if request.main is not None and Path(request.main).is_file():
        # As the processes of `multiprocessing` do: the script runs here under another name, so
        # what it guards by `if __name__ == "__main__"` does not, and its classes are found.
        module = type(sys)("__mp_main__")
        vars(module).update(runpy.run_path(request.main, run_name="__mp_main__"))
        sys.modules["__main__"] = sys.modules["__mp_main__"] = module
