"""`soma.why` says in one line why a node ran, in words that tell what to do."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

import soma
from soma import Filter, Graph
from soma.cache import FileStore, gc
from soma.errors import CacheWarning, UnknownNode
from tests.cache.fingerprints import FILTER, opened, run, write
from tests.engine.filters import Center, Pairs, Plus


class Give(Filter):
    """Gives what it was made with, whatever comes."""

    def forward(self, x: object, state: object) -> object:
        return self.given


class Unstored(Plus):
    """Asks not to be stored."""

    _cacheable = False


class Drawing(Plus):
    """Claims to draw."""

    _deterministic = False


class Thing:
    """Has no codec."""


class GiveThing(Filter):
    """Gives what cannot be stored."""

    def forward(self, x: object, state: object) -> object:
        return Thing()


def told(folder: Path, filter: object, x: object = 1, seed: int | None = None) -> str:
    """Return why the last node of a new graph ran."""
    g = Graph.somatize(filter, cache=folder, seed=seed)
    g.forward(x)
    return soma.why(g, g.filter_ids()[-1])


def test_the_first_time(tmp_path: Path) -> None:
    """Nothing to compare with."""
    assert told(tmp_path, Plus()) == "`plus` ran: first time, nothing of it is stored"


def test_what_did_not_run(tmp_path: Path) -> None:
    """A stored answer is no run."""
    told(tmp_path, Plus())

    assert told(tmp_path, Plus()) == "`plus` did not run: its answer was stored"


def test_changed_code_names_the_function(tmp_path: Path) -> None:
    """A helper in another file was edited between two runs, and is named."""
    lines = []
    for sign in "+-":
        files = {
            "mod.py": "import helpers\n" + FILTER.format("return helpers.step(x)"),
            "helpers.py": f"def step(x):\n    return x {sign} 1\n",
        }
        with opened(write(tmp_path, files)) as module:
            lines.append(told(tmp_path / "cache", module.F()))

    assert lines[1] == "`f` ran: the code of `helpers.step` changed"


def test_changed_code_of_another_process(tmp_path: Path) -> None:
    """The line is the same where each run is a process of its own."""
    script = (
        "import soma, mod, sys\ng = soma.Graph.somatize(mod.F(), cache=sys.argv[1])\n"
        "g.forward(1)\nprint(soma.why(g, 'f'))"
    )
    files = [{"mod.py": FILTER.format(f"return x + {number}")} for number in (1, 2)]
    lines = [run(write(tmp_path, one), "-c", script, str(tmp_path / "cache")) for one in files]

    assert lines[1] == "`f` ran: the code of `mod.F.forward` changed"


def test_a_changed_pin(tmp_path: Path) -> None:
    """A version that speaks for the code is named as what changed."""
    lines = []
    for version in (1, 2):
        text = FILTER.format("return x") + f"    _cache_version = {version}\n"
        with opened(write(tmp_path, {"mod.py": text})) as module:
            lines.append(told(tmp_path / "cache", module.F()))

    assert lines[1] == "`f` ran: `mod.F._cache_version` changed"


def test_changed_configuration(tmp_path: Path) -> None:
    """The attribute is named, with what it was and what it is."""
    told(tmp_path, Plus(amount=1))

    assert told(tmp_path, Plus(amount=2.5)) == "`plus` ran: `amount` changed from 1 to 2.5"


def test_changed_input(tmp_path: Path) -> None:
    """A root says that its input changed."""
    told(tmp_path, Plus(), x=1)

    assert told(tmp_path, Plus(), x=2) == "`plus` ran: its input changed"


def test_changed_input_of_a_fan_in(tmp_path: Path) -> None:
    """A fan-in names the node whose answer is another one."""
    for given in (1, 2):
        line = told(tmp_path, (Plus() | Give(given=given)) >> Pairs())

    assert line == "`pairs` ran: its input from `give` changed"


def test_other_nodes_to_read(tmp_path: Path) -> None:
    """A fan-in that reads other nodes says so, since their names are a part of its input."""
    told(tmp_path, (Plus() | Give(given=1)) >> Pairs())
    line = told(tmp_path, (Plus() | Plus(amount=2)) >> Pairs())

    assert line == "`pairs` ran: it reads other nodes than before"


def test_changed_labels(tmp_path: Path) -> None:
    """A node that learns runs again for other labels."""
    for labels in ([1, 2], [2, 1]):
        g = Graph.somatize(Center(), cache=tmp_path)
        g.fit([1, 2], labels)

    assert soma.why(g, "center") == "`center` ran: its labels changed"


def test_changed_seed(tmp_path: Path) -> None:
    """The old and the new seed are named."""
    told(tmp_path, Drawing(), seed=1)

    assert told(tmp_path, Drawing(), seed=2) == "`drawing` ran: the seed changed from 1 to 2"


def test_changed_library(tmp_path: Path) -> None:
    """A library that was updated is named, with both versions."""
    script = (
        "import sys\nsys.path.insert(0, sys.argv[2])\nimport soma, mod\n"
        "g = soma.Graph.somatize(mod.F(), cache=sys.argv[1])\n"
        "g.forward(1)\nprint(soma.why(g, 'f'))"
    )
    root = write(tmp_path, {"mod.py": "import lib\n" + FILTER.format("return lib.step(x)")})
    lines = []
    for version in ("1.0", "1.1"):
        site = installed(tmp_path / version, version)
        lines.append(run(root, "-c", script, str(tmp_path / "cache"), str(site)))

    assert lines[1] == "`f` ran: lib changed from 1.0 to 1.1"


def installed(folder: Path, version: str) -> Path:
    """Install a library of one module, and return where."""
    site = folder / "site-packages"
    about = site / f"lib-{version}.dist-info"
    about.mkdir(parents=True)
    (site / "lib.py").write_text("def step(x):\n    return x\n")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: lib\nVersion: {version}\n")
    (about / "RECORD").write_text("lib.py,,\n")
    return site


def test_a_changed_setting_of_torch(tmp_path: Path) -> None:
    """A setting of the process that changes what torch computes is named."""
    torch = pytest.importorskip("torch")
    told(tmp_path, Plus())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        line = told(tmp_path, Plus())

    assert line == (
        "`plus` ran: settings of torch changed from the usual ones to autocast cpu torch.bfloat16"
    )


def test_what_was_learned_changed(tmp_path: Path) -> None:
    """The same input with another state."""
    g = Graph.somatize(Center(), cache=tmp_path)
    for mean in (1, 2):
        g.set_node_state("center", mean)
        g.forward([1, 2])

    assert soma.why(g, "center") == "`center` ran: what it learned changed"


LARGE = [float(number) for number in range(10_000)]


def files(folder: Path, kind: str) -> Iterator[Path]:
    """Return the files of a kind in a cache."""
    return (path for path in (folder / kind).rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", ["records", "blobs"])
def test_an_evicted_answer(kind: str, tmp_path: Path) -> None:
    """It says that the answer was there and went, whichever of its files has gone."""
    told(tmp_path, Give(given=LARGE))
    for path in files(tmp_path, kind):
        path.unlink()

    assert told(tmp_path, Give(given=LARGE)) == "`give` ran: its stored answer was evicted"


def test_an_answer_that_a_collection_took(tmp_path: Path) -> None:
    """A collection that leaves the small pointers leaves enough to tell."""
    told(tmp_path, Give(given=LARGE))
    store = FileStore(tmp_path)
    gc(store, sum(entry.size for entry in store.entries() if entry.kind == "last"))

    assert told(tmp_path, Give(given=LARGE)) == "`give` ran: its stored answer was evicted"


def test_an_evicted_state(tmp_path: Path) -> None:
    """A state that has gone is told from an answer."""
    Graph.somatize(Center(), cache=tmp_path).fit([1, 2])
    for path in files(tmp_path, "records"):
        path.unlink()
    g = Graph.somatize(Center(), cache=tmp_path)
    g.fit([1, 2])

    assert soma.why(g, "center") == "`center` ran: its stored state was evicted"


def test_nothing_to_compare_with(tmp_path: Path) -> None:
    """The last record is gone and another one was wanted: it does not guess."""
    told(tmp_path, Plus(), x=1)
    for path in files(tmp_path, "records"):
        path.unlink()

    assert told(tmp_path, Plus(), x=2) == (
        "`plus` ran: its last record is gone, so what changed since is not known"
    )


@pytest.mark.parametrize("kind", ["records", "blobs"])
def test_a_damaged_answer(kind: str, tmp_path: Path) -> None:
    """A file that was changed is told from one that went."""
    told(tmp_path, Give(given=LARGE))
    for path in files(tmp_path, kind):
        data = bytearray(path.read_bytes())
        data[-9] ^= 1
        path.write_bytes(data)

    with pytest.warns(CacheWarning):
        line = told(tmp_path, Give(given=LARGE))
    assert line == "`give` ran: its stored answer was damaged"


def test_an_attribute_that_is_an_open_file(tmp_path: Path) -> None:
    """The attribute is named, and what to give instead."""
    assert told(tmp_path, Plus(amount=1) >> Give(given=1, log=StringIO())) == (
        "`give` runs each time: `log` cannot be part of a cache key: a `StringIO` is an open file "
        "or stream; give the filter a plain value, such as a path, a list or a seed, and make it "
        "from that"
    )


def test_an_attribute_that_is_a_generator(tmp_path: Path) -> None:
    """What is used up by being read has no key either."""
    assert told(tmp_path, Give(given=1, rows=(row for row in "ab"))) == (
        "`give` runs each time: `rows` cannot be part of a cache key: a `generator` is used up by "
        "being read; give the filter a plain value, such as a path, a list or a seed, and make it "
        "from that"
    )


def test_a_filter_that_asks_not_to_be_stored(tmp_path: Path) -> None:
    """It names the attribute that says so."""
    assert told(tmp_path, Unstored()) == (
        "`unstored` runs each time: it says `_cacheable = False`; without that, its answers are "
        "stored"
    )


def test_a_filter_that_draws_without_a_seed(tmp_path: Path) -> None:
    """A seed is what it takes."""
    assert told(tmp_path, Drawing()) == (
        "`drawing` runs each time: it says `_deterministic = False` and there is no seed; "
        "`Graph(seed=...)` makes its answers repeatable, and has them stored"
    )


def test_an_answer_without_a_codec(tmp_path: Path) -> None:
    """The type is named, and the call that teaches it."""
    name = f"{Thing.__module__}.Thing"

    assert told(tmp_path, GiveThing()) == (
        f"`give_thing` runs each time: its answer cannot be stored: the value: `{name}` has no "
        "codec; soma.cache.register_codec can give it one"
    )


def test_an_input_without_a_digest(tmp_path: Path) -> None:
    """The node behind it says that it is its input, and a fan-in from where."""
    name = f"{Thing.__module__}.Thing"

    assert told(tmp_path, (GiveThing(name="odd") | Plus()) >> Pairs()) == (
        "`pairs` runs each time: its input from `give_thing` cannot be part of a cache key: the "
        f"value: `{name}` has no codec; soma.cache.register_codec can give it one"
    )


def test_live_weights(tmp_path: Path) -> None:
    """Weights that may change have no key until they are frozen."""
    torch = pytest.importorskip("torch")
    from tests.training.filters import Dense

    g = Graph.somatize(Dense(2), cache=tmp_path)
    g.materialize(torch.ones(2, 3))
    g.forward(torch.ones(2, 3))
    assert soma.why(g, "dense") == (
        "`dense` runs each time: its weights may change at any time; `g.freeze()` makes them known"
    )

    g.freeze()
    g.forward(torch.ones(2, 3))
    assert soma.why(g, "dense") == "`dense` ran: first time, nothing of it is stored"


def test_changed_weights(tmp_path: Path) -> None:
    """Frozen weights are a part of the key, and told from settings."""
    torch = pytest.importorskip("torch")
    from tests.training.filters import Dense

    for seed in (1, 2):
        torch.manual_seed(seed)
        g = Graph.somatize(Dense(2), cache=tmp_path)
        g.materialize(torch.ones(2, 3)).freeze()
        g.forward(torch.ones(2, 3))

    assert soma.why(g, "dense") == "`dense` ran: its weights changed"


def test_a_node_that_has_not_run() -> None:
    """It says how to run it."""
    g = Graph.somatize(Plus())

    assert soma.why(g, "plus") == "`plus` has not run yet; `g.fit` and `g.forward` in eval run it"


def test_a_graph_without_a_cache() -> None:
    """It says how to get one."""
    g = Graph.somatize(Plus(), cache=None)

    assert soma.why(g, "plus") == (
        "`plus` runs each time: its graph has no cache; `Graph(cache=...)` gives it one"
    )


def test_an_unknown_node() -> None:
    """The nearest name is offered."""
    with pytest.raises(UnknownNode, match="Did you mean `plus`"):
        soma.why(Graph.somatize(Plus()), "plsu")
