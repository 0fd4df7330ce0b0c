"""Where in the running code a torch function was called from."""

import sys
from collections.abc import Iterator
from types import FrameType

from torch.autograd.function import Function

# The same line of code has the same site in every call, which tells loops and branches apart.
Site = tuple[str, int, int]

# Where torch's own Python stands between the user's line and the function that is called.
_BETWEEN = frozenset(
    {
        "torch._jit_internal",
        "torch._tensor",
        "torch.functional",
        "torch.nn.functional",
        "torch.overrides",
    }
)
_APPLY = Function.apply.__func__.__code__  # type: ignore[attr-defined]


def site() -> Site:
    """Return the place in the code that called the function which runs now."""
    for frame in _frames():
        name = frame.f_globals.get("__name__", "")
        if name not in _BETWEEN and not name.startswith("soma.audit._flow"):
            code = frame.f_code
            return code.co_filename, code.co_firstlineno, frame.f_lasti
    return "", 0, 0


def in_autograd_function() -> bool:
    """Whether an `autograd.Function` runs: gradients are off inside, and pass all the same."""
    return any(frame.f_code is _APPLY for frame in _frames())


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
