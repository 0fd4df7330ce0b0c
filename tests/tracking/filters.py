"""What the tests of this room have in common: a filter, a run's script, strict JSON."""

import json
import subprocess
import sys
from pathlib import Path

from soma import Filter


class Plus(Filter):
    """Adds a number.

    And a second line.
    """

    def __init__(self, number: float = 1) -> None:
        self.number = number

    def forward(self, x: float, state: object) -> float:
        return x + self.number


class Raises(Filter):
    """Raises what it was made with."""

    def forward(self, x: object, state: object) -> object:
        raise self.error


def script(code: str, *arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=check,
        capture_output=True,
        text=True,
        timeout=60,
    )


def strict(folder: Path) -> list[object]:
    """Return every value of JSON in a run directory, refusing what strict JSON does not know."""

    def refuse(token: str) -> object:
        raise AssertionError(f"{token} is no JSON")

    found = []
    for path in sorted(folder.rglob("*.json*")):
        text = path.read_text("utf-8")
        for part in text.splitlines() if path.suffix == ".jsonl" else [text]:
            found.append(json.loads(part, parse_constant=refuse))
    return found
