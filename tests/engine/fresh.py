"""Runs code in a Python of its own, for tests of signals, exits and what gets imported."""

import os
import subprocess
import sys
from textwrap import dedent


def fresh_python(code: str) -> str:
    """Return what `code` prints; it has to end well, silently and within a minute."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
