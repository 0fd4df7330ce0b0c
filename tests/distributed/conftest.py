"""Workers that the tests of a file share."""

from collections.abc import Iterator

import pytest

from soma.distributed import local_cluster


@pytest.fixture(scope="module")
def workers() -> Iterator[tuple[str, ...]]:
    """Have two workers on this machine."""
    with local_cluster(2, timeout=30) as names:
        yield names
