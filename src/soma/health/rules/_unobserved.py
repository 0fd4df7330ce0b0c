"""UNOBSERVED and NO_DATA: what was not measured says so, for silence is not health."""

from soma.draw import printable, shortened
from soma.health._explanation import Explanation
from soma.health._facts import Facts
from soma.health._family import by_order
from soma.health._finding import Finding
from soma.health._measurements import Unit
from soma.health._words import named

_LONGEST = 60  # characters of a reason

EXPLANATIONS = (
    Explanation(
        flag="UNOBSERVED",
        title="it ran, and could not be measured",
        measured="Which numbers there are of a module: of its output, of the gradient at its "
        "output, of its parameters.",
        rule="A kind of number is missing that the other flags need. The reason stands in "
        "brackets, as in UNOBSERVED(compiled).",
        thresholds=(),
        source="A promise of this library: no flag means measured and fine.",
        helps=(
            "audit before `torch.compile`, or compile with the audit off",
            "return tensors, or containers of them, from `forward`",
        ),
    ),
    Explanation(
        flag="NO_DATA",
        title="no step ran",
        measured="The optimizer steps seen inside the audit.",
        rule="There was none.",
        thresholds=(),
        source="A promise of this library: no flag means measured and fine.",
        helps=(
            "run training steps inside the `with` of the audit",
            "for a loop of your own, give the optimizer: `soma.audit_modules(..., optimizer=opt)`",
        ),
    ),
)


def unobserved(facts: Facts) -> list[Finding]:
    """Find units of which a verdict cannot be given, or not in full."""
    units = sorted(facts.units.values(), key=by_order)
    if not facts.measured.steps:
        return [_no_data(one) for one in units]
    return [_finding(facts, one, why) for one in units if (why := _why(facts, one)) is not None]


def _why(facts: Facts, unit: Unit) -> str | None:
    """Return what keeps a unit from being judged; None: nothing does."""
    if unit.weights_of is not None:
        return None
    if unit.unobserved is not None:
        return shortened(printable(unit.unobserved), _LONGEST)
    if not facts.steps:
        return None if facts.fault(unit.id) else "no whole step"
    output = bool(facts.points(unit.id, "act_norm") or facts.points(unit.id, "act_mean_abs"))
    gradient = bool(facts.points(unit.id, "out_grad_norm"))
    series = (facts.points(unit.id, name) for name in ("grads", "moved"))
    weights = any(value > 0 for points in series for _, value in points)
    if unit.trainable and weights and not gradient:
        return "no output gradient" if facts.called(unit.id) else "used by its weights alone"
    if unit.trainable or output:
        return None
    if facts.called(unit.id):
        return "no output"
    return "not called" if unit.parameters else None  # what has no weights is not missed


def _finding(facts: Facts, unit: Unit, why: str) -> Finding:
    return Finding(
        flag=f"UNOBSERVED({why})",
        unit=unit.id,
        since=min((one.step for one in facts.measured.steps), default=0),
        certainty="certain",
        why=f"{why}: not all that the other flags need could be measured here",
        meaning="it may be well or not, nothing here tells",
        help=f"call {named(unit)} in a training step inside the audit"
        if "not called" in why
        else f"audit {named(unit)} uncompiled, with tensors as its outputs, to have it judged",
    )


def _no_data(unit: Unit) -> Finding:
    return Finding(
        flag="NO_DATA",
        unit=unit.id,
        since=0,
        certainty="certain",
        why="no optimizer step was seen",
        meaning="nothing is known of it",
        help="run training steps inside the `with` of the audit; a step ends at the optimizer's "
        "step, so a loop of your own has to name its optimizer",
    )
