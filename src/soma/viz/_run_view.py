"""`RunView`: all that is told about one run, from its directory alone."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from soma.core import ModuleFlow, NodeId
from soma.draw import printable
from soma.errors import NotRecorded, did_you_mean, listing
from soma.health import AuditReport, HealthRecord, Measurements, Thresholds, UnitId
from soma.tracking import CacheActivity, GraphRecord, Manifest, RunRecord, State
from soma.viz._card import card_html
from soma.viz._conversation import ConversationEntry, conversation
from soma.viz._figure import Figure
from soma.viz._flow_picture import flow_svg
from soma.viz._frame import frame_of
from soma.viz._graph_picture import graph_svg
from soma.viz._graphviz import graphviz
from soma.viz._mermaid import mermaid
from soma.viz._node_timings import NodeTiming, node_timings
from soma.viz._notes import flow_notes, graph_notes
from soma.viz._record_text import flow_text, record_text
from soma.viz._usage import NodeUsage, node_usage
from soma.viz.figures import (
    audit_chart,
    audit_info,
    channel_evolution_chart,
    channel_evolution_info,
    channels_chart,
    channels_info,
    gantt_chart,
    gantt_info,
    health_chart,
    health_info,
    metrics_chart,
    metrics_info,
    module_flow_chart,
    module_flow_info,
)
from soma.viz.report import report_html


class RunView:
    """One run, to ask and to draw; a notebook shows it as a card.

    It reads the directory at each call, also while the run goes on, and needs no torch.

    >>> from tempfile import mkdtemp
    >>> import soma
    >>> with soma.track_run("first try", root=mkdtemp()) as run:
    ...     run.log("loss", 0.5)
    >>> view = soma.RunView(run.dir)
    >>> view.state, view.metric_names()
    ('completed', ['loss'])

    Args:
        dir: the directory of the run, `run.dir`.
        audit: which of its audits is shown, the first is 1; None: the last.

    Raises:
        UnknownRun: there is no such directory.
    """

    def __init__(self, dir: str | PathLike[str], *, audit: int | None = None) -> None:  # noqa: A002 - its own word
        self._record = RunRecord(dir)
        self._health = HealthRecord(self._record, audit)

    def __fspath__(self) -> str:
        """Return where the run is, so that a view stands for it: `flow.resume(soma.runs()[0])`."""
        return str(self._record.dir)

    @property
    def dir(self) -> Path:
        """Where the run is."""
        return self._record.dir

    @property
    def id(self) -> str:
        """The name of its directory."""
        return self._record.id

    @property
    def name(self) -> str:
        """What people call it."""
        return self._record.name

    @property
    def state(self) -> State:
        """How it stands now."""
        return self._record.state

    @property
    def error(self) -> str | None:
        """Why it did not complete."""
        return self._record.error

    @property
    def manifest(self) -> Manifest:
        """What it was started as: kind, tags, params and the machine."""
        return self._record.manifest

    @property
    def kind(self) -> str:
        """What was done in it, as it was started."""
        return self._record.manifest.kind

    @property
    def params(self) -> dict[str, Any]:
        """What it was started with."""
        return self._record.manifest.params

    def events(self) -> list[dict[str, Any]]:
        """Return what happened, in order, each a mapping with `event` for its kind."""
        return self._record.events()

    def metric_names(self) -> list[str]:
        """Return the names that numbers were logged under."""
        return self._record.metric_names()

    def metric_series(self, name: str) -> list[Mapping[str, Any]]:
        """Return the points of one metric, mappings with `step`, `value` and `time`."""
        return self._record.metric_series(name)

    def node_timings(self) -> list[NodeTiming]:
        """Return how long each node took, in the order in which they ran."""
        return node_timings(self._record.timings())

    def cache_activity(self) -> list[CacheActivity]:
        """Return how often each node was found in the cache, and why it ran."""
        return self._record.cache_activity()

    def conversation(self) -> list[ConversationEntry]:
        """Return what was said and done in a flow, in order; nothing of a run of another kind."""
        return conversation(self._record.journal())

    def node_usage(self) -> list[NodeUsage]:
        """Return turns, tokens, calls of tools and routes of each node of a flow."""
        return node_usage(self.conversation())

    def health_flags(self) -> list[dict[str, Any]]:
        """Return what an audit has flagged, by node: mappings with `node_id`, `flag` and more.

        Raises:
            NotRecorded: `audit` names one that the run does not have.
        """
        return self._health.flags()

    def measurements(self) -> Measurements | None:
        """Return all that an audit measured; None where none ran.

        Raises:
            NotRecorded: `audit` names one that the run does not have.
            InvalidMeasurements: a newer soma wrote it.
        """
        return self._health.measurements()

    @property
    def audits(self) -> int:
        """How many audits were kept in the run."""
        return self._health.audits

    def verdict(self, thresholds: Mapping[str, float] | Thresholds | None = None) -> AuditReport:
        """Judge the run again from what was measured, as `audit.report()` did.

        Args:
            thresholds: other lines than those of the audit, `{"leakage": 0.9}`.

        Raises:
            NotRecorded: no audit ran.
            InvalidThreshold: a threshold that no rule has, or a value that is none.
        """
        return self._health.report(thresholds)

    def frame(self) -> Any:
        """Return all points as a frame of pandas or Polars: `name`, `step`, `value`, `time`.

        Raises:
            MissingExtra: neither is installed.
        """
        series = {name: self.metric_series(name) for name in self.metric_names()}
        points = [(name, point) for name, points in series.items() for point in points]
        columns: dict[str, list[object]] = {"name": [name for name, _ in points]}
        for column in ("step", "value", "time"):
            columns[column] = [point[column] for _, point in points]
        return frame_of(columns)

    def to_svg(self, node: NodeId | None = None) -> str:
        """Return the graph with what happened to each node, or the inside of one, as SVG.

        Raises:
            NotRecorded: the run has no graph, or saw nothing of that inside.
        """
        if node is not None:
            return flow_svg(self._flow(node), flow_notes(node, self._health.unit_flags()))
        return graph_svg(self._graph(), graph_notes(self._record, self.health_flags()))

    def to_mermaid(self, node: NodeId | None = None) -> str:
        """Return the graph, or the inside of a node, as Mermaid text."""
        return mermaid(self._graph() if node is None else self._flow(node))

    def to_graphviz(self, node: NodeId | None = None) -> str:
        """Return the graph, or the inside of a node, in Graphviz' language DOT."""
        return graphviz(self._graph() if node is None else self._flow(node))

    def to_text(self, node: NodeId | None = None) -> str:
        """Return the graph with what happened to each node, or the inside of one, as lines."""
        if node is not None:
            return flow_text(self._flow(node))
        return record_text(self._graph(), graph_notes(self._record, self.health_flags()))

    def plot_gantt(self) -> Figure:
        """Return the figure of what ran when, a lane for each node."""
        return Figure(gantt_chart(gantt_info(self._record)))

    def plot_metrics(self, *names: str, log: bool | None = None) -> Figure:
        """Return the figure of the metrics named, or of all; what belongs together shares axes.

        Args:
            log: draw on a log scale; None: where a metric spans three decades.

        Raises:
            NotRecorded: no number was logged under a name.
        """
        return Figure(metrics_chart(metrics_info(self._record, names, log)))

    def plot_health(self) -> Figure:
        """Return the figure of what failed, where, and since which step.

        Raises:
            NotRecorded: no audit ran.
        """
        return Figure(health_chart(health_info(self.name, *self._judged())))

    def plot_audit(self, *metrics: str, units: Sequence[UnitId] | None = None) -> Figure:
        """Return the figure of what was measured, step by step; by default gradients and updates.

        Args:
            metrics: names of `soma.health.METRICS`.
            units: ids of modules or patterns, `encoder/trunk.*`; None: a few, the worst first.

        Raises:
            NotRecorded: no audit ran, or it knows no such number or module.
        """
        return Figure(audit_chart(audit_info(self.name, *self._judged(), metrics, units)))

    def plot_module_flow(self, node: NodeId) -> Figure:
        """Return the figure of how signal and gradient get through the modules of a node.

        Raises:
            NotRecorded: no audit looked at it.
        """
        return Figure(module_flow_chart(module_flow_info(self.name, *self._judged(), node)))

    def plot_channels(self, unit: UnitId) -> Figure:
        """Return the figure of how alike a module's channels are; dead ones are marked †.

        Raises:
            NotRecorded: no audit looked at its channels.
        """
        return Figure(channels_chart(channels_info(self.name, *self._judged(), unit)))

    def plot_channel_evolution(self, unit: UnitId) -> Figure:
        """Return the figure of a module's channels over the training: rank, likeness, dead ones.

        Raises:
            NotRecorded: no audit looked at its channels.
        """
        info = channel_evolution_info(self.name, *self._judged(), unit)
        return Figure(channel_evolution_chart(info))

    def to_html(self, *, plotly: bool = False, static: bool = False) -> str:
        """Return all of the run as one page of HTML that asks nothing of the network.

        Args:
            plotly: put the installed Plotly into the page, and draw its figures with it.
            static: write no script at all.

        Raises:
            InvalidInput: both came together.
            MissingExtra: Plotly is not installed.
        """
        return report_html(self._record, self._health, plotly=plotly, static=static)

    def __repr__(self) -> str:
        return f"RunView({printable(self.id)!r}, {self.state})"

    def _repr_html_(self) -> str:
        """Draw a card: how the run stands, its graph, its last numbers."""
        return card_html(self._record, graph_notes(self._record, self.health_flags()))

    def _judged(self) -> tuple[Measurements, AuditReport]:
        return self._health.measured(), self._health.report()

    def _graph(self) -> GraphRecord:
        graph = self._record.graph()
        if graph is None:
            raise NotRecorded(
                f"the run `{self.name}` has recorded no graph; start it with `g.track_run`."
            )
        return graph

    def _flow(self, node: NodeId) -> ModuleFlow:
        flows = {flow.node: flow for flow in self._record.modules()}
        if node in flows:
            return flows[node]
        graph = self._record.graph()
        nodes = [] if graph is None else [one.id for one in graph.nodes]
        if node not in nodes:
            asked = f"there is no node `{node}` in the run `{self.name}`"
        else:
            asked = f"the inside of `{node}` was not recorded in the run `{self.name}`"
        seen = f"recorded is that of {listing(flows)}" if flows else "it holds no module's inside"
        raise NotRecorded(
            f"{asked}; {seen}. `to_svg()` draws the graph.{did_you_mean(node, flows)}"
        )
