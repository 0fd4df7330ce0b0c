"""Watches modules while they learn: tensors to plain numbers, which `soma.health` judges.

The path of a number, from a hook to a row of a run's record:

* `_modules.py`, `_graph.py`: what a user calls; `_spots.py`: which modules are watched.
* `_watch.py`: puts hooks on them, which call `_step/_recorder.py`.
* `_step/`: what happens in a step. `_measure/` and `_parameters/` take the numbers of tensors,
  `_origin/` looks where a number went bad.
* `_step/_settler.py`: puts the numbers of a step that has ended into `soma.health.Measurements`.
* `_audit.py`: asks `soma.health.judge` for a verdict; `_record.py` keeps the numbers on disk.

Beside it: `_processes/` for modules and ranks elsewhere, `_flow/` for what ran inside a module,
`preflight/` for checks before the first step.
"""

from soma.audit._audit import Audit
from soma.audit._flow._tracer import FlowTracer
from soma.audit._graph import audit_graph
from soma.audit._modules import audit_modules
from soma.audit._processes._outpost import Outpost
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
