"""The settings of this process that change what torch computes: part of every key.

They belong to a process or to a thread, so they go along where another one takes a node's turn.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from soma._extras import loaded


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of which at least one differs from torch's defaults."""

    autocast: tuple[tuple[str, Any], ...]  # device and dtype, where it is on
    dtype: Any  # the default one
    precision: str  # of products of float32 matrices

    def __str__(self) -> str:
        changed = [f"autocast {device} {dtype}" for device, dtype in self.autocast]
        if str(self.dtype) != "torch.float32":
            changed.append(str(self.dtype))
        if self.precision != "highest":
            changed.append(self.precision)
        return ", ".join(changed)


def settings() -> Settings | None:
    """Return the settings of this thread; None if all are torch's defaults."""
    torch = loaded("torch")
    if torch is None:
        return None
    autocast = tuple(
        (device, torch.get_autocast_dtype(device))
        for device in ("cpu", "cuda")
        if torch.is_autocast_enabled(device)
    )
    dtype, precision = torch.get_default_dtype(), torch.get_float32_matmul_precision()
    if not autocast and dtype is torch.float32 and precision == "highest":
        return None
    return Settings(autocast, dtype, precision)


def ambient() -> str | None:
    """Return the settings that differ from torch's defaults, as text; None if none does."""
    found = settings()
    return None if found is None else str(found)


@contextmanager
def under(wanted: Settings | None) -> Iterator[None]:
    """Have settings of another thread or process hold inside."""
    torch = loaded("torch")
    if wanted is None or torch is None:
        yield
        return
    dtype, precision = torch.get_default_dtype(), torch.get_float32_matmul_precision()
    with ExitStack() as stack:
        for device, one in wanted.autocast:
            stack.enter_context(torch.autocast(device, dtype=one))
        # Only another process can differ in these, so no thread changes them for its siblings.
        if wanted.dtype != dtype:
            torch.set_default_dtype(wanted.dtype)
            stack.callback(torch.set_default_dtype, dtype)
        if wanted.precision != precision:
            torch.set_float32_matmul_precision(wanted.precision)
            stack.callback(torch.set_float32_matmul_precision, precision)
        yield
