"""The card that a notebook shows for a run."""

from collections.abc import Mapping
from typing import NamedTuple

from soma.core import NodeId
from soma.draw import printable
from soma.tracking import RunRecord
from soma.viz._durations import duration
from soma.viz._graph_picture import NodeNote, graph_svg
from soma.viz._templates import drawn, filled
from soma.viz._usage import LOGGED, FlowUsage, recorded_usage
from soma.viz._when import length, moment

_MOST_METRICS = 8
_MOST_TAGS = 12


class Tile(NamedTuple):
    """A number of a run, and what it counts."""

    name: str
    value: str


class Last(NamedTuple):
    """The last point of a metric."""

    name: str
    value: str
    step: str


def card_html(record: RunRecord, notes: Mapping[NodeId, NodeNote]) -> str:
    """Return a run as a piece of HTML without script."""
    graph, manifest, standing = record.graph(), record.manifest, record.standing()
    flow = recorded_usage(record)
    names = [
        name
        for name in record.metric_names()
        if flow is None or name.partition("/")[0] not in LOGGED  # tiles and nodes tell of these
    ]
    return filled(
        "card.html.jinja",
        name=printable(record.name),
        id=printable(record.id),
        kind=printable(manifest.kind),
        state=standing.state,
        error="\n".join(map(printable, (standing.error or "").splitlines())),
        tags=[printable(tag) for tag in manifest.tags[:_MOST_TAGS]],
        more_tags=max(0, len(manifest.tags) - _MOST_TAGS),
        started=moment(manifest.created_at),
        length=length(record, standing),
        tiles=_tiles(record, flow),
        metrics=[_last(record, name) for name in names[:_MOST_METRICS]],
        more_metrics=max(0, len(names) - _MOST_METRICS),
        picture=drawn(graph_svg(graph, notes)) if graph is not None else "",
    )


def _tiles(record: RunRecord, flow: FlowUsage | None) -> list[Tile]:
    """Return what the nodes did; nothing where none ran."""
    if flow is not None:
        return [Tile(name, value) for name, value in flow.told().items()]
    timings = record.timings()
    if not timings:
        return []
    tiles = [
        Tile("in nodes", duration(sum(one.seconds for one in timings))),
        Tile("turns", f"{len(timings):,}"),
    ]
    activity = record.cache_activity()
    if activity:
        tiles.append(Tile("from the cache", f"{sum(one.hits for one in activity):,}"))
        tiles.append(Tile("computed", f"{sum(one.misses for one in activity):,}"))
    return tiles


def _last(record: RunRecord, name: str) -> Last:
    point = record.metric_series(name)[-1]
    return Last(printable(name), f"{point['value']:.5g}", f"{point['step']:,}")
