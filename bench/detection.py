"""How well the audit tells sick training from healthy, on the benchmark of `tests/detection`.

Five seeds that no rule was tuned on (tuning used others, up to 20), two ways to say what is
watched, the usual thresholds. The labels are proved without an audit by
`tests/detection/test_labels.py`; `--prove` proves them at these seeds too, and leaves out what a
seed makes untrue. The last table is the scale law: what the factor changes in the verdict, which
should be nothing.

    python bench/detection.py [--prove] [--only graph|plain|law] [--seeds 101,102,103]
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.detection.drive import Scale
from tests.detection.evidence import gather
from tests.detection.health import complaints
from tests.detection.known import KNOWN
from tests.detection.labels import claim
from tests.detection.run import Run
from tests.detection.runs import CURED, HEALTHY, SICK
from tests.detection.score import Score, score

torch.set_num_threads(1)

MUCH = 2.0**20
SCALES = {
    "loss x 2^20": Scale(loss=MUCH),
    "loss x 2^-20": Scale(loss=1 / MUCH),
    "data x 2^20": Scale(data=MUCH),
    "data x 2^-20": Scale(data=1 / MUCH),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="101,102,103,104,105")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("--only", choices=("graph", "plain", "law"))
    given = parser.parse_args()
    seeds = [int(one) for one in given.seeds.split(",")]
    untrue = set(disproved(seeds)) if given.prove else set()
    ways = {"graph": ("a graph, `inside=True`", False), "plain": ("plain torch, by name", True)}
    for way, (title, patterns) in ways.items():
        if given.only not in (None, way):
            continue
        began = perf_counter()
        runs = [
            score(run, seed, patterns=patterns)
            for seed in seeds
            for run in (*HEALTHY, *SICK, *CURED)
            if (seed, run.name) not in untrue
        ]
        print(f"\n## {title}: {len(runs)} runs, {perf_counter() - began:.0f} s\n")
        print("\n".join(table(runs)))
        print("\n".join(mistakes(runs, KNOWN)))
    if given.only in (None, "law"):
        print(f"\n## the scale law, seed {seeds[0]}\n")
        for line in law(seeds[0]):
            print(line, flush=True)


def disproved(seeds: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Say which runs are not what their label says, at which seed."""
    for seed in seeds:
        for run in (*HEALTHY, *SICK, *CURED):
            evidence = gather(run, seed)
            against = (
                list(complaints(evidence))
                if run.is_healthy
                else [
                    f"{label.flag} at {label.unit} does not hold"
                    for label in run.labels
                    if not claim(evidence, label).holds
                ]
            )
            if against:
                print(f"seed {seed}: {run.name} is left out: {'; '.join(against)}", flush=True)
                yield seed, run.name


def table(runs: Sequence[Score]) -> Iterator[str]:
    """Give a row for each flag, and one for all."""
    yield "| flag | labels | found | placed | counted | precision | healthy runs with it |"
    yield "|---|---|---|---|---|---|---|"
    flags = sorted(
        {hit.label.flag for run in runs for hit in run.hits}
        | {one.flag for run in runs for one in run.wrong}
    )
    for flag in (*flags, "all"):
        yield row(flag, runs)
    healthy = [run for run in runs if run.run.is_healthy]
    sick = [run for run in runs if not run.run.is_healthy]
    yield (
        f"\nhealthy runs flagged: {sum(not one.is_right for one in healthy)} of {len(healthy)}; "
        f"sick runs fully right: {sum(one.is_right for one in sick)} of {len(sick)}"
    )


def row(flag: str, runs: Sequence[Score]) -> str:
    """Count one flag, or all."""
    hits = [hit for run in runs for hit in run.hits if flag in ("all", hit.label.flag)]
    counted = [hit.counted for hit in hits if hit.counted is not None]
    false = sum(1 for run in runs for _ in {w.flag for w in run.wrong if flag in ("all", w.flag)})
    on_healthy = sum(
        run.run.is_healthy and any(flag in ("all", w.flag) for w in run.wrong) for run in runs
    )
    found, placed = sum(hit.found for hit in hits), sum(hit.placed for hit in hits)
    cells = [
        flag,
        str(len(hits)),
        percent(found, len(hits)),
        percent(placed, len(hits)),
        percent(sum(counted), len(counted)),
        percent(found, found + false),
        str(on_healthy),
    ]
    return "| " + " | ".join(cells) + " |"


def percent(part: int, whole: int) -> str:
    """Write a share."""
    return "-" if whole == 0 else f"{part / whole:.1%}"


def mistakes(runs: Sequence[Score], known: Mapping[str, str]) -> Iterator[str]:
    """Name what was missed and what was wrongly said."""
    found: Counter[str] = Counter()
    for run in runs:
        for hit in run.hits:
            if not hit.placed or hit.counted is False:
                what = (
                    "is missed" if not hit.found else "is above" if not hit.placed else "miscounted"
                )
                found[f"{run.run.name}: {hit.label.flag} at {hit.label.unit} {what}"] += 1
        for one in run.wrong:
            found[f"{run.run.name}: {one.flag} at {one.unit} is wrong"] += 1
    for text, times in sorted(found.items()):
        reason = known.get(text.partition(":")[0])
        yield f"- {text} ({times} x)" + (f"; known: {reason}" if reason else "")


def law(seed: int) -> Iterator[str]:
    """Say whose verdict a factor changes."""
    plain = {run.name: score(run, seed).verdict for run in (*HEALTHY, *SICK) if run.scales}
    for title, scale in SCALES.items():
        runs: list[Run] = [one for one in (*HEALTHY, *SICK) if one.scales]
        if scale.data != 1.0:
            runs = [one for one in runs if one.first and one.clip is None]
        changed = [
            f"{run.name}: {', '.join(f'{flag} at {unit}' for unit, flag in sorted(other))}"
            for run in runs
            if (other := plain[run.name] ^ score(run, seed, scale=scale).verdict)
        ]
        yield f"- {title}: {len(runs) - len(changed)} of {len(runs)} verdicts are the same"
        yield from (f"  - {one}" for one in changed)


if __name__ == "__main__":
    main()
