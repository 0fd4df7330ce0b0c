"""What the params have done to the result: a dot for each run, a figure for each param."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from soma.draw import counted
from soma.viz._chart import Axis, AxisKind, Chart, Panel, Series
from soma.viz.figures import logarithmic
from soma.viz.report._fill import figure, fill
from soma.viz.report._head import told
from soma.viz.report._section import Section
from soma.viz.report.several._facts import Goal, RunsFacts
from soma.viz.report.several._one import OneRun

THIRDS = {"wide": 388.0, "narrow": 356.0}  # pixels: three figures side by side, or one
_MOST = 12  # figures
_LEAST_RUNS = 3  # fewer dots tell nothing
_FACTOR = 50  # between the ends of a log axis, at least
_MOST_CHOICES = 8  # of a param that is no number


class Dots(NamedTuple):
    """One param against the result."""

    param: str
    runs: tuple[OneRun, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    choices: tuple[str, ...]  # of a param that is no number, x is the place of one


def params_section(facts: RunsFacts) -> Section | None:
    """Return the figures; None where no result is known, or too few runs differ."""
    found = _all_dots(facts)
    if facts.goal is None or not found:
        return None
    shown = found[:_MOST]
    return Section(
        key="params",
        title="Parameters",
        count=counted(len(found), "parameter"),
        body=fill(
            "several_figures.jinja",
            said=f"A dot is a run; upwards is its best {facts.goal.metric}, of which the "
            f"{facts.goal.better} is best. Colours are those of the curves.",
            figures=[
                figure(key, chart, widths=THIRDS) for key, chart in params_charts(facts).items()
            ],
            thirds=True,
        ),
        left_out=(f"{_MOST} of {len(found):,} figures of params are drawn.",)
        if len(shown) < len(found)
        else (),
    )


def params_charts(facts: RunsFacts) -> dict[str, Chart]:
    """Return the charts, each by the key of its figure."""
    if facts.goal is None:
        return {}
    return {
        f"param-{at}": _chart(dots, facts.goal) for at, dots in enumerate(_all_dots(facts)[:_MOST])
    }


def _all_dots(facts: RunsFacts) -> list[Dots]:
    found = [_dots(name, facts) for name in facts.varying]
    return [one for one in found if one is not None]


def _dots(param: str, facts: RunsFacts) -> Dots | None:
    """Return what is drawn of a param; None where it would not be read."""
    if facts.goal is None:
        return None
    known = [
        (run, run.manifest.params[param], value)
        for run in reversed(facts.drawn)
        if param in run.manifest.params
        and (value := facts.best(run, facts.goal.metric)) is not None
    ]
    given = [value for _, value, _ in known]
    choices: tuple[str, ...] = ()
    if all(_is_number(value) for value in given):
        places = [float(value) for value in given]
    else:
        texts = [told(value) for value in given]
        choices = tuple(sorted(set(texts)))
        places = [float(choices.index(text)) for text in texts]
    few = len(known) < _LEAST_RUNS or len(set(places)) < 2
    if few or len(choices) > _MOST_CHOICES:
        return None
    runs = tuple(run for run, _, _ in known)
    return Dots(param, runs, tuple(places), tuple(best for _, _, best in known), choices)


def _chart(dots: Dots, goal: Goal) -> Chart:
    kind: AxisKind = "log" if not dots.choices and _spans(dots.x) else "linear"
    up_log = logarithmic(dots.y)
    x = Axis(kind=kind)
    if dots.choices:
        x = Axis(kind="category", categories=dots.choices)
    elif kind == "linear":  # no dot stands on the axis
        beside = (max(dots.x) - min(dots.x)) / 20
        x = Axis(kind=kind, ends=(min(dots.x) - beside, max(dots.x) + beside))
    series = tuple(
        Series(name=run.label, x=(x,), y=(y,), ink=run.ink, joined=False, key=False)
        for run, x, y in zip(dots.runs, dots.x, dots.y, strict=True)
    )
    scale = ", log scale" if kind == "log" else ""
    panel = Panel(
        title="",
        x=x,
        y=Axis(kind="log" if up_log else "linear"),
        series=series,
        note=f"best {goal.metric}, log scale" if up_log else f"best {goal.metric}",
    )
    return Chart(title=f"{dots.param}{scale}", panels=(panel,), columns=1)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _spans(values: Sequence[float]) -> bool:
    """Whether values are better told apart by their factors."""
    return min(values) > 0 and max(values) / min(values) > _FACTOR
