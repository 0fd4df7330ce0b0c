"""A file from a stranger is refused with one kind of error, quickly and in little memory."""

import io
import os
import struct
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soma import Graph
from soma.checkpoint import reading
from soma.errors import CheckpointError
from tests.checkpoint.filters import Center, Holds, Scale, edited, members, rewritten

ROOT = str(Path(__file__).parents[2])


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Return a bundle with members and inline values."""
    g = Graph.somatize(Scale() >> Center() >> Holds([1.5], a=np.arange(3_000)))
    g.fit([1.0, 2.0]).save(tmp_path / "g.soma", random=True, extra={"a": 1})
    return tmp_path / "g.soma"


def refusal(path: Path) -> str:
    """Return why a file is not loaded."""
    with pytest.raises(CheckpointError) as caught:
        Graph.load(path)
    assert f"`{path}`" in str(caught.value)
    return str(caught.value)


def test_a_file_cut_anywhere_is_refused(bundle: Path, tmp_path: Path) -> None:
    """At any cut there is one error that names file and reason."""
    data = bundle.read_bytes()
    cut = tmp_path / "cut"
    for size in {*range(0, len(data), len(data) // 150), *range(len(data) - 100, len(data))}:
        cut.write_bytes(data[:size])
        refusal(cut)


def test_a_flipped_bit_in_a_member_is_found(bundle: Path, tmp_path: Path) -> None:
    """Every byte of every member is checked."""
    data = bytearray(bundle.read_bytes())
    flipped = tmp_path / "flipped"
    with zipfile.ZipFile(bundle) as archive:
        infos = archive.infolist()
    for info in infos:
        place = info.header_offset + 30 + len(info.filename) + info.file_size // 2
        data[place] ^= 4
        flipped.write_bytes(data)
        refusal(flipped)
        data[place] ^= 4


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80\x04.", b"PK\x05\x06" + b"\0" * 18, b"PK" * 999, os.urandom(999), b"{}"],
    ids=["empty", "pickle", "empty zip", "no zip", "noise", "json"],
)
def test_a_foreign_file_is_refused(tmp_path: Path, data: bytes) -> None:
    """What is no bundle of soma is told apart from one."""
    (tmp_path / "foreign").write_bytes(data)

    assert refusal(tmp_path / "foreign")


def test_a_folder_or_a_pipe_is_no_bundle(tmp_path: Path) -> None:
    """Neither is read, since a pipe never ends."""
    os.mkfifo(tmp_path / "pipe")

    assert "is no file" in refusal(tmp_path)
    assert "is no file" in refusal(tmp_path / "pipe")


def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    """What is not there is the error everybody knows."""
    with pytest.raises(FileNotFoundError):
        Graph.load(tmp_path / "no.soma")


@pytest.mark.parametrize(
    ("number", "reason"),
    [(2, "of format 2, and this soma reads up to 1"), (999, "install a newer one"),
     ("1", "no format number"), (None, "no format number"), (True, "no format"), (0, "no format")],
)  # fmt: skip
def test_the_format_decides(bundle: Path, number: object, reason: str) -> None:
    """A newer format is refused, and so is none."""
    assert reason in refusal(edited(bundle, lambda m: m.update(format=number)))


def test_unknown_fields_are_no_harm(bundle: Path) -> None:
    """Fields and members that a later soma of this format adds are passed over."""

    def change(found: dict[str, bytes]) -> None:
        found["later"] = b"!"

    other = edited(rewritten(bundle, change), lambda m: m.update(later=[1], license="x"))

    assert Graph.load(other).filter_ids() == ["scale", "center", "holds"]


@pytest.mark.parametrize("member", ["n/0001.state", "n/0002.arguments", "manifest.json", "random"])
def test_a_missing_member_is_named(bundle: Path, member: str) -> None:
    """A node without its state is no node with a fresh one."""
    assert member in refusal(rewritten(bundle, lambda found: found.pop(member)))


NAMES = [
    "../up", "n/../../up", "/absolute", "C:/drive", "c:drive", "back\\slash", "a//b", "./a", "n/",
    "MANIFEST.json", "N/0001.STATE",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_that_lead_elsewhere_or_clash_are_refused(bundle: Path, name: str) -> None:
    """A name of a member is no path and stands once, whatever the case."""
    assert "member" in refusal(rewritten(bundle, lambda found: found.update({name: b"x"})))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice_is_refused(bundle: Path) -> None:
    """Two members of one name would let two readers see two files."""
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr("manifest.json", b"{}")

    assert "is there twice" in refusal(bundle)


def test_a_name_with_a_nul_is_refused(bundle: Path) -> None:
    """What another reader would cut at the NUL is a name of no bundle."""
    other = rewritten(bundle, lambda found: found.update({"aXb": b"x"}))
    other.write_bytes(other.read_bytes().replace(b"aXb", b"a\0b"))

    assert "name of no bundle" in refusal(other)


CHANGES: dict[str, Any] = {
    "nested": lambda m: m.update(nodes=nested(5_000)),
    "nodes": lambda m: m.update(nodes=3),
    "same id": lambda m: m["nodes"].append(m["nodes"][0]),
    "bad id": lambda m: m["nodes"][0].update(id="a/b\x1b"),
    "no id": lambda m: m["nodes"][0].pop("id"),
    "group": lambda m: m.update(groups={"x": [["no"], []]}),
    "group like a node": lambda m: m.update(groups={"scale": [["center"], ["center"]]}),
    "links": lambda m: m.update(links=[["a"]]),
    "member twice": lambda m: [one.update(state={"member": "n/0001.state"}) for one in m["nodes"]],
    "member elsewhere": lambda m: m["nodes"][0].update(state={"member": "/etc/passwd"}),
    "no value": lambda m: m["nodes"][0].update(state={}),
    "wrong value": lambda m: m["nodes"][0].update(arguments={"inline": "{}"}),
    "deep value": lambda m: m["nodes"][0].update(state={"inline": "[" * 100_000}),
    "value as arguments": lambda m: m["nodes"][0].update(arguments=m["extra"]),
    "seed": lambda m: m.update(seed="x"),
    "weights": lambda m: m["nodes"][0].update(weights={"": {"weights": {}}}),
    "training": lambda m: m.update(training={"optimizers": {"x": 3}}),
    "random": lambda m: m.update(random=m["extra"]),
}


def nested(depth: int) -> list[Any]:
    """Return a list in a list, and so on."""
    found: list[Any] = []
    for _ in range(depth // 50):
        found = [found]
    return found


@pytest.mark.parametrize("name", CHANGES)
def test_a_manifest_that_says_something_else_is_refused(bundle: Path, name: str) -> None:
    """Whatever a manifest is changed to, there is one kind of error."""
    assert refusal(edited(bundle, CHANGES[name]))


def test_deep_json_is_refused(bundle: Path) -> None:
    """Fifty thousand brackets do not end the process."""
    deep = b'{"format":1,"nodes":' + b"[" * 50_000

    assert refusal(rewritten(bundle, lambda found: found.update({"manifest.json": deep})))


def many(path: Path) -> None:
    """Write more members than there may be."""
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(10_001):
            archive.writestr(f"n/{number}", b"")


def listed(path: Path) -> None:
    """Write a list of members that is far too long: two million entries."""
    entry = struct.pack(
        "<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0
    )
    directory = (entry + b"a") * 2_000_000
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(directory), 0, 0)
    path.write_bytes(directory + end)


def bomb(path: Path) -> None:
    """Write a manifest that unpacks to 300 MB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b"[" + b"0," * (150 << 20))


