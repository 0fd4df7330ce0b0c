"""What all tests share: one thread a library, no stopwatch for hypothesis, no GPU by force."""

import os

import pytest
from hypothesis import settings

# Torch and BLAS read this when they load. One thread keeps sums in one order, and two
# workers out of each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an empty cache of its own, where it asks for none in particular."""
    monkeypatch.setenv("SOMA_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `gpu` on a machine without one."""
    if item.get_closest_marker("gpu") and not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("needs a CUDA device")
