"""What the compiler found, as it prints it."""

from typing import NamedTuple

from soma.core import Diagnostic
from soma.draw import counted
from soma.viz.report._facts import Facts
from soma.viz.report._fill import fill
from soma.viz.report._section import Section

_SIGNS = {"error": "✕", "warning": "▲", "note": "i"}
_INKS = {"error": "bad", "warning": "warning", "note": "accent"}


class Finding(NamedTuple):
    """One diagnostic: its first words, and the lines below."""

    sign: str
    ink: str
    head: str
    message: str
    lines: str


def diagnostics_section(facts: Facts) -> Section | None:
    """Return the findings, also that there is none; None where there is no graph to judge."""
    if facts.graph is None and not facts.diagnostics:
        return None
    found = facts.diagnostics
    return Section(
        key="diagnostics",
        title="Diagnostics",
        count=counted(len(found), "finding") if found else "",
        body=fill("diagnostics.jinja", findings=[finding(one) for one in found]),
    )


def finding(diagnostic: Diagnostic) -> Finding:
    """Return a diagnostic as the page shows it, also one of health."""
    first, _, rest = str(diagnostic).partition("\n")
    head, _, message = first.partition(": ")
    level = diagnostic.level
    return Finding(_SIGNS[level], _INKS[level], head, message, rest)