def lying(path: Path) -> None:
    """Write the same, with a size declared that is small."""
    bomb(path)
    data = path.read_bytes()
    true = struct.pack("<L", (300 << 20) + 1)
    path.write_bytes(data.replace(true, struct.pack("<L", 900)))


def overlapping(path: Path) -> None:
    """Write many members that all unpack the same 60 MB."""
    one = io.BytesIO()
    with zipfile.ZipFile(one, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(60 << 20))
        info = archive.getinfo("a")
    with zipfile.ZipFile(path, "w") as archive:
        archive.fp.write(one.getvalue()[: info.compress_size + 31])
        for number in range(500):
            other = zipfile.ZipInfo(f"{number:04}")
            other.CRC, other.compress_type = info.CRC, info.compress_type
            other.file_size, other.compress_size = info.file_size, info.compress_size
            other.header_offset = 0
            archive.filelist.append(other)
            archive.NameToInfo[other.filename] = other
        archive._didModify, archive.start_dir = True, archive.fp.tell()


LIMITED = """
import resource, sys
from soma import Graph
import soma.integrations
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
space = 1024 * before + (1 << 30)
resource.setrlimit(resource.RLIMIT_AS, (space, space))
try:
    Graph.load(sys.argv[1])
except Exception as error:
    print(type(error).__name__, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.process
@pytest.mark.parametrize("write", [many, listed, bomb, lying, overlapping])
def test_a_bomb_is_refused_in_little_memory(tmp_path: Path, write: Any) -> None:
    """Sizes are checked before anything is unpacked, and again while it is."""
    write(tmp_path / "bomb")
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, "bomb"],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    name, megabytes = run.stdout.split()

    assert name == "CheckpointError"
    assert int(megabytes) < 100


MUTATING = """
import random, resource, sys, warnings
from collections import Counter
from pathlib import Path
from soma import Graph
from tests.checkpoint.filters import members, rewritten
path, chance, seen = Path("g.soma"), random.Random(0), Counter()
found = members(path)
Graph.load(path)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
space = 1024 * before + (1 << 30)
resource.setrlimit(resource.RLIMIT_AS, (space, space))
warnings.simplefilter("ignore")
for _ in range(400):
    name = chance.choice(["manifest.json", *found])
    text = bytearray(found[name])
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(text))
        text[place : place + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
    try:
        Graph.load(rewritten(path, lambda all: all.update({name: bytes(text)})), strict=False)
        seen["loaded"] += 1
    except Exception as error:
        seen[type(error).__name__] += 1
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10, *sorted(seen))
"""


@pytest.mark.slow
@pytest.mark.process
def test_damage_takes_little_memory(bundle: Path) -> None:
    """Hundreds of damaged bundles are refused, or loaded, within a limit on memory."""
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {ROOT!r}); {MUTATING.strip()}"],
        cwd=bundle.parent, capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    megabytes, *outcomes = run.stdout.split()

    assert outcomes == ["CheckpointError", "loaded"]
    assert int(megabytes) < 200


def test_sizes_are_checked_before_reading(tmp_path: Path) -> None:
    """The reasons are told apart."""
    for write, reason in ((many, "more than 10,000"), (bomb, "far more than its own size")):
        write(tmp_path / write.__name__)

        assert reason in refusal(tmp_path / write.__name__)


def test_a_large_bundle_of_zeros_is_no_bomb(tmp_path: Path) -> None:
    """What was saved is loaded, also after another tool has packed it tight."""
    Graph.somatize(Holds(np.zeros(4_000_000))).save(tmp_path / "g.soma")
    packed = rewritten(tmp_path / "g.soma", lambda found: None)

    assert packed.stat().st_size < 200_000
    assert Graph.load(packed).filter("holds").values[0].nbytes == 32_000_000


@pytest.mark.filterwarnings("ignore::soma.errors.CheckpointWarning")
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_mutated_bundle_loads_or_is_refused(bundle: Path, data: st.DataObject) -> None:
    """Bytes of a real bundle, changed anywhere, never give another error."""
    found = members(bundle)
    name = data.draw(st.sampled_from(sorted(found)))
    text = bytearray(found[name])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        size = data.draw(st.integers(0, 8))
        text[place : place + size] = data.draw(st.binary(max_size=8))
    other = rewritten(bundle, lambda found: found.update({name: bytes(text)}))
    with suppress(CheckpointError):
        Graph.load(other, strict=data.draw(st.booleans()))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_mutated_file_reads_or_is_refused(bundle: Path, data: st.DataObject) -> None:
    """The same for the bytes of the zip file itself, its list of members above all."""
    text = bytearray(bundle.read_bytes())
    start = data.draw(st.sampled_from([0, text.index(b"PK\1\2"), len(text) - 22]))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(start, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    other = bundle.with_name("mutated")
    other.write_bytes(text)
    with suppress(CheckpointError):
        Graph.load(other)


def test_an_error_of_the_caller_stays_his(bundle: Path) -> None:
    """Ctrl-C while loading is no damaged file."""
    with pytest.raises(KeyboardInterrupt), reading(bundle):
        raise KeyboardInterrupt
