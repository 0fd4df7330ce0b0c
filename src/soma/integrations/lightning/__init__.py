"""Audits of what Lightning trains: `Trainer(callbacks=[AuditCallback()])`."""

from typing import TYPE_CHECKING

from soma import _extras

if TYPE_CHECKING:
    from soma.integrations.lightning._callback import AuditCallback

__all__ = ["AuditCallback"]

__getattr__ = _extras.late(__name__, {"AuditCallback": "_callback"}, extra="lightning")
