"""The head of a report: what the run was, how it stands, and its numbers at a glance."""

import json
from typing import Any, NamedTuple

from markupsafe import Markup

from soma.draw import shortened
from soma.viz._durations import duration
from soma.viz._node_timings import steps_timed
from soma.viz._usage import flow_usage
from soma.viz._when import moment
from soma.viz.figures import faults_of
from soma.viz.report._facts import Facts
from soma.viz.report._fill import fill

_MOST_TAGS = 24
_MOST_PARAMS = 200
_MOST_VALUE = 300  # characters
_SAID = {
    "running": "The run was going on when this report was made; later ones hold more.",
    "failed": "The run ended with an error.",
    "interrupted": "The run was interrupted.",
    "crashed": "The process ended without saying how. What it had written until then is below.",
    "unreadable": "The run cannot be read. What could be is below.",
}


class Tile(NamedTuple):
    """A number of a run, and what it counts."""

    name: str
    value: str
    ink: str = "text"


def head(facts: Facts) -> Markup:
    """Return the head of the page."""
    manifest, standing = facts.manifest, facts.standing
    return fill(
        "head.jinja",
        name=manifest.name,
        state=standing.state,
        said=_said(facts),
        error=standing.error,
        kind=manifest.kind,
        tags=manifest.tags[:_MOST_TAGS],
        more_tags=max(0, len(manifest.tags) - _MOST_TAGS),
        id=facts.id,
        started=moment(manifest.created_at),
        length="" if facts.length is None else duration(facts.length),
        params={
            name: shortened(told(value), _MOST_VALUE)
            for name, value in [*manifest.params.items()][:_MOST_PARAMS]
        },
        more_params=max(0, len(manifest.params) - _MOST_PARAMS),
        tiles=tiles(facts),
    )


def _said(facts: Facts) -> str:
    waits = any(entry.outcome == "open" for entry in facts.told.entries)
    if waits and facts.standing.state == "interrupted":
        return "The run stands still until a person answers."
    return _SAID.get(facts.standing.state, "")


def tiles(facts: Facts) -> list[Tile]:
    """Return the numbers at a glance; those of the nodes only where any ran."""
    found = []
    flow = flow_usage(facts.usage)
    if facts.turns:
        found.append(Tile("node time", duration(sum(turn.seconds for turn in facts.turns))))
    if flow is not None:
        found += [Tile(name, value) for name, value in flow.told().items()]
    elif facts.turns:
        found += [
            Tile("turns", f"{len(facts.turns):,}"),
            Tile("cache hits", f"{sum(one.hits for one in facts.activity.values()):,}"),
            Tile("cache misses", f"{sum(one.misses for one in facts.activity.values()):,}"),
        ]
    if facts.turns:
        failures = sum(turn.failed for turn in facts.turns)
        found.append(Tile("failures", f"{failures:,}", "bad" if failures else "text"))
    if facts.verdict is not None:
        wrong = len(faults_of(facts.verdict))
        found.append(Tile("health findings", f"{wrong:,}", "warning" if wrong else "good"))
    if facts.happened["step"]:
        steps, timed = facts.happened["step"], steps_timed(facts.turns)
        found.append(Tile("steps", f"{steps:,}"))
        if timed < steps:
            found.append(Tile("steps timed", f"{timed:,}"))
    logged = sum(curve.logged for group in facts.drawn.groups for curve in group.curves)
    if logged:
        found.append(Tile("points logged", f"{logged:,}"))
    return found


def told(value: Any) -> str:
    """Return a param as a page shows it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
