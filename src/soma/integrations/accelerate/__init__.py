"""Audits of loops that Accelerate moves to any device: `with audit_accelerated(accelerator):`."""

from typing import TYPE_CHECKING

from soma import _extras

if TYPE_CHECKING:
    from soma.integrations.accelerate._loop import audit_accelerated

__all__ = ["audit_accelerated"]

__getattr__ = _extras.late(__name__, {"audit_accelerated": "_loop"}, extra="accelerate")
