"""`soma.runs()`: the runs below a folder."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import NamedTuple, overload

from soma.draw import printable, shortened
from soma.tracking import RunRecord, State, run_records
from soma.viz._run_view import RunView
from soma.viz._templates import SIGNS, filled
from soma.viz._usage import recorded_usage
from soma.viz._when import length, moment
from soma.viz.report import runs_html

_MOST = 100  # rows in a notebook
_MOST_PARAMS = 120  # columns


class RunRow(NamedTuple):
    """What a list says of one run."""

    state: State
    name: str
    kind: str
    started: str
    length: str
    params: str
    id: str


def run_row(record: RunRecord) -> RunRow:
    """Return what a list says of a run, safe to print."""
    standing, manifest, flow = record.standing(), record.manifest, recorded_usage(record)
    told = {} if flow is None else flow.told()
    used = {name.replace(" ", "_"): count for name, count in told.items()}
    return RunRow(
        standing.state,
        printable(manifest.name),
        printable(manifest.kind),
        moment(manifest.created_at),
        length(record, standing),
        _params(used | manifest.params),
        printable(record.id),
    )


def _params(params: Mapping[str, object]) -> str:
    told = [f"{name}={_short(value)}" for name, value in params.items()]
    return printable(shortened(" ".join(told), _MOST_PARAMS))


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class RunList(Sequence[RunView]):
    """Runs, the newest first; a notebook shows them as a table."""

    def __init__(self, views: Iterable[RunView]) -> None:
        self._views = tuple(views)

    @overload
    def __getitem__(self, index: int) -> RunView: ...
    @overload
    def __getitem__(self, index: slice) -> "RunList": ...
    def __getitem__(self, index: int | slice) -> "RunView | RunList":
        if isinstance(index, slice):
            return RunList(self._views[index])
        return self._views[index]

    def __len__(self) -> int:
        return len(self._views)

    def __repr__(self) -> str:
        rows = self._rows()
        widest = max((len(row.length) for row in rows), default=0)
        lines = [
            f"{SIGNS[row.state]} {row.state:<11} {row.id}  {row.length:>{widest}}  {row.name}"
            for row in rows
        ]
        if len(self) > _MOST:
            lines.append(f"and {len(self) - _MOST} more")
        return "\n".join(lines) or "no runs"

    def _repr_html_(self) -> str:
        return filled("runs.html.jinja", rows=self._rows(), more=max(0, len(self) - _MOST))

    def tagged(self, tag: str) -> "RunList":
        """Return those with a tag, such as the trials of a study by its name."""
        return RunList(view for view in self._views if tag in view.manifest.tags)

    def to_html(self, *, plotly: bool = False, static: bool = False) -> str:
        """Return the runs beside each other as one page of HTML that asks nothing of the network.

        The best come first where it is known which value of a metric is better: of a study, and
        by names such as `loss` and `accuracy`.

        Args:
            plotly: put the installed Plotly into the page, and draw its figures with it.
            static: write no script at all; the table cannot be sorted then.

        Raises:
            InvalidInput: both came together.
            MissingExtra: Plotly is not installed.
        """
        return runs_html([view.dir for view in self._views], plotly=plotly, static=static)

    def _rows(self) -> list[RunRow]:
        return [run_row(RunRecord(view.dir)) for view in self._views[:_MOST]]


def runs(root: str | PathLike[str] = ".soma") -> RunList:
    """Return the runs below `root`, the newest first; broken ones too, as `unreadable`."""
    return RunList(RunView(record.dir) for record in run_records(root))
