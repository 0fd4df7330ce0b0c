"""Fitted estimators are stored without pickle, come back bit for bit, and name nothing new."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

import soma
from soma.cache._codec import Undecodable, Unencodable, decode_blob, decode_inline, encode
from soma.cache._digest import digest
from soma.cache._parts import Stored
from soma.cache.adapters import _sklearn
from tests.integrations import estimators
from tests.integrations.estimators import KEPT_IN_MEMORY, STORED, Centre, X, Y

ROOT = Path(__file__).parents[2]


def fresh(name: str, folder: Path, seed: str) -> list[str]:
    """Fit in another process; return the output, the state, what became of it, and pickle."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", estimators.__name__, name, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ
        | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def back(value: object) -> Any:
    """Write a value and read it back."""
    encoded = encode(value)
    if encoded.inline is not None:
        return decode_inline(encoded.inline)
    assert encoded.blob is not None
    return decode_blob(memoryview(b"".join(encoded.blob)), copy=True)


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("name", STORED)
def test_a_second_process_does_not_fit_again(name: str, tmp_path: Path) -> None:
    """Another process finds what was learned, gives the same, and no pickle is read."""
    first, second = fresh(name, tmp_path, "1"), fresh(name, tmp_path, "2")

    assert "first time" in first[2]
    assert "did not run" in second[2]
    assert first[:2] == second[:2]
    assert first[3] == second[3] == "[]"


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("name", [*STORED, *KEPT_IN_MEMORY])
def test_the_digest_is_the_same_in_every_process(name: str, tmp_path: Path) -> None:
    """What is learned anew elsewhere has the same digest."""
    first, second = fresh(name, tmp_path / "1", "1"), fresh(name, tmp_path / "2", "2")

    assert first[:2] == second[:2]


@pytest.mark.parametrize("name", STORED)
def test_it_comes_back_as_it_was(name: str) -> None:
    """A fitted estimator read back has the digest and the answers of the one that was written."""
    make, data = STORED[name]
    fitted = make().fit(data, Y)
    read = back(fitted)
    method = soma.sk(make()).method

    assert type(read) is type(fitted)
    assert digest(read) == digest(fitted)
    assert digest(getattr(read, method)(data)) == digest(getattr(fitted, method)(data))


def test_one_number_makes_another_digest() -> None:
    """Equal estimators have one digest, and any other has another."""
    told = digest(StandardScaler().fit(X))

    assert digest(StandardScaler().fit(X.copy())) == told
    assert digest(StandardScaler().fit(X * 2)) != told


def test_a_used_vectoriser_has_the_digest_of_a_new_one() -> None:
    """The address that it notes while it runs is no part of it."""
    fitted = TfidfVectorizer().fit(["one two"])
    before = digest(fitted)
    fitted.transform(["one"])

    assert digest(fitted) == before


def test_trees_have_a_digest_and_stay_in_memory(tmp_path: Path) -> None:
    """What skops holds for unsafe is learned each time, says so, and is a key all the same."""
    make, data = KEPT_IN_MEMORY["RandomForestClassifier"]
    told = []
    for _ in range(2):
        g = soma.Graph.somatize(soma.sk(make()), cache=tmp_path).fit(data, Y)
        told.append(soma.why(g, "random_forest_classifier"))

    assert all("does not hold `sklearn.tree._tree.Tree` for safe" in text for text in told)
    g.forward(data)
    assert "did not run" in soma.why(g, "random_forest_classifier")


def test_own_estimators_stay_in_memory_and_say_so() -> None:
    """A file never names a class of the user's own."""
    with pytest.raises(Unencodable, match=r"does not hold `.*Centre` for safe"):
        encode(Centre().fit(X))


@pytest.mark.parametrize("parameter", [{1: "a", "1": "b"}, {False: 1}, {None: 1}])
def test_what_skops_would_change_is_refused(parameter: object) -> None:
    """A state that skops writes and gives back as another is not written."""
    with pytest.raises(Unencodable, match="skops"):
        encode(StandardScaler(copy=parameter))


