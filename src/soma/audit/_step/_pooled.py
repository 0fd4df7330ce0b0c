"""The arithmetic of outputs: the numbers of several calls and tensors make those of one unit."""

import math
from collections.abc import Iterable, Sequence

from soma.audit._measure._boards import Row
from soma.audit._measure._layout import Activation, Gradient


def joint_norm(norms: Iterable[float]) -> float:
    """Return the norm of a whole whose parts have these norms."""
    return math.hypot(*norms)


def activation_metrics(rows: Sequence[Row]) -> dict[str, float]:
    """Return the metrics of outputs, pooled over calls and tensors."""
    if len(rows) == 1:
        return _one_activation(*rows[0].values)
    found = [one for one in (Activation(*row.values) for row in rows) if one.size]
    if not found:
        return {}
    count = sum(one.size for one in found)
    finite = count - sum(one.bad for one in found)
    total = sum(one.total for one in found)
    metrics = {
        "act_norm": joint_norm(one.norm for one in found),
        "act_min": _extreme([one.low for one in found], -1),
        "act_max": _extreme([one.high for one in found], 1),
        "act_zero_frac": sum(one.zeros for one in found) / count,
        "act_bad_frac": sum(one.bad for one in found) / count,
        "act_masked_frac": sum(one.masked for one in found) / count,
    }
    if finite:
        metrics["act_mean_abs"] = sum(one.absolute for one in found) / finite
        spread = sum(one.spread for one in found)
        if len(found) > 1:
            mean = total / finite
            for one in found:
                mine = one.size - one.bad
                if mine:
                    spread += mine * (one.total / mine - mean) ** 2
        metrics["act_std"] = math.sqrt(spread / finite)
    for name, field in (("batch_variance_ratio", "varies"), ("saturated_frac", "flat")):
        values = [(getattr(one, field), one.size) for one in found]
        known = [(value, n) for value, n in values if not math.isnan(value)]
        if known:
            metrics[name] = sum(value * n for value, n in known) / sum(n for _, n in known)
    return metrics


def _one_activation(
    size: float,
    bad: float,
    masked: float,
    zeros: float,
    total: float,
    absolute: float,
    norm: float,
    spread: float,
    low: float,
    high: float,
    varies: float,
    flat: float,
) -> dict[str, float]:
    """Return the metrics of a single output, as most units have it, without any pooling."""
    if not size:
        return {}
    metrics = {
        "act_norm": norm,
        "act_min": low,
        "act_max": high,
        "act_zero_frac": zeros / size,
        "act_bad_frac": bad / size,
        "act_masked_frac": masked / size,
    }
    if finite := size - bad:
        metrics["act_mean_abs"] = absolute / finite
        metrics["act_std"] = math.sqrt(spread / finite)
    if varies == varies:
        metrics["batch_variance_ratio"] = varies
    if flat == flat:
        metrics["saturated_frac"] = flat
    return metrics


def gradient_metrics(rows: Sequence[Row], scale: float) -> dict[str, float]:
    """Return the metrics of gradients, pooled; none where none came."""
    if len(rows) == 1:
        size, bad, norm, largest = rows[0].values
        found = {"out_grad_norm": norm / scale, "out_grad_max": largest / scale}
        return found | {"out_grad_bad_frac": bad / size} if size else {}
    parts = [one for one in (Gradient(*row.values) for row in rows) if one.size]
    if not parts:
        return {}
    return {
        "out_grad_norm": joint_norm(one.norm for one in parts) / scale,
        "out_grad_max": _extreme([one.largest for one in parts], 1) / scale,
        "out_grad_bad_frac": sum(one.bad for one in parts) / sum(one.size for one in parts),
    }


def input_rms(rows: Sequence[Row]) -> float | None:
    """Return the root mean square of what an activation was given; None: it was not seen."""
    found = [one for one in (Activation(*row.values) for row in rows) if one.size - one.bad]
    if not found:
        return None
    count = sum(one.size - one.bad for one in found)
    return joint_norm(one.norm for one in found) / math.sqrt(count)


def _extreme(values: list[float], sign: int) -> float:
    """Return the largest number, or the smallest; NaN where any is."""
    if any(map(math.isnan, values)):
        return math.nan
    return max(values) if sign > 0 else min(values)
