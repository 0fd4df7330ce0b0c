"""Where a run was started: versions, machine, commit, command. Nothing of the environment."""

import os
import platform
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from soma._extras import DIST
from soma.tracking._plain import text_out

_GIT_SECONDS = 2.0
_LIBRARIES = {"soma": DIST, "torch": "torch", "numpy": "numpy"}
_SECRET = re.compile(r"token|secret|passw|pwd|credential|auth|key", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@]+(?=@)")  # `user:password` of an address
_HIDDEN = "***"


def environment() -> dict[str, Any]:
    """Return what a manifest says of its surroundings, as JSON data."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: _version(of) for name, of in _LIBRARIES.items()},
        "git": _git(),
        "argv": [text_out(one) for one in without_secrets(sys.argv)],
    }


def without_secrets(arguments: list[str]) -> list[str]:
    """Return a command line with the values of what is called like a secret hidden."""
    told = []
    follows = False
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if follows and not argument.startswith("--"):
            told.append(_HIDDEN)
            follows = False
            continue
        secret = _SECRET.search(name) is not None
        follows = secret and not equals and argument.startswith("-")
        hidden = f"{name}={_HIDDEN}" if secret and equals else argument
        told.append(_IN_ADDRESS.sub(_HIDDEN, hidden))
    return told


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _git() -> dict[str, Any] | None:
    """Return commit, branch and whether files differ from it; None outside of a repository."""
    command = shutil.which("git")
    if command is None:
        return None
    asked = ["-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch"]
    try:
        answer = subprocess.run(  # noqa: S603 - the words are ours
            [command, *asked, "--untracked-files=no"],
            capture_output=True,
            check=True,
            stdin=subprocess.DEVNULL,
            timeout=_GIT_SECONDS,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = answer.stdout.decode("utf-8", "replace").splitlines()
    heads = dict(line[2:].split(" ", 1) for line in lines if re.match(r"# \S+ ", line))
    return {
        "commit": heads.get("branch.oid"),
        "branch": heads.get("branch.head"),
        "dirty": any(not line.startswith("#") for line in lines),
    }
