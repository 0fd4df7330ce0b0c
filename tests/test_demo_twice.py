"""The demo's preprocessing runs once, however often the demo does."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
COUNTING = """
import sys
sys.path.insert(0, sys.argv[1])
import digits
from soma.core import NodeFinished, has_module

made = digits.build
ran = []

def build():
    g = made()
    def listen(event):
        if isinstance(event, NodeFinished) and not event.cached and event.phase != "train":
            if not has_module(g.filter(event.node)):
                ran.append(event.node)
    g._runner.listeners.events.append(listen)
    return g

digits.build = build
digits.run(0, 1, progress=False)
print(len(ran))
"""


@pytest.mark.slow
@pytest.mark.process
def test_a_second_run_of_the_demo_executes_no_preprocessing(tmp_path: Path) -> None:
    """In another process every plain filter's answer is found."""
    script = tmp_path / "count.py"
    script.write_text(COUNTING)
    counts = [
        int(
            subprocess.run(
                [sys.executable, str(script), str(EXAMPLES)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for _ in range(2)
    ]

    assert counts[0] > 0
    assert counts[1] == 0
