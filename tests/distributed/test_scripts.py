"""Classes of the script that a program runs are found on workers, however it was started."""

import sys
from pathlib import Path

import pytest

from tests.distributed import processes

pytestmark = [pytest.mark.process, pytest.mark.slow]

SCRIPT = """
import argparse
import torch
from torch import nn
from soma import DifferentiableFilter, Graph
from soma.distributed import local_cluster
{before}

class Own(DifferentiableFilter):
    def build_module(self, input_shape):
        return nn.Linear(input_shape[-1], 2)

if __name__ == "__main__":
    with local_cluster(1) as (name,):
        g = Graph.somatize(Own().at(name)).materialize(torch.ones(3, 4)).freeze()
        print(tuple(g.forward(torch.ones(3, 4)).shape))
"""
ARGUMENTS = """
parser = argparse.ArgumentParser()
parser.add_argument("--width", required=True)
parser.parse_args()
"""


def said(folder: Path, *command: str) -> tuple[str, str]:
    """Return what a command says that runs in a folder of the path."""
    path = f"{folder}:{':'.join(sys.path)}"
    with processes.running([sys.executable, *command], PYTHONPATH=path) as program:
        return program.communicate(timeout=90)


def test_a_module_of_a_package(tmp_path: Path) -> None:
    """`python -m package.module` may import its neighbours by a dot."""
    package = tmp_path / "package"
    package.mkdir()
    for name, text in {"__init__": "", "other": "", "train": SCRIPT}.items():
        text = text.format(before="from . import other") if text else ""
        (package / f"{name}.py").write_text(text)

    assert said(tmp_path, "-m", "package.train") == ("(3, 2)\n", "")


def test_a_script_that_reads_its_arguments(tmp_path: Path) -> None:
    """A parser above the guard finds on the worker what it finds here."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(before=ARGUMENTS))

    assert said(tmp_path, str(script), "--width", "3") == ("(3, 2)\n", "")


def test_a_script_that_cannot_run_on_a_worker(tmp_path: Path) -> None:
    """The program is told which script it was, what it raised, and what to do."""
    script = tmp_path / "script.py"
    script.write_text(
        SCRIPT.format(before='if __name__ != "__main__": raise KeyError("here only")')
    )
    told = said(tmp_path, str(script))[1]

    assert f"worker1 refuses: it runs {script} for the classes in it" in told
    assert "KeyError: 'here only'. What a script does stands below" in told
