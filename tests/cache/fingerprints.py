"""Writes small projects of a user, and tells their filters' identities."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module, invalidate_caches
from itertools import count
from pathlib import Path
from types import ModuleType

from soma.cache._fingerprint import Identity, identity

NUMBERS = count(1)

FILTER = """
from soma import Filter
class F(Filter):
    def forward(self, x, state):
        {}
"""

PROJECT = {
    "mod.py": '''
"""A module of the user's own."""
import functools, logging, re
from functools import partial, wraps
import helpers, pkg.sub
from helpers import direct
from soma import Filter

log = logging.getLogger("mod")
SCALE = 2.0
TABLE = {"a": [1, 2], "b": {"c": 3}}
PATTERN = re.compile("a+", re.IGNORECASE)
CUT = partial(helpers.cut, 3)
OPERATIONS = {"double": lambda v: v * 2}

def decorated(function):
    @wraps(function)
    def wrapper(*args):
        return function(*args) + 1
    return wrapper

def factory(power):
    def raised(v):
        return v ** power
    return raised

square = factory(2)

class Mixin:
    def mixed(self, v):
        return v + 10

class Base(Filter):
    limit = 100

    def common(self, v):
        return min(v, self.limit)

class F(Mixin, Base):
    """A filter."""

    def forward(self, x, state=None):
        """Say what it does."""
        total = 0
        for item in x:
            total = total + self.step(item)  # one by one
        late = self.late(total)
        try:
            return [late, TABLE, PATTERN.match("a")]
        except ValueError:
            return None

    def step(self, v, offset=5, *, factor=7):
        log.debug("a step")
        inner = lambda u: u + v - factor
        return sum(inner(k) for k in range(offset)) + square(v) + direct(v)

    def late(self, v):
        from deep import bottom
        import lazily
        return bottom(v) + lazily.value(v) + pkg.sub.CONSTANT

    @property
    def half(self):
        return CUT(self.limit) / 2

    @staticmethod
    def fixed(v):
        return v - 4

    @classmethod
    def made(cls, v):
        return v - 6

    @decorated
    def wrapped(self):
        return helpers.through(SCALE)

    @functools.lru_cache(maxsize=8)
    def kept(self):
        return OPERATIONS["double"](8)
''',
    "helpers.py": """
RATE = 9
def direct(v):
    return v * RATE
def through(v):
    return second(v) + 1
def second(v):
    return v + 12
def cut(a, b):
    return a - b
def unused(v):
    return v + 13
""",
    "deep.py": "def bottom(v):\n    return v + 14\n",
    "lazily.py": "def value(v):\n    return v + 15\ndef unused(v):\n    return v + 16\n",
    "pkg/__init__.py": "",
    "pkg/sub.py": "CONSTANT = 17\nOTHER = 18\n",
}


def edited(file: str, old: str, new: str) -> dict[str, str]:
    """Return the project with one piece of text replaced, which has to be there once."""
    assert PROJECT[file].count(old) == 1, (file, old)
    return PROJECT | {file: PROJECT[file].replace(old, new)}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a project into a new folder."""
    root = folder / f"project{next(NUMBERS)}"
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@contextmanager
def opened(root: Path, module: str = "mod") -> Iterator[ModuleType]:
    """Import a module of a project; afterwards its modules can be imported anew."""
    before = set(sys.modules)
    sys.path.insert(0, str(root))
    invalidate_caches()
    try:
        yield import_module(module)
    finally:
        sys.path.remove(str(root))
        for name in set(sys.modules) - before:
            if str(root) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


def told(folder: Path, files: Mapping[str, str], **attributes: object) -> Identity:
    """Return the identity of a project's filter `mod.F`."""
    with opened(write(folder, files)) as module:
        return identity(module.F(**attributes))


def run(root: Path, *arguments: str, **environment: str) -> str:
    """Return what a Python of its own prints."""
    path = os.pathsep.join([str(root), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=root,
        env=os.environ | {"PYTHONPATH": path} | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
