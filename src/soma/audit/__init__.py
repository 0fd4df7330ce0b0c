"""Watches modules while they learn: tensors to plain numbers, which `soma.health` judges.

Start with `_modules.py` and `_graph.py` (what is watched), then `_recorder.py` (what happens in
a step) and `_settle.py` (what is kept of it). `_flow_tracer.py` finds what really flowed inside
a node's module, `preflight` looks before the first step.
"""

from soma.audit._audit import Audit
from soma.audit._flow_tracer import FlowTracer
from soma.audit._graph import audit_graph
from soma.audit._modules import audit_modules
from soma.audit._outpost import Outpost
from soma.audit._scope import AuditScope, ChannelConfig, InsideByNode

__all__ = [
    "Audit",
    "AuditScope",
    "ChannelConfig",
    "FlowTracer",
    "InsideByNode",
    "Outpost",
    "audit_graph",
    "audit_modules",
]
