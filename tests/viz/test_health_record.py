"""What a view says of a run's health, from the record alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from soma import RunView
from soma.errors import InvalidMeasurements, InvalidThreshold, NotRecorded
from soma.health import judge, rollup
from tests.viz.audits_made import HOSTILE, audited, chain, grouped, write_audit, write_flags
from tests.viz.runs_made import logged

DOTTED = "diagnostics/audit.jsonl"


def test_measurements_come_back(tmp_path: Path) -> None:
    """The verdict on what was read is that on what was measured."""
    measured = chain(12, shrinks=0.3, dead=3)
    view = audited(tmp_path, measured)

    assert view.measurements().units == measured.units
    assert view.measurements().series == measured.series
    assert view.verdict().findings == judge(measured).findings


def test_a_run_without_audit(tmp_path: Path) -> None:
    """It has no measurements and no flags, and a verdict or a figure says what to do."""
    view = logged(tmp_path, loss=[1.0])

    assert (view.measurements(), view.health_flags()) == (None, [])
    with pytest.raises(NotRecorded, match=r"g\.gradient_audit\(\)"):
        view.verdict()
    with pytest.raises(NotRecorded, match=r"g\.gradient_audit\(\)"):
        view.plot_health()


def test_flags_are_judged_where_none_were_kept(tmp_path: Path) -> None:
    """Before the audit has ended, flags come from what it has measured by then."""
    measured = chain(12, shrinks=0.3)
    view = audited(tmp_path, measured)

    assert view.health_flags() == rollup(judge(measured))
    assert [flag["flag"] for flag in view.health_flags()] == ["VANISHING"]


def test_flags_as_the_audit_left_them(tmp_path: Path) -> None:
    """What the audit wrote at its end stands, and its thresholds hold for later verdicts."""
    measured = grouped(chain(3), 0.9, ("audio", "text"))
    view = audited(tmp_path, measured)
    assert view.health_flags() == []
    write_flags(view.dir, measured, leakage=0.8)

    assert [flag["flag"] for flag in view.health_flags()] == ["LEAKAGE"]
    assert [one.name for one in view.verdict().findings] == ["LEAKAGE"]
    assert view.verdict({"leakage": 0.95}).is_healthy()


def test_a_record_that_grows(tmp_path: Path) -> None:
    """A view reads again what an audit has written since."""
    view = audited(tmp_path, chain(3, steps=2))
    assert view.verdict().n_steps == 2
    write_audit(view.dir, chain(3, steps=9))

    assert view.verdict().n_steps == 9


@pytest.mark.parametrize("line", ["", "{", "[1]", '{"kind": "unit"}', '{"kind": 3}', "\0"])
def test_a_broken_line(line: str, tmp_path: Path) -> None:
    """What cannot be read is left out, and all else is judged."""
    view = audited(tmp_path, chain(12, shrinks=0.3))
    with (view.dir / DOTTED).open("a") as file:
        file.write(f"{line}\n")

    assert [flag["flag"] for flag in view.health_flags()] == ["VANISHING"]


def test_a_newer_record(tmp_path: Path) -> None:
    """It is refused where it is asked for; pictures and report come without it."""
    view = audited(tmp_path, chain(3))
    (view.dir / DOTTED).write_text('{"kind": "audit", "format": 99, "every": 1, "notes": []}\n')

    with pytest.raises(InvalidMeasurements, match="newer"):
        view.measurements()
    assert "layers.1" in view.to_svg(node="net")
    assert "audited" in view.to_html()


def test_a_threshold_that_is_none(tmp_path: Path) -> None:
    """The error names the nearest one."""
    with pytest.raises(InvalidThreshold, match="Did you mean `leakage`"):
        audited(tmp_path, chain(3)).verdict({"leakge": 0.9})


def test_figures_draw_the_lines_of_the_audit(tmp_path: Path) -> None:
    """What is drawn, and told in the report, is judged by the thresholds that the audit had."""
    measured = grouped(chain(3), 0.9, ("audio", "text"))
    view = audited(tmp_path, measured)
    write_flags(view.dir, measured, leakage=0.8, vanishing=5e-3)

    assert "VANISHING is below 0.005" in view.plot_module_flow("net").to_svg()
    assert "LEAKAGE is above 0.8" in view.plot_channel_evolution("net/layers.0").to_svg()
    assert "LEAKAGE is above 0.8" in view.to_html(static=True)


@pytest.mark.parametrize("ask", ["verdict", "measurements", "health_flags", "to_html"])
@pytest.mark.parametrize("audit", [0, 3])
def test_an_audit_that_is_not_there(ask: str, audit: int, tmp_path: Path) -> None:
    """Whoever asks for the third audit of a run with one is told so; no answer looks healthy."""
    view = RunView(audited(tmp_path, chain(3)).dir, audit=audit)

    with pytest.raises(NotRecorded, match=f"has no audit {audit}; it has 1"):
        getattr(view, ask)()


@pytest.mark.parametrize("content", ["", "[]", '{"flags": 3}', '{"thresholds": {"gone": 1}}'])
def test_broken_flags(content: str, tmp_path: Path) -> None:
    """Where the audit's own flags cannot be read, the verdict is taken from the numbers."""
    view = audited(tmp_path, chain(12, shrinks=0.3))
    (view.dir / "diagnostics" / "health.json").write_text(content)

    assert [flag["flag"] for flag in view.health_flags()] == ["VANISHING"]


