"""Audits of what Lightning trains: `Trainer(callbacks=[AuditCallback()])`."""

from typing import TYPE_CHECKING

from soma import _extras

if TYPE_CHECKING:
    from soma.integrations.lightning._callback import AuditCallback

__all__ = ["AuditCallback"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'soma.integrations.lightning' has no attribute {name!r}")
    file = "soma.integrations.lightning._callback"
    return getattr(_extras.require(file, extra="lightning"), name)
