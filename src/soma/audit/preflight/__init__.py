"""Looks at a model before its first step: five checks on copies, in a second or so.

`_check.py` is what a check says, `_subject.py` what is checked; each check is a file of its own.
`_preflight.py` runs them all.
"""

from soma.audit.preflight._check import Check, Outcome
from soma.audit.preflight._preflight import Preflight, run_preflight
from soma.audit.preflight._subject import ModuleSubject, Subject, computed_by_hooks

__all__ = [
    "Check",
    "ModuleSubject",
    "Outcome",
    "Preflight",
    "Subject",
    "computed_by_hooks",
    "run_preflight",
]
