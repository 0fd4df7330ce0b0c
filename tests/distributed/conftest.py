"""Workers that the tests of a file share."""

from collections.abc import Iterator

import pytest

from soma.distributed import connect, local_cluster
from soma.distributed._current import current_connection

SECONDS = 30


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[str, ...]]:
    """Have two workers on this machine."""
    with local_cluster(2, timeout=SECONDS) as names:
        yield names


@pytest.fixture
def workers(cluster: tuple[str, ...]) -> tuple[str, ...]:
    """Be connected to both workers, whatever a test before has done to the connection."""
    present = current_connection()
    if present is None or present.names != cluster or present.lost is not None:
        connect(*cluster, timeout=SECONDS)
    return cluster
