"""The runs of the benchmark, by what is wrong with them."""

from tests.detection.run import Run
from tests.detection.runs import (
    healthy_architectures,
    healthy_choices,
    healthy_followers,
    healthy_frozen,
    healthy_losses,
    healthy_noise,
    healthy_parts,
    healthy_sequence,
    healthy_steps,
    healthy_vision,
    library,
    sick_at_the_end,
    sick_attention,
    sick_channels,
    sick_cut_off,
    sick_dead,
    sick_fading,
    sick_growing,
    sick_not_finite,
    sick_rates,
    sick_saturated,
    sick_still,
)

HEALTHY: tuple[Run, ...] = (
    *healthy_architectures.RUNS,
    *healthy_choices.RUNS,
    *healthy_followers.RUNS,
    *healthy_frozen.RUNS,
    *healthy_losses.RUNS,
    *healthy_noise.RUNS,
    *healthy_parts.RUNS,
    *healthy_sequence.RUNS,
    *healthy_steps.RUNS,
    *healthy_vision.RUNS,
    *library.HEALTHY,
)
SICK: tuple[Run, ...] = (
    *library.SICK,
    *sick_at_the_end.RUNS,
    *sick_attention.RUNS,
    *sick_channels.RUNS,
    *sick_cut_off.RUNS,
    *sick_dead.RUNS,
    *sick_fading.RUNS,
    *sick_growing.RUNS,
    *sick_not_finite.RUNS,
    *sick_rates.RUNS,
    *sick_saturated.RUNS,
    *sick_still.RUNS,
)
CURED: tuple[Run, ...] = tuple(run.cured() for run in SICK)
