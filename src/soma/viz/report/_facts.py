"""What a report is made of: all that is read of a run, read once."""

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from soma.core import Diagnostic, ModuleFlow, NodeId
from soma.health import AuditReport, HealthRecord, Measurements
from soma.tracking import (
    CacheActivity,
    GraphRecord,
    Manifest,
    RunRecord,
    Standing,
    Timing,
)
from soma.viz._conversation import conversation
from soma.viz._graph_picture import NodeNote
from soma.viz._node_timings import NodeTiming, node_timings
from soma.viz._notes import graph_notes
from soma.viz._usage import LOGGED, NodeUsage, node_usage
from soma.viz._when import seconds_taken
from soma.viz.figures import GanttInfo, MetricsInfo, gantt_info
from soma.viz.report._curves import report_curves
from soma.viz.report._told import Told, told


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One run, as its directory told it at one moment."""

    id: str
    made_at: float  # seconds since 1970
    manifest: Manifest
    standing: Standing
    graph: GraphRecord | None
    modules: tuple[ModuleFlow, ...]
    diagnostics: tuple[Diagnostic, ...]
    turns: tuple[Timing, ...]
    timings: dict[NodeId, NodeTiming]
    activity: dict[NodeId, CacheActivity]
    notes: dict[NodeId, NodeNote]
    flags: tuple[dict[str, Any], ...]  # of health, by node
    unit_flags: tuple[dict[str, Any], ...]  # the same by module
    measured: Measurements | None  # by an audit
    verdict: AuditReport | None
    curves: MetricsInfo
    gantt: GanttInfo
    told: Told  # the conversation of a flow
    usage: tuple[NodeUsage, ...]  # of the nodes of a flow
    happened: Counter[str]  # how many events there are of each kind

    @property
    def length(self) -> float | None:
        """Seconds from the beginning to the end, or to now; None where nobody knows."""
        return seconds_taken(self.manifest, self.standing, self.made_at)

    @property
    def drawn(self) -> MetricsInfo:
        """The curves without those that the table of a flow's turns and tokens tells of."""
        told = LOGGED if self.usage else ()
        left = [one for one in self.curves.groups if one.title.partition("/")[0] not in told]
        return self.curves._replace(groups=tuple(left))


def facts_of(record: RunRecord, health: HealthRecord) -> Facts:
    """Return what there is to tell; what cannot be read is empty."""
    flagged = tuple(health.flags())
    measured = health.readable()
    turns = tuple(record.timings())
    said = conversation(record.journal())
    return Facts(
        id=record.id,
        made_at=time.time(),
        manifest=record.manifest,
        standing=record.standing(),
        graph=record.graph(),
        modules=record.modules(),
        diagnostics=record.diagnostics(),
        turns=turns,
        timings={one.node: one for one in node_timings(turns)},
        activity={one.node: one for one in record.cache_activity()},
        notes=graph_notes(record, flagged),
        flags=flagged,
        unit_flags=tuple(health.unit_flags()),
        measured=measured,
        verdict=None if measured is None else health.report(),
        curves=report_curves(record),
        gantt=gantt_info(record),
        told=told(said),
        usage=tuple(node_usage(said)),
        happened=Counter(event["event"] for event in record.events()),
    )
