"""The context of torch's distributed autograd: a thread has one at a time, whoever opened it."""

import threading
from contextlib import suppress

import torch.distributed.autograd as dist_autograd

from soma.errors import ModeError


class _Open(threading.local):
    """The context that a thread has open, and who opened it."""

    context: dist_autograd.context | None = None
    owner: object = None


_OPEN = _Open()


def open_for(owner: object) -> int:
    """Open a context and return its number; the one that this thread had is over.

    Raises:
        ModeError: the program itself has one open.
    """
    close()
    context = dist_autograd.context()
    try:
        number: int = context.__enter__()
    except RuntimeError as error:
        raise ModeError(
            "a training step of a graph on workers needs torch's distributed autograd, and this "
            f"thread has a context of it open already ({error}). Close that first."
        ) from error
    _OPEN.context, _OPEN.owner = context, owner
    return number


def is_open(owner: object) -> bool:
    """Whether the open context was opened for `owner`."""
    return _OPEN.context is not None and _OPEN.owner is owner


def close() -> None:
    """Close the context that this thread has open, with the gradients in it."""
    context, _OPEN.context, _OPEN.owner = _OPEN.context, None, None
    if context is not None:
        with suppress(RuntimeError):  # the group it was of has been left
            context.__exit__(None, None, None)
