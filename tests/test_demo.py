"""The demo program, as `make demo` runs it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "examples" / "digits.py"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_graph_beats_a_logistic_regression_on_most_seeds() -> None:
    """On at least four of five splits its digit head is ahead, and the warnings are shown."""
    shown = subprocess.run(
        [sys.executable, "-W", "error", str(DEMO)], capture_output=True, text=True, check=True
    ).stdout
    rows = re.findall(r"^ +(\d+) +([\d.]+)% +[\d.]+% +([\d.]+)%$", shown, re.MULTILINE)

    assert len(rows) == 5
    assert sum(float(graph) > float(regression) for _, graph, regression in rows) >= 4
    assert "Gradient flow interrupted at `Strokes` (FilterKind::Opaque)" in shown
    assert "Gradients from [Dense] do not reach [Convolution]." in shown
    assert "Look next" in shown
