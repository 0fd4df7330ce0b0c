"""The head of a report of several runs: what they are together, and what is the same in all."""

from collections import Counter

from markupsafe import Markup

from soma.draw import counted, shortened
from soma.viz._when import moment
from soma.viz.report._fill import fill
from soma.viz.report._head import Tile, told
from soma.viz.report.several._facts import RunsFacts

_INKS = {"completed": "good", "running": "accent", "interrupted": "warning"}
_MOST_SAME = 60  # params
_MOST_VALUE = 300  # columns


def title(facts: RunsFacts) -> str:
    """Return what the runs are called together: the first tag that all have, else how many."""
    if not facts.runs:
        return "no runs"
    shared = set.intersection(*(set(run.manifest.tags) for run in facts.runs))
    first = next((tag for tag in facts.runs[0].manifest.tags if tag in shared), None)
    return first or counted(len(facts.runs), "run")


def head(facts: RunsFacts) -> Markup:
    """Return the head of the page."""
    kinds = list(dict.fromkeys(run.manifest.kind for run in facts.runs if run.readable))
    began = [run.manifest.created_at for run in facts.runs if run.readable]
    return fill(
        "several_head.jinja",
        title=title(facts),
        kind=f"{kinds[0]} runs" if len(kinds) == 1 else "runs",
        began=dict.fromkeys(moment(at) for at in (min(began), max(began))) if began else {},
        tiles=_tiles(facts),
        params={
            name: shortened(told(value), _MOST_VALUE)
            for name, value in [*facts.same.items()][:_MOST_SAME]
        },
        more_params=max(0, len(facts.same) - _MOST_SAME),
    )


def _tiles(facts: RunsFacts) -> list[Tile]:
    states = Counter(run.standing.state for run in facts.runs)
    tiles = [Tile("runs", f"{len(facts.runs):,}")]
    tiles += [Tile(state, f"{count:,}", _INKS.get(state, "bad")) for state, count in states.items()]
    sick = sum(bool(run.health.faults) for run in facts.runs)
    if any(run.health.word != "no audit" for run in facts.runs):
        tiles.append(Tile("with findings", f"{sick:,}", "warning" if sick else "good"))
    if facts.goal is not None and facts.runs:
        best = facts.best(facts.runs[0], facts.goal.metric)
        if best is not None:
            tiles.append(Tile(f"best {facts.goal.metric}", f"{best:.5g}"))
    return tiles
