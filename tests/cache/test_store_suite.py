"""The shared suite, on the stores that need nothing but this machine."""

from pathlib import Path

import pytest

from soma.cache._file_store import FileStore
from soma.cache._memory_store import MemoryStore
from soma.testing._store_suite import StoreSuite


class TestMemory(StoreSuite):
    """Memory is a store."""

    @pytest.fixture
    def store(self) -> MemoryStore:
        """Give an empty store."""
        return MemoryStore()


class TestFiles(StoreSuite):
    """A folder is a store."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> FileStore:
        """Give an empty store."""
        return FileStore(tmp_path / "cache")


class TestCappedFiles(StoreSuite):
    """A folder with a cap is a store."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> FileStore:
        """Give an empty store."""
        return FileStore(tmp_path / "cache", max_size=100_000)
