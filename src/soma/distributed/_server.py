"""The process of one session on a worker: joins torch's group, and lives as long as its client."""

import os
import runpy
import sys
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from soma.distributed import _group, _host
from soma.distributed._meeting import Meeting
from soma.distributed._records import Request
from soma.errors import SomaError, WorkerMismatch

_LOOK_SECONDS = 0.25
_NAME = "__mp_main__"  # of the module that stands for the script


def main() -> None:
    """Run the session that standard input describes, for the worker that the arguments name."""
    folder, name, device, worker = sys.argv[1:]
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    meeting = Meeting(folder)
    threading.Thread(target=_watch, args=(meeting, request, int(worker)), daemon=True).start()
    try:
        _find_classes(request)
        _host.HOST.begin(device)
    except BaseException as error:
        kind = "" if isinstance(error, SomaError) else f"{type(error).__name__}: "
        with suppress(OSError):
            meeting.answer(request.session, name, f"{kind}{error}")
        raise
    meeting.answer(request.session, name, None)
    _group.join(name, request)
    threading.Event().wait()


def _watch(meeting: Meeting, request: Request, worker: int) -> None:
    """End the process when its client or its worker is gone; torch would have it wait for ever."""
    while meeting.client_lives(request.session) and os.getppid() == worker:
        time.sleep(_LOOK_SECONDS)
    sys.stdout.flush()
    os._exit(0)  # a filter may still be running, and would break the interpreter as it ends


def _find_classes(request: Request) -> None:
    """Make importable what the client can import, where it lies on this machine too.

    Raises:
        WorkerMismatch: the program's script cannot be run here.
    """
    sys.path += [one for one in request.import_path if one not in sys.path and Path(one).exists()]
    sys.argv = [*request.arguments]
    try:
        found = _run(request)
    except SomaError:
        raise
    except (Exception, SystemExit) as error:
        raise WorkerMismatch(
            f"it runs {request.main or request.main_module} for the classes in it, which ended "
            f"with {type(error).__name__}: {error}. What a script does stands below "
            '`if __name__ == "__main__":`'
        ) from error
    if found is not None:
        module = type(sys)(_NAME)
        vars(module).update(found)
        sys.modules["__main__"] = sys.modules[_NAME] = module


def _run(request: Request) -> dict[str, Any] | None:
    """Run the program's script under another name, as processes of `multiprocessing` do.

    So what it guards by `if __name__ == "__main__"` does not run, and its classes are found.
    """
    if request.main_module is not None:
        with suppress(ModuleNotFoundError):  # none of its packages is here
            if find_spec(request.main_module) is not None:
                return runpy.run_module(request.main_module, run_name=_NAME, alter_sys=True)
    elif request.main is not None and Path(request.main).is_file():
        return runpy.run_path(request.main, run_name=_NAME)
    return None
