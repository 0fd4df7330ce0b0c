"""The arithmetic of a step: several calls, tensors and parameters make the numbers of one unit."""

import math
from collections.abc import Iterable, Sequence

from soma.audit._measure._boards import Row
from soma.audit._measure._measures import Activation, Gradient
from soma.audit._parameters._weights import Numbers, Weights


def root(norms: Iterable[float]) -> float:
    """Return the norm of several parts together."""
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
        "act_norm": root(one.norm for one in found),
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
    for name, at in (("batch_variance_ratio", 10), ("saturated_frac", 11)):
        known = [(one[at], one.size) for one in found if not math.isnan(one[at])]
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
        "out_grad_norm": root(one.norm for one in parts) / scale,
        "out_grad_max": _extreme([one.largest for one in parts], 1) / scale,
        "out_grad_bad_frac": sum(one.bad for one in parts) / sum(one.size for one in parts),
    }


def input_rms(rows: Sequence[Row]) -> float | None:
    """Return the root mean square of what an activation was given; None: it was not seen."""
    found = [one for one in (Activation(*row.values) for row in rows) if one.size - one.bad]
    if not found:
        return None
    count = sum(one.size - one.bad for one in found)
    return root(one.norm for one in found) / math.sqrt(count)


class StepWeights:
    """The norms of all parameters in one step."""

    def __init__(
        self,
        weights: Weights,
        trainable: Sequence[bool],
        arrived: set[int],
        numbers: Numbers,
        scale: float,
    ) -> None:
        self._weights = weights
        self._trainable = trainable
        self._arrived = arrived
        self._numbers = numbers
        self.left = _by_index(numbers.left)
        if scale != 1.0:
            self.left = {at: norm / scale for at, norm in self.left.items()}
        changed = _by_index(numbers.at_step)
        if numbers.scaled_at_step:
            changed = {at: norm / scale for at, norm in changed.items()}
        self.at_step = {**self.left, **changed} if changed else self.left
        self.norms = _by_index(numbers.norms)
        self.changes = _by_index(numbers.changes)
        for at in arrived:
            weights.all[at].ever_got = True
        for at, norm in self.left.items():
            weights.all[at].ever_pushed |= norm != 0.0
        for at, change in self.changes.items():
            weights.all[at].ever_moved |= change != 0.0
        for at, change in _by_index(numbers.starts).items():
            weights.all[at].was_away |= change != 0.0
        for at, norm in self.norms.items():
            weights.all[at].stood(at, norm, numbers)

    def total(self, norms: dict[int, float]) -> float:
        """Return the norm over all parameters that got a gradient."""
        return math.hypot(*[norm for at, norm in norms.items() if at in self._arrived])

    def metrics(self, indices: Sequence[int], *, whole: bool) -> dict[str, float]:
        """Return the metrics of the parameters of one unit."""
        if not indices:
            return {}
        every = self._weights.all
        trainable = [at for at in indices if self._trainable[at]]
        got = [at for at in trainable if at in self._arrived]
        found: dict[str, float] = {}
        if trainable:
            found["grads"] = len(got) / len(trainable)
            found["grads_ever"] = self._share(trainable, [every[at].ever_got for at in trainable])
            pushed = [every[at].ever_pushed for at in trainable]
            found["pushed_ever"] = self._share(trainable, pushed)
            found["stale"] = float(not self._numbers.stale.isdisjoint(got))
        left = [self.left[at] for at in got if at in self.left]
        if left:
            norm = found["param_grad_norm"] = math.hypot(*left)
            if self.at_step is not self.left:
                norm = math.hypot(*[self.at_step[at] for at in got if at in self.left])
            found["param_grad_norm_at_step"] = norm
            bad = len(left) - sum(map(math.isfinite, left))
            found["param_grad_bad_frac"] = bad / len(left)
        if whole and self.norms:
            found |= self._moves(indices, trainable, found.get("param_grad_norm"))
        return found

    def _moves(
        self, indices: Sequence[int], trainable: Sequence[int], grad_norm: float | None
    ) -> dict[str, float]:
        norms, left, every = self.norms, self.left, self._weights.all
        norm = math.hypot(*[norms[at] for at in indices if at in norms])
        found = {"param_norm": norm}
        if grad_norm is not None:
            if norm:
                found["grad_param_ratio"] = grad_norm / norm
            both = [norms[at] * left[at] for at in trainable if at in left and at in norms]
            found["grad_strength"] = math.hypot(*both)
        if trainable and self._numbers.stepped:
            changes = [self.changes.get(at, 0.0) for at in trainable]
            found["update_norm"] = math.hypot(*changes)
            found["moved"] = (len(changes) - changes.count(0.0)) / len(changes)
            ever = [every[at].ever_moved for at in trainable]
            found["moved_ever"] = self._share(trainable, ever)
            still = [at for at in trainable if not every[at].was_away]
            if not still:
                found["away_ever"] = 1.0
            elif self._numbers.compared.issuperset(still):
                away = [every[at].was_away for at in trainable]
                found["away_ever"] = self._share(trainable, away)
            ratios = [
                (change / norms[at], every[at].parameter.numel())
                for at, change in zip(trainable, changes, strict=True)
                if norms.get(at)
            ]
            if ratios:
                found["update_ratio"] = _weighted_median(ratios)
        return found

    def _share(self, indices: Sequence[int], are: Sequence[bool]) -> float:
        """Return the share of elements in those tensors of which something is true."""
        if False not in are:
            return 1.0
        sizes = [self._weights.all[at].parameter.numel() for at in indices]
        true = sum(size for size, one in zip(sizes, are, strict=True) if one)
        return true / max(sum(sizes), 1)


def _by_index(rows: Sequence[tuple[Sequence[int], Row]]) -> dict[int, float]:
    found: dict[int, float] = {}
    for indices, row in rows:
        found.update(zip(indices, row.values, strict=False))
    return found


def _weighted_median(pairs: list[tuple[float, int]]) -> float:
    pairs.sort()
    half = sum([weight for _, weight in pairs]) / 2
    for value, weight in pairs:
        half -= weight
        if half <= 0:
            return value
    return pairs[-1][0]


def _extreme(values: list[float], sign: int) -> float:
    """Return the largest number, or the smallest; NaN where any is."""
    if any(map(math.isnan, values)):
        return math.nan
    return max(values) if sign > 0 else min(values)
