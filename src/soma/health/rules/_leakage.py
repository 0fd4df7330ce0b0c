"""LEAKAGE: two groups of channels that should differ say the same."""

from soma.health._explanation import Explanation
from soma.health._facts import Facts, middle, pairs, since
from soma.health._finding import Finding
from soma.health._measurements import Series, Unit
from soma.health._words import named, number, ticked
from soma.health.rules._collapse import reached

_FIRST = 5  # measured steps that tell how it began

EXPLANATION = Explanation(
    flag="LEAKAGE",
    title="two groups of its channels say the same",
    measured="Linear CKA, debiased, between the groups of channels declared in "
    "`ChannelConfig(groups=...)`, over up to 512 rows of recent steps; 1 means that one group "
    "is the other, rotated and scaled.",
    rule="The median over the last half of the measured steps is above `leakage`. Groups that were "
    "not alike at first may be once 95 % of the loss is gone: they agree on the answer.",
    thresholds=("leakage",),
    source="Kornblith et al. 2019, arXiv:1905.00414; the debiased form: Murphy et al. 2024, "
    "arXiv:2405.01012.",
    helps=(
        "look whether one branch is given the other's input, or shares or copies its weights",
        "drop one of the branches if the inputs really say the same",
        "a loss that keeps them apart, or modality dropout",
    ),
)


def leakage(facts: Facts) -> list[Finding]:
    """Find pairs of declared groups that are as good as equal."""
    found = []
    for id, groups in facts.measured.similarity.items():
        for names, series in groups.items():
            points = [(step, value) for step, value in pairs(series) if step in facts.steps]
            recent = [value for step, value in points if step in facts.window]
            value = middle(recent or [value for _, value in points[-1:]])
            limit = facts.thresholds.leakage
            if id in facts.units and value is not None and value > limit:
                first = middle([value for _, value in points[:_FIRST]])
                if first is not None and first <= limit and reached(facts):
                    continue
                found.append(
                    _finding(
                        facts,
                        facts.units[id],
                        names,
                        Series(
                            steps=[step for step, _ in points], values=[one for _, one in points]
                        ),
                        value,
                    )
                )
    return found


def _finding(
    facts: Facts, unit: Unit, names: tuple[str, str], series: Series, value: float
) -> Finding:
    limit = facts.thresholds.leakage
    one, other = map(ticked, names)
    return Finding(
        flag="LEAKAGE",
        unit=unit.id,
        since=since(pairs(series), limit),
        certainty="certain" if value > (1 + limit) / 2 else "likely",
        why=f"the channels of {one} and {other} are alike to {value:.3f} of 1 (linear CKA, "
        f"the line is {number(limit)})",
        meaning="what is below sees one thing twice, and cannot tell from which of the two an "
        "answer comes",
        help=f"look before {named(unit)} whether {one} and {other} are given the same input, "
        "or share or copy their weights; if the inputs really say the same, drop one branch",
        numbers={"cka": value, "limit": limit},
    )
