"""Within one session an identity follows what is changed, and is cheap where nothing is."""

import copy
import gc
import importlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from soma import Filter
from soma.cache._fingerprint import identity
from tests.cache.fingerprints import FILTER, PROJECT, opened, write

CELL = """
from soma import Filter
def helper(v, by=[1], *, more={"a": 1}): return v + 1
LIMIT = 3
TABLE = {"a": [1]}
def outer(cell):
    def inner(v): return v + cell
    def rebind(new):
        nonlocal cell
        cell = new
    inner.rebind = rebind
    return inner
closed = outer(2)
class Part:
    size = 1
    def run(self): return 1
part = Part()
class Base(Filter):
    def common(self, v): return v
class F(Base):
    gain = 2
    def forward(self, x, state):
        return closed(helper(x)) + LIMIT + TABLE["a"][0] + part.run() + len(x) + absent
    @property
    def half(self): return 1
"""


def cell(text: str = CELL) -> dict[str, Any]:
    """Run a cell of a notebook and return the names it makes."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "<cell>", "exec"), names)
    return names


def digest(names: dict[str, Any], **attributes: object) -> str:
    """Return the digest of the cell's filter."""
    return identity(names["F"](**attributes)).digest


PATCHES: dict[str, Callable[[dict[str, Any]], object]] = {
    "method": lambda n: setattr(n["F"], "forward", lambda self, x, state: x),
    "new method": lambda n: setattr(n["F"], "fit", lambda self, x, y=None: x),
    "class attribute": lambda n: setattr(n["F"], "gain", 2.0),
    "property": lambda n: setattr(n["F"], "half", property(lambda self: 2)),
    "method of the base": lambda n: setattr(n["Base"], "common", lambda self, v: 0),
    "no method": lambda n: delattr(n["Base"], "common"),
    "base": lambda n: setattr(n["F"], "__bases__", (Filter,)),
    "global": lambda n: n.update(LIMIT=4),
    "global of another type": lambda n: n.update(LIMIT=3.0),
    "no global": lambda n: n.pop("LIMIT"),
    "new global": lambda n: n.update(absent=1),
    "hidden builtin": lambda n: n.update(len=lambda x: 0),
    "helper": lambda n: n.update(helper=lambda v: v),
    "code of a helper": lambda n: setattr(n["helper"], "__code__", (lambda v: v).__code__),
    "defaults": lambda n: setattr(n["helper"], "__defaults__", ([2],)),
    "inside a default": lambda n: n["helper"].__defaults__[0].append(2),
    "keyword default": lambda n: n["helper"].__kwdefaults__.update(more=2),
    "inside a keyword default": lambda n: n["helper"].__kwdefaults__["more"].update(a=2),
    "inside a global": lambda n: n["TABLE"]["a"].append(2),
    "cell": lambda n: n["closed"].rebind(3),
    "method of a part": lambda n: setattr(n["Part"], "run", lambda self: 2),
    "attribute of a part": lambda n: setattr(n["part"], "size", 2),
    "class of a part": lambda n: setattr(n["part"], "__class__", type("Part", (), {})),
}  # fmt: skip


@pytest.mark.parametrize("what", PATCHES)
def test_a_patch_is_seen_at_the_next_call(what: str) -> None:
    """Nothing is taken to be as it was: what is reached is read again each time."""
    names = cell()
    before = digest(names)
    assert digest(names) == before
    PATCHES[what](names)

    assert digest(names) != before


def test_a_patch_taken_back_is_no_patch() -> None:
    """The identity tells what a filter is, not what it has been."""
    names = cell()
    before, helper = digest(names), names["helper"]
    names["helper"] = lambda v: v
    assert digest(names) != before
    names["helper"] = helper

    assert digest(names) == before


def test_a_cell_that_is_run_again_is_the_same_code() -> None:
    """Each class of a name counts by its own code, old and new side by side."""
    old, again, edited = cell(), cell(), cell(CELL.replace("v + 1", "v + 2"))

    assert digest(old) == digest(again) != digest(edited)
    assert digest(old) == digest(again)


def made(by: int) -> type[Filter]:
    """Return a class that closes over a number."""

    class Times(Filter):
        def forward(self, x: int, state: object) -> int:
            return x * by

    return Times


def test_classes_of_a_factory_count_by_what_they_close_over() -> None:
    """Two classes of one name are two where their closures differ, and one where not."""
    assert identity(made(2)()).digest == identity(made(2)()).digest
    assert identity(made(2)()).digest != identity(made(3)()).digest


def test_a_class_made_by_a_call_counts_by_its_attributes() -> None:
    """`type(name, bases, attributes)` makes classes like any other."""

    def build(by: int) -> Filter:
        return type("Built", (Filter,), {"by": by, "forward": lambda self, x, s: x * self.by})()

    assert identity(build(2)).digest == identity(build(2)).digest != identity(build(3)).digest


