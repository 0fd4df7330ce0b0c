"""What the tests of reports of several runs have in common: a study, made by hand."""

import math
from contextlib import suppress
from pathlib import Path

from soma import RunView, track_run
from tests.viz.audits_made import chain, write_audit


class Pruned(Exception):
    """Ends a trial as Optuna's own does."""


def study(root: Path, count: int, name: str = "digits", *, points: int = 12) -> list[RunView]:
    """Return trials that maximize a value: every fifth pruned, the eighth failed, some sick."""
    return [RunView(_trial(root, name, number, points)) for number in range(count)]


def _trial(root: Path, name: str, number: int, points: int) -> Path:
    share = (number * 7 % 11) / 11
    params = {
        "dense.width": 8 * (1 + number % 8),
        "head.rate": 10 ** (-4 + 3 * share),
        "dense.activation": ["tanh", "relu", "gelu"][number % 3],
        "epochs": points,
    }
    with (
        suppress(Pruned, RuntimeError),
        track_run(
            f"{name} #{number}", kind="trial", tags=[name, "maximize"], params=params, root=root
        ) as run,
    ):
        run.interrupted_by(Pruned)
        if number % 3:
            write_audit(run.dir, chain(6, shrinks=0.05 if number % 4 == 1 else 0.8,
                                       dead=3 * (number % 5 == 2)))  # fmt: skip
        for step in range(points):
            if number % 5 == 4 and step == points // 3:
                raise Pruned("DEAD at net/layers.0, since step 0: all 8 channels are dead")
            if number == 7 and step == points // 2:
                raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (32x16 and 8x10)")
            wave = 0.02 * math.sin(step + number)
            reached = (0.4 + 0.5 * share) * (1 - math.exp(-4 * (step + 1) / points)) + wave
            run.log("value", reached, step)
            run.log("loss", 2.5 * math.exp(-4 * share * step / points) + abs(wave), step)
            run.log(
                "validation_loss", math.nan if number == 3 and step > 5 else 3 - 2 * reached, step
            )
    return run.dir