def test_pictures_carry_the_flags(tmp_path: Path) -> None:
    """The graph shows the roll-up at the node, its inside each flag where it stands."""
    view = audited(tmp_path, chain(12, shrinks=0.3, dead=3))
    inside = view.to_svg(node="net")

    assert "▲ VANISHING" in view.to_svg()
    assert "▲ DEAD_CHANNELS(3)" in inside
    assert inside.count("▲ VANISHING") == 6
    assert "arrives (median of" in inside  # why, where a pointer rests


def test_pictures_by_the_flags_alone(tmp_path: Path) -> None:
    """Without numbers the flags that the audit kept mark the same submodules."""
    measured = chain(12, shrinks=0.3)
    view = audited(tmp_path, measured)
    write_flags(view.dir, measured)
    (view.dir / DOTTED).unlink()

    assert "▲ VANISHING" in view.to_svg(node="net")


def test_a_hostile_flag(tmp_path: Path) -> None:
    """Whatever a file calls a flag, a picture shows it as text."""
    view = audited(tmp_path, chain(3))
    flags = [{"node_id": "net", "flag": HOSTILE, "why": HOSTILE, "filters": [HOSTILE, 3, None]}, 7]
    (view.dir / "diagnostics" / "health.json").write_text(json.dumps({"flags": flags}))

    assert "<img" not in view.to_svg() + view.to_svg(node="net") + view.to_html()


def test_health_needs_no_torch(tmp_path: Path) -> None:
    """Verdict, figures, pictures and report come up in a process that loads no torch."""
    view = audited(tmp_path, chain(12, shrinks=0.3, dead=3))
    code = (
        "import sys\nsys.modules['torch'] = None\nimport soma\n"
        "view = soma.RunView(sys.argv[1])\nassert not view.verdict().is_healthy()\n"
        "view.plot_health().to_svg(), view.plot_audit().to_svg(), view.to_html()\n"
        "view.plot_module_flow('net').to_svg(), view.plot_channels('net/layers.0').to_svg()\n"
        "view.plot_channel_evolution('net/layers.0').to_svg()\n"
        "assert not {'numpy', 'plotly', 'pandas'} & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", code, str(view.dir)], check=True)


def test_a_view_of_an_older_soma(tmp_path: Path) -> None:
    """A run of which nothing is left but its flags is still told of."""
    view = logged(tmp_path, loss=[1.0])
    write_flags(view.dir, chain(12, shrinks=0.3))

    assert [flag["node_id"] for flag in RunView(view.dir).health_flags()] == ["net"]
