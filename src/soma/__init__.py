"""Compose preprocessing and PyTorch modules into one graph; fit it, cache it, train it.

Start with `Filter` and `Graph`; `DifferentiableFilter` is a filter with a torch module
inside. Everything is loaded when it is first used, so `import soma` brings no torch.
"""

from typing import TYPE_CHECKING

from soma import _extras, errors
from soma.core import Filter, FilterKind, FilterMeta, Inputs, StreamMode

if TYPE_CHECKING:
    from soma import cache, distributed, flow
    from soma.audit import AuditScope, ChannelConfig, audit_modules
    from soma.compiler import CompileMode, Compiler, ExecutionPlan
    from soma.core import Diagnostic, apply_params, search, search_space
    from soma.engine import why
    from soma.flow import Flow
    from soma.graph import Graph, preflight
    from soma.health import explain
    from soma.integrations import as_estimator, sk
    from soma.tracking import track_run
    from soma.training import DifferentiableFilter
    from soma.viz import RunView, runs

__version__ = "0.1.0"

_LATE = {
    "AuditScope": "soma.audit",
    "ChannelConfig": "soma.audit",
    "CompileMode": "soma.compiler",
    "Compiler": "soma.compiler",
    "Diagnostic": "soma.core",
    "DifferentiableFilter": "soma.training",
    "ExecutionPlan": "soma.compiler",
    "Flow": "soma.flow",
    "Graph": "soma.graph",
    "apply_params": "soma.core",
    "audit_modules": "soma.audit",
    "explain": "soma.health",
    "as_estimator": "soma.integrations",
    "preflight": "soma.graph",
    "RunView": "soma.viz",
    "runs": "soma.viz",
    "search": "soma.core",
    "search_space": "soma.core",
    "sk": "soma.integrations",
    "track_run": "soma.tracking",
    "why": "soma.engine",
}

__all__ = [
    "AuditScope",
    "ChannelConfig",
    "CompileMode",
    "Compiler",
    "Diagnostic",
    "DifferentiableFilter",
    "ExecutionPlan",
    "Filter",
    "FilterKind",
    "FilterMeta",
    "Flow",
    "Graph",
    "Inputs",
    "RunView",
    "StreamMode",
    "apply_params",
    "as_estimator",
    "audit_modules",
    "cache",
    "distributed",
    "errors",
    "explain",
    "flow",
    "preflight",
    "runs",
    "search",
    "search_space",
    "sk",
    "track_run",
    "why",
]


_attribute = _extras.late(__name__, _LATE, extra="torch")


def __getattr__(name: str) -> object:
    if name in ("cache", "distributed", "flow"):
        return _extras.require(f"soma.{name}", extra="all")
    return _attribute(name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
