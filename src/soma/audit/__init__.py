"""Looks into modules while they train, and touches nothing.

`_flow_tracer.py` finds what really flowed inside a node's module.
"""

from soma.audit._flow_tracer import FlowTracer

__all__ = ["FlowTracer"]
