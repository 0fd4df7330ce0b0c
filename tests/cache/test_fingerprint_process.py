"""One filter has one identity in every process: runs, seeds, scripts, tools, installs."""

import json
from pathlib import Path

import pytest

from tests.cache.fingerprints import FILTER, PROJECT, edited, run, write

TELL = """
import json
from soma.cache._fingerprint import identity
found = identity({make})
print(json.dumps([found.digest, dict(found.libraries), found.class_name]))
"""
FROM_MODULE = "import mod\n" + TELL.format(make="mod.F(k={'a': {1, 'b'}}, s={'x', 'y', 'z'})")
SCRIPT = FILTER.format("return x * 2")
AS_SCRIPT = (
    SCRIPT + 'if __name__ == "__main__":\n' + TELL.format(make="F()").replace("\n", "\n    ")
)


def tell(root: Path, *flags: str, **environment: str) -> list[object]:
    """Return digest, libraries and class name as a fresh Python tells them."""
    found: list[object] = json.loads(run(root, *flags, **environment))
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a script that tells about it."""
    return write(tmp_path, PROJECT | {"tell.py": FROM_MODULE, "script.py": AS_SCRIPT})


def test_hash_seeds_do_not_matter(root: Path) -> None:
    """Sets and dicts have one order, whatever the process."""
    first, *others = [tell(root, "tell.py", PYTHONHASHSEED=str(seed)) for seed in (0, 1, 2)]

    assert others == [first, first]


@pytest.mark.parametrize("flags", [("-O",), ("-OO",), ("-B",), ("-X", "dev"), ("-X", "importtime")])
def test_flags_do_not_matter(flags: tuple[str, ...], root: Path) -> None:
    """Where there is no `assert`, optimised code is the same code."""
    assert tell(root, *flags, "tell.py") == tell(root, "tell.py")


def test_an_assert_that_is_left_out_is_seen(root: Path) -> None:
    """Code that checks and code that does not are two."""
    text = SCRIPT.replace("return", "assert x\n        return")
    (root / "mod.py").write_text(text)

    assert tell(root, "-O", "tell.py")[0] != tell(root, "tell.py")[0]


def test_a_script_is_alike_from_run_to_run(root: Path) -> None:
    """A class in `__main__` has one identity, and that is the one it has when imported."""
    first, *others = [tell(root, "script.py", PYTHONHASHSEED=str(seed)) for seed in (3, 4, 5)]
    (root / "mod.py").write_text("from script import F")
    (root / "import.py").write_text("import mod\n" + TELL.format(make="mod.F()"))

    assert others == [first, first]
    assert tell(root, "-m", "script") == tell(root, "import.py") == first


def test_scripts_with_other_code_are_others(root: Path) -> None:
    """Two scripts may have classes of one name."""
    (root / "other.py").write_text(AS_SCRIPT.replace("x * 2", "x * 3"))
    (root / "folder").mkdir()
    (root / "folder/script.py").write_text(AS_SCRIPT.replace("x * 2", "x * 4"))
    runs = [tell(root, name)[0] for name in ("script.py", "other.py", "folder/script.py")]

    assert len(set(runs)) == 3


def test_code_without_a_file_is_code(root: Path) -> None:
    """What is typed in counts by its bytecode."""
    told = [tell(root, "-c", AS_SCRIPT.replace("* 2", by))[0] for by in ("* 2", "* 2", "* 3")]

    assert told[0] == told[1] != told[2]


TRACED = "import sys\nsys.settrace(lambda *args: None)\n" + FROM_MODULE
WARM = """
import mod
for _ in range(5000):
    mod.F().step(3); mod.F().forward([1])
"""


@pytest.mark.parametrize("before", [TRACED, WARM + FROM_MODULE, "import mod, deep\n" + FROM_MODULE])
def test_watched_and_warm_code_is_the_same(before: str, root: Path) -> None:
    """Tracing, specialised bytecode and modules that are loaded early change nothing."""
    (root / "watched.py").write_text(before)

    assert tell(root, "watched.py") == tell(root, "tell.py")


def test_coverage_does_not_matter(root: Path) -> None:
    """A filter under coverage is the same filter."""
    pytest.importorskip("coverage")

    assert tell(root, "-m", "coverage", "run", "tell.py") == tell(root, "tell.py")


def install(root: Path, *, version: str, body: str = "1", source: str | None = None) -> None:
    """Put a library where installed ones lie, inside the project."""
    place = root / "site-packages"
    info = place / "acme_tools-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (place / "acme.py").write_text(f"def f(v):\n    return {body}\n")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-tools\nVersion: {version}\n")
    (info / "RECORD").write_text("acme.py,,\nacme_tools-1.dist-info/METADATA,,\n")
    if source is not None:
        (info / "direct_url.json").write_text(source)
    text = SCRIPT.replace("x * 2", "acme.f(x)")
    (root / "mod.py").write_text(
        f"import sys\nsys.path.append({str(place)!r})\nimport acme\n{text}"
    )


def test_a_library_counts_by_its_version(root: Path) -> None:
    """Of a library that is reached the version is part of the identity, not the code."""
    told = []
    for version, body in [("1.0", "1"), ("1.0", "2"), ("1.1", "2")]:
        install(root, version=version, body=body)
        told.append(tell(root, "-B", "tell.py"))

    assert told[0] == told[1] != told[2]
    assert told[2][1] == told[0][1] | {"acme-tools": "1.1"}  # type: ignore[operator]


FOLDER = '{"url": "file:///home/me/acme", "dir_info": {"editable": true}}'
COMMIT = '{"url": "https://x", "vcs_info": {"vcs": "git", "commit_id": "%s"}}'


def test_a_folder_that_was_installed_is_own(root: Path) -> None:
    """Whoever works on a library sees edits of it, though its version stays."""
    told = []
    for body in ("1", "2"):
        install(root, version="1.0", body=body, source=FOLDER)
        told.append(tell(root, "-B", "tell.py"))

    assert told[0][0] != told[1][0]
    assert "acme-tools" not in told[0][1]  # type: ignore[operator]


def test_a_commit_is_a_version(root: Path) -> None:
    """A library that was installed from a repository counts by its commit too."""
    told = []
    for commit in ("a1", "b2"):
        install(root, version="1.0", source=COMMIT % commit)
        told.append(tell(root, "-B", "tell.py")[0])

    assert told[0] != told[1]


def test_files_among_libraries_that_nobody_installed_are_own(root: Path) -> None:
    """A file that no distribution brought has no version, so its code counts."""
    told = []
    for body in ("1", "2"):
        install(root, version="1.0", body=body)
        (root / "site-packages/acme_tools-1.dist-info/RECORD").write_text("")
        told.append(tell(root, "-B", "tell.py")[0])

    assert told[0] != told[1]


def test_other_folders_are_the_same_project(root: Path, tmp_path: Path) -> None:
    """Where a project lies is no part of the identity, edits of it are."""
    files = PROJECT | {"tell.py": FROM_MODULE}
    moved = write(tmp_path / "elsewhere", files)
    other = write(tmp_path, edited("deep.py", "14", "13") | {"tell.py": FROM_MODULE})

    assert tell(moved, "tell.py") == tell(root, "tell.py") != tell(other, "tell.py")
