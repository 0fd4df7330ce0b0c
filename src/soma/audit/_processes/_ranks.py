"""Brings together what each rank of a data-parallel training has measured, or goes on without.

Numbers go through the key-value store by which the ranks have found each other, and not by
collectives: a rank that never comes makes others wait for a limited time, and hang never.
`_over_ranks.py` makes one set of numbers of all.
"""

import zlib
from collections.abc import Mapping
from datetime import timedelta
from time import monotonic
from typing import Any

import msgspec
import torch.distributed as dist

from soma.audit._processes._over_ranks import over_ranks
from soma.errors import ModeError
from soma.health import Measurements, measurements_from_rows, measurements_to_rows

_PIECE = 1 << 20  # bytes of one value in the store, which takes no large ones
_MORE = 5.0  # seconds that the first rank has to put all together


def measured_by_all(mine: Measurements, timeout: float) -> Measurements:
    """Return the numbers of all ranks as one; every rank calls this as often as the others.

    The first rank waits for the others as long as `timeout`, and goes on without those that do
    not come; the others wait for it for a little more than twice that. Notes say who was missing.

    Args:
        mine: what this rank has measured.
        timeout: seconds.

    Raises:
        ModeError: this process is no rank, because `torch.distributed` was not initialised.
    """
    if not (dist.is_available() and dist.is_initialized()):
        raise ModeError(
            "numbers of all ranks were asked for, and this process is none: `torch.distributed` "
            "is not initialised. Call `torch.distributed.init_process_group()` first, as under "
            "`torchrun`, or take `audit.report()`."
        )
    rank, size, store = dist.get_rank(), dist.get_world_size(), _store()
    # Counted in the store, so that a second audit of this process finds its own numbers.
    turn = store.add(f"soma/audit/turns of {rank}", 1)
    place = f"soma/audit/{turn}"
    if rank:
        _put(store, f"{place}/{rank}", mine)
        found = _got(store, f"{place}/all", 2 * timeout + _MORE)
        if found is not None:
            return found
        mine.notes.append(
            f"rank 0 did not ask for the numbers of all ranks within {timeout:g} s; these are of "
            f"rank {rank} alone"
        )
        return mine
    ends = monotonic() + timeout
    came: dict[int, Measurements] = {0: mine}
    for other in range(1, size):
        one = _got(store, f"{place}/{other}", max(ends - monotonic(), 0.01))
        if one is not None:
            came[other] = one
    found = over_ranks(came)
    if missing := [str(one) for one in range(size) if one not in came]:
        found.notes.append(
            f"rank {', '.join(missing)} did not ask for the numbers of all ranks within "
            f"{timeout:g} s; these are of the others alone"
        )
    _put(store, f"{place}/all", found)
    return found


def _store() -> Any:
    # torch has no public way to it, and a store of our own would need an address of its own.
    return dist.distributed_c10d._get_default_store()


def _put(store: Any, key: str, measured: Measurements) -> None:
    rows = list(measurements_to_rows(measured))
    packed = zlib.compress(msgspec.msgpack.encode(rows), 1)
    pieces = [packed[at : at + _PIECE] for at in range(0, len(packed), _PIECE)]
    for at, piece in enumerate(pieces):
        store.set(f"{key}/{at}", piece)
    store.set(key, str(len(pieces)))  # last: who waits for it finds the rest


def _got(store: Any, key: str, timeout: float) -> Measurements | None:
    """Return what was put under a key; None: nobody did in time."""
    try:
        store.wait([key], timedelta(seconds=timeout))
    except RuntimeError:  # torch has no narrower one in all its stores
        return None
    pieces = [store.get(f"{key}/{at}") for at in range(int(store.get(key)))]
    rows: list[Mapping[str, object]] = msgspec.msgpack.decode(zlib.decompress(b"".join(pieces)))
    return measurements_from_rows(rows)