def test_what_skops_cannot_write_is_refused() -> None:
    """A state that has no form at all says what skops says."""
    with pytest.raises(Unencodable, match="skops cannot store"):
        encode(StandardScaler(copy=(one for one in "ab")))


def test_a_damaged_blob_fits_again(tmp_path: Path) -> None:
    """A file that was overwritten is a miss: the answer is computed, and is the same."""
    fitted = soma.Graph.somatize(soma.sk(StandardScaler()), cache=tmp_path).fit(X)
    expected = fitted.forward(X)
    blobs = [file for file in tmp_path.rglob("*") if file.is_file() and file.suffix != ".json"]
    for file in blobs:
        file.write_bytes(file.read_bytes()[:-9] + b"\0" * 9)

    again = subprocess.run(
        [sys.executable, "-c", AGAIN, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
    )
    assert again.stdout.strip() == digest(expected)


AGAIN = """
import sys, soma
from sklearn.preprocessing import StandardScaler
from tests.integrations.estimators import X
g = soma.Graph.somatize(soma.sk(StandardScaler()), cache=sys.argv[1]).fit(X)
print(soma.cache.digest(g.forward(X)))
"""


def rebuilt(change: Any) -> object:
    """Read back a scaler whose description was changed by hand."""
    description, *files = _sklearn._pack(StandardScaler().fit(X))
    whole = json.loads(description)
    change(whole)
    stored = Stored([json.dumps(whole).encode(), *files], (), None, (), True)
    return _sklearn._build_estimator(stored)


def other(**parts: object) -> Any:
    """Return a change that describes another object in place of `mean_`."""
    return lambda whole: whole["content"]["content"].update(mean_={"__id__": 99, **parts})


ARGUMENTS = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode"}
HOSTILE = {
    "a class": other(__class__="Trap", __module__="soma_trap", __loader__="ObjectNode"),
    "a module": lambda whole: whole.update(__module__="soma_trap"),
    "a function": other(__class__="system", __module__="os", __loader__="FunctionNode"),
    "a builtin": other(__class__="eval", __module__="builtins", __loader__="FunctionNode"),
    "a type": other(__class__="Popen", __module__="subprocess", __loader__="TypeNode"),
    "a call": other(
        __class__="system",
        __module__="os",
        __loader__="ConstructorFromReduceNode",
        content={**ARGUMENTS, "content": []},
    ),
    "a dtype that is none": other(__class__="dtype", __module__="numpy", __loader__="ObjectNode"),
    "a function of NumPy": other(__class__="load", __module__="numpy", __loader__="FunctionNode"),
    "another loader": other(__class__="x", __module__="numpy", __loader__="Nothing"),
    "no estimator": lambda whole: whole.update(whole.pop("content")),
    "a file that is not there": lambda whole: whole["content"]["content"]["mean_"].update(file="9"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_descriptions_are_misses(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that names anything else is refused, and nothing that it names is imported."""
    (tmp_path / "soma_trap.py").write_text("class Trap: pass")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Exception, match=r".+"):
        rebuilt(HOSTILE[what])

    assert "soma_trap" not in sys.modules


def test_a_hostile_text_is_no_value() -> None:
    """What stands in a store is judged in the same way."""
    encoded = encode(StandardScaler())
    assert encoded.inline is not None
    document = msgspec.json.decode(encoded.inline)
    text = msgspec.json.encode(document).decode()
    blocks = [msgspec.json.decode(f'"{one}"', type=bytes) for one in document["blocks"]]
    changed = blocks[0].replace(b"sklearn.preprocessing._data", b"soma_trap")
    document["blocks"][0] = msgspec.json.decode(msgspec.json.encode(changed))

    assert decode_inline(text.encode())
    with pytest.raises(Undecodable, match="soma_trap"):
        decode_inline(msgspec.json.encode(document))