def test_attributes_are_read_at_each_call() -> None:
    """A change after construction counts, in place too."""
    names = cell()
    filter = names["F"](rows=[1])
    digests = [identity(filter).digest]
    filter.rows.append(2)
    digests.append(identity(filter).digest)
    filter.rows = (1,)
    digests.append(identity(filter).digest)

    assert len(set(digests)) == 3


def test_warm_bytecode_is_the_same_code(tmp_path: Path) -> None:
    """The interpreter rewrites code that runs often; the identity does not see it."""
    root = write(tmp_path, PROJECT)
    with opened(root) as module:
        for number in range(2000):
            module.F().step(number)
        warm = identity(module.F())
    with opened(root) as module:
        assert identity(module.F()) == warm


@pytest.mark.parametrize("at_first", [True, False])
def test_a_module_imported_late_is_found_anew(at_first: bool, tmp_path: Path) -> None:
    """A function that imports a module gets the one that is there then, and so do we."""
    name = f"late_{at_first}"
    use = f"import {name}; return {name}.f(x)"
    (tmp_path / f"{name}.py").write_text("def f(x): return 1")
    names = cell(FILTER.format(f"try: {use}\n        except ImportError: return 0"))
    with patched(sys.path, tmp_path if at_first else tmp_path / "empty"):
        before = digest(names)
    sys.modules.pop(name, None)
    (tmp_path / f"{name}.py").write_text("def f(x): return 22")
    with patched(sys.path, tmp_path):
        if not at_first:
            importlib.import_module(name)
        assert digest(names) != before
    del sys.modules[name]


@contextmanager
def patched(path: list[str], folder: Path) -> Iterator[None]:
    """Import from a folder inside."""
    path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        path.remove(str(folder))


def test_deep_chains_need_no_stack() -> None:
    """Five thousand helpers that call each other are walked, and the last one counts."""
    lines = [f"def f{i}(v): return f{i + 1}(v)" for i in range(5000)]
    text = "from soma import Filter\n" + "\n".join(lines) + "\ndef f5000(v): return v + {}\n"
    text += "class F(Filter):\n    def forward(self, x, state): return f0(x)\n"

    assert digest(cell(text.format(1))) != digest(cell(text.format(2)))


def test_circles_are_walked_once() -> None:
    """Functions and classes may reach each other in any way."""
    text = """
from soma import Filter
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
class A:
    def other(self): return B()
class B(A):
    def other(self): return A(), F, even
class F(Filter):
    def forward(self, x, state): return even(x), B()
B.back = F
"""
    assert digest(cell(text)) == digest(cell(text)) != digest(cell(text.replace("!= 0", "!= 1")))


def test_an_identity_keeps_no_class_alive() -> None:
    """What is remembered of a class goes with it."""
    cls = made(4)
    identity(cls())
    watch = weakref.ref(cls)
    del cls
    gc.collect()

    assert watch() is None


def test_many_threads_may_ask() -> None:
    """Threads that ask at the same time get the same answer."""
    names = cell()
    found: set[str] = set()
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        found.update(digest(names, k=[1, {"a": 2}]) for _ in range(50))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert len(found) == 1


def test_a_copy_leaves_the_code_as_it_is() -> None:
    """Copying an instance, which notes something down in its class, is no edit."""
    names = cell()
    before = digest(names)
    copy.deepcopy(names["F"]())

    assert "__slotnames__" in vars(names["F"])
    assert digest(names) == before


def test_a_class_can_still_be_copied_to_another_process() -> None:
    """What is remembered on a class is not sent along with it."""
    cloudpickle = pytest.importorskip("cloudpickle")
    cls = made(5)
    before = identity(cls()).digest
    again = cloudpickle.loads(cloudpickle.dumps(cls))

    assert identity(again()).digest == before


PIN = """
from soma import Filter
class Base(Filter):
    _cache_version = {version!r}
    def forward(self, x, state): return {base}
class F(Base):
    def more(self): return {own}
"""


def test_a_version_stands_for_the_code_of_its_class() -> None:
    """`_cache_version` replaces the code of the class that sets it, and of no class below."""
    text = {"version": "1", "base": "1", "own": "1"}
    one, other_base, other_own, other_version = [
        cell(PIN.format(**text | change))
        for change in ({}, {"base": "eval('2')"}, {"own": "2"}, {"version": "2"})
    ]

    assert digest(one) == digest(other_base)
    assert len({digest(one), digest(other_own), digest(other_version)}) == 3
    base = identity(one["Base"](k=1))
    # The module is called by the program that the tests run in.
    assert [name.partition(".")[2] for name in base.code] == ["Base._cache_version"]
    assert base.libraries == {}


@pytest.mark.parametrize(("one", "other"), [("1", 1), (1, 1.0), (1, True)])
def test_versions_are_exact(one: object, other: object) -> None:
    """A version is a value with a type."""
    texts = [PIN.format(version=version, base=1, own=1) for version in (one, other)]
    first, second = (identity(cell(text)["Base"]()).digest for text in texts)

    assert first != second
