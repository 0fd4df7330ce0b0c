"""A worker of `local_cluster`: it ends with the program that has started it, however that ends."""

import os
import shutil
import signal
import sys
from contextlib import suppress

from soma.distributed._meeting import Meeting
from soma.distributed._worker import serve


def main() -> None:
    """Be the worker that the arguments name, for the program whose process they give."""
    folder, name, program = sys.argv[1:]
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def is_alone() -> bool:
        return os.getppid() != int(program)

    with suppress(KeyboardInterrupt):
        serve(name, meeting=Meeting(folder), ends=is_alone)
    if is_alone():  # else the program removes it
        shutil.rmtree(folder, ignore_errors=True)
