"""Audits of loops that Accelerate moves to any device: `with audit_accelerated(accelerator):`."""

from typing import TYPE_CHECKING

from soma import _extras

if TYPE_CHECKING:
    from soma.integrations.accelerate._loop import audit_accelerated

__all__ = ["audit_accelerated"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'soma.integrations.accelerate' has no attribute {name!r}")
    file = "soma.integrations.accelerate._loop"
    return getattr(_extras.require(file, extra="accelerate"), name)
