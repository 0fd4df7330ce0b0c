"""The runs of the benchmark, by what is wrong with them."""

from tests.detection.run import Run
from tests.detection.runs import (
    healthy_dense,
    healthy_parts,
    healthy_sequence,
    healthy_vision,
    sick_channels,
    sick_gradients,
    sick_rates,
    sick_still,
)

HEALTHY: tuple[Run, ...] = (
    *healthy_dense.RUNS,
    *healthy_vision.RUNS,
    *healthy_sequence.RUNS,
    *healthy_parts.RUNS,
)
SICK: tuple[Run, ...] = (
    *sick_gradients.RUNS,
    *sick_channels.RUNS,
    *sick_still.RUNS,
    *sick_rates.RUNS,
)
CURED: tuple[Run, ...] = tuple(run.cured() for run in SICK)
