"""Runs the checks one after the other, each on a copy, and puts their answers together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from soma.audit.preflight._check import Check
from soma.audit.preflight._depth import check_depth
from soma.audit.preflight._first_loss import check_first_loss
from soma.audit.preflight._leak import check_leak
from soma.audit.preflight._overfit import check_overfit
from soma.audit.preflight._reached import check_reached
from soma.audit.preflight._subject import Subject
from soma.draw import printable, wrapped
from soma.engine import generators_kept

CHECKS: dict[str, Callable[[Subject, object, object], Check]] = {
    "reached": check_reached,
    "first loss": check_first_loss,
    "depth": check_depth,
    "leak": check_leak,
    "overfit": check_overfit,
}

_WIDTH = 96


@dataclass(frozen=True, slots=True)
class Preflight:
    """What the checks say; `print` shows it.

    `checks` are in the order in which they ran, `is_ready` whether none of them warns.
    """

    name: str
    checks: tuple[Check, ...]

    @property
    def is_ready(self) -> bool:
        """Whether no check warns."""
        return all(check.outcome != "warning" for check in self.checks)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the lines, in a notebook, instead of the fields."""
        printer.text(str(self))

    def __str__(self) -> str:
        warnings = sum(check.outcome == "warning" for check in self.checks)
        head = "ready" if not warnings else f"{warnings} warning{'s' if warnings > 1 else ''}"
        lines = [f"preflight of `{printable(self.name)}`: {head}"]
        for check in self.checks:
            margin = f"  {check.outcome:<8} {check.name:<11} "
            told, *more = wrapped(printable(check.told), _WIDTH - len(margin)) or [""]
            lines.append(f"{margin}{told}")
            lines += (f"{'':{len(margin)}}{line}" for line in more)
            if check.help:
                first, *rest = wrapped(printable(check.help), _WIDTH - len(margin) - 8)
                lines.append(f"{'':{len(margin)}}= help: {first}")
                lines += (f"{'':{len(margin) + 8}}{line}" for line in rest)
        return "\n".join(lines)


def run_preflight(subject: Subject, x: object, y: object) -> Preflight:
    """Run every check on a copy of its own; a check that cannot be made says why."""
    found: list[Check] = []
    failed: dict[str, str] = {}
    for name, check in CHECKS.items():
        with generators_kept():
            try:
                found.append(check(subject.copy(), x, y))
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                first = failed.setdefault(reason, name)
                told = f"it failed: {reason}" if first == name else f"it failed as `{first}` did"
                found.append(Check(name=name, outcome="warning", told=told))
    return Preflight(subject.name, tuple(found))
