"""The curves of a report: of many metrics each gets fewer points, so that the file stays small."""

from soma.tracking import RunRecord
from soma.viz._thinned import thinned
from soma.viz.figures import Curve, MetricsInfo, metrics_info

_POINTS = 36_000  # of all curves together
_MOST, _LEAST = 1_000, 100  # of one


def report_curves(record: RunRecord) -> MetricsInfo:
    """Return all metrics of a run, each thinned to its share of the points."""
    info = metrics_info(record, (), None)
    count = sum(len(group.curves) for group in info.groups)
    most = max(_LEAST, min(_MOST, _POINTS // max(1, count)))
    groups = tuple(
        group._replace(curves=tuple(thinner(curve, most) for curve in group.curves))
        for group in info.groups
    )
    return info._replace(groups=groups)


def thinner(curve: Curve, most: int) -> Curve:
    """Return a curve of at most so many points."""
    kept = thinned(curve.values, most)
    return curve._replace(
        steps=tuple(curve.steps[index] for index in kept),
        values=tuple(curve.values[index] for index in kept),
    )
