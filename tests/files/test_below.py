"""From a name to a path: never out of the folder."""

from pathlib import Path

import pytest

from soma.files import below


@pytest.mark.parametrize("name", ["a", "a/b", "a/../b", "é✓", "...", "20260101-000000-abcd"])
def test_names_inside_are_paths(tmp_path: Path, name: str) -> None:
    """Whether anything is there or not."""
    assert below(tmp_path, name) == (tmp_path / name).resolve()


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../x", "a/../..", "a/../../x", "/etc/passwd", "//x", "a\0b"),
        *("x" * 256, "é" * 128, "C:", "C:x", "C:\\x", "nul", "COM1.txt", "a/con", "\ud800"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    """Up, absolute, the folder itself, NUL, drives, devices, too long."""
    with pytest.raises(ValueError, match=r"name|leads|surrogates"):
        below(tmp_path, name)


def test_links_are_followed_before_judging(tmp_path: Path) -> None:
    """A link out of the folder is refused, one inside is not, nor is a circle waited for."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "in").symlink_to(root / "there")
    (root / "round").symlink_to(root / "round")

    assert below(root, "in") == root / "there"
    for name in ("out", "out/x", "round/x"):
        with pytest.raises(ValueError, match="root"):
            below(root, name)
