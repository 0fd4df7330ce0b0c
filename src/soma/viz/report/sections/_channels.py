"""The channels of modules: those with findings or with groups, as many as the file has room for."""

from typing import NamedTuple

from markupsafe import Markup

from soma.draw import counted
from soma.health import UnitId
from soma.viz._chart import Chart
from soma.viz.figures import (
    channel_evolution_chart,
    channel_evolution_info,
    channels_chart,
    channels_info,
    faults_of,
)
from soma.viz.report._facts import Facts
from soma.viz.report._fill import figure, fill
from soma.viz.report._section import Section

_MOST = 4  # modules
_CHANNELS = 40  # of a table
_CELLS = 3_200  # of all tables together; each weighs up to 80 bytes
_TABLE, _EVOLUTION = 736.0, 440.0  # pixels, side by side on a wide page
_FLAGS = ("LEAKAGE", "DEAD", "DEAD_CHANNELS", "IGNORED_CHANNELS", "COLLAPSE")


class Channels(NamedTuple):
    """The two figures of one module."""

    id: UnitId
    table: Markup
    evolution: Markup


def channels_section(facts: Facts) -> Section | None:
    """Return the figures of some modules; None where no channels were recorded."""
    known = [] if facts.measured is None else list(facts.measured.channels)
    shown = _shown(facts)
    if not shown:
        return None
    charts = channel_charts(facts)
    left = (
        f"The channels of {len(shown)} of {len(known):,} modules are drawn, of those with findings "
        "or groups."
    )
    return Section(
        key="channels",
        title="Channels",
        count=counted(len(known), "module"),
        body=fill(
            "channels.jinja",
            units=[
                Channels(
                    id,
                    figure(f"channels-{at}", charts[f"channels-{at}"], widths={"wide": _TABLE}),
                    figure(
                        f"evolution-{at}", charts[f"evolution-{at}"], widths={"wide": _EVOLUTION}
                    ),
                )
                for at, id in enumerate(shown)
            ],
        ),
        left_out=(left,) if len(shown) < len(known) else (),
    )


def channel_charts(facts: Facts) -> dict[str, Chart]:
    """Return the charts of the modules that are drawn, each by the key of its figure."""
    if facts.measured is None or facts.verdict is None:
        return {}
    run, charts = facts.manifest.name, {}
    for at, id in enumerate(_shown(facts)):
        info = channels_info(run, facts.measured, facts.verdict, id, _CHANNELS)
        charts[f"channels-{at}"] = channels_chart(info)
        history = channel_evolution_info(run, facts.measured, facts.verdict, id)
        charts[f"evolution-{at}"] = channel_evolution_chart(history)
    return charts


def _shown(facts: Facts) -> list[UnitId]:
    """Return the modules that are drawn, the worst first."""
    if facts.measured is None or facts.verdict is None:
        return []
    measured = facts.measured
    flagged = [one.unit for one in faults_of(facts.verdict) if one.name in _FLAGS]
    grouped = [id for id, unit in measured.units.items() if unit.groups]
    room = _CELLS
    shown: list[UnitId] = []
    for id in dict.fromkeys([*flagged, *grouped]) or [*measured.channels][:1]:
        cells = min(_CHANNELS, len(measured.correlation.get(id, ()))) ** 2
        if id in measured.channels and (cells <= room or not shown) and len(shown) < _MOST:
            room -= cells
            shown.append(id)
    return shown
