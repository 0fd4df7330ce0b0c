"""`StepMetrics`: what the norms of a step say of the parameters of each unit."""

import math
from collections.abc import Sequence

from soma.audit._measure._boards import Row
from soma.audit._parameters._weight import ParameterNorms, Weight


class StepMetrics:
    """The norms of all parameters in one step, as plain numbers without a scaler's factor.

    Args:
        weights: all parameters.
        trainable: of each, whether it asked for a gradient as the step ended.
        arrived: those that got one.
        norms: what was measured, all of it at hand by now.
        scale: by which a gradient scaler multiplied the loss.
    """

    def __init__(
        self,
        weights: Sequence[Weight],
        trainable: Sequence[bool],
        arrived: set[int],
        norms: ParameterNorms,
        scale: float,
    ) -> None:
        self._weights = weights
        self._trainable = trainable
        self._arrived = arrived
        self._norms = norms
        self.after_backward = _by_index(norms.after_backward)
        if scale != 1.0:
            self.after_backward = {at: norm / scale for at, norm in self.after_backward.items()}
        changed = _by_index(norms.at_step)
        if norms.scaled_at_step:
            changed = {at: norm / scale for at, norm in changed.items()}
        self.at_step = {**self.after_backward, **changed} if changed else self.after_backward
        self._values = _by_index(norms.values)
        self._changes = _by_index(norms.changes)

    def remember(self) -> None:
        """Note with each parameter what has happened to it in this step, for those that follow."""
        weights = self._weights
        for at in self._arrived:
            weights[at].ever_got = True
        for at, norm in self.after_backward.items():
            weights[at].ever_pushed |= norm != 0.0
        for at, change in self._changes.items():
            weights[at].ever_moved |= change != 0.0
        for at, change in _by_index(self._norms.start_changes).items():
            weights[at].was_away |= change != 0.0
        for at, norm in self._values.items():
            weights[at].starts_at(at, norm, self._norms)

    def total(self, norms: dict[int, float]) -> float:
        """Return the norm over all parameters that got a gradient."""
        return math.hypot(*[norm for at, norm in norms.items() if at in self._arrived])

    def metrics(self, indices: Sequence[int], *, whole: bool) -> dict[str, float]:
        """Return the metrics of the parameters of one unit."""
        if not indices:
            return {}
        every = self._weights
        trainable = [at for at in indices if self._trainable[at]]
        got = [at for at in trainable if at in self._arrived]
        found: dict[str, float] = {}
        if trainable:
            found["grads"] = len(got) / len(trainable)
            found["grads_ever"] = self._share(trainable, [every[at].ever_got for at in trainable])
            pushed = [every[at].ever_pushed for at in trainable]
            found["pushed_ever"] = self._share(trainable, pushed)
            found["stale"] = float(not self._norms.stale.isdisjoint(got))
        after_backward = self.after_backward
        gradients = [after_backward[at] for at in got if at in after_backward]
        if gradients:
            norm = found["param_grad_norm"] = math.hypot(*gradients)
            if self.at_step is not after_backward:
                norm = math.hypot(*[self.at_step[at] for at in got if at in after_backward])
            found["param_grad_norm_at_step"] = norm
            bad = len(gradients) - sum(map(math.isfinite, gradients))
            found["param_grad_bad_frac"] = bad / len(gradients)
        if whole and self._values:
            found |= self._value_metrics(indices, trainable, found.get("param_grad_norm"))
        return found

    def _value_metrics(
        self, indices: Sequence[int], trainable: Sequence[int], grad_norm: float | None
    ) -> dict[str, float]:
        norms, gradients, every = self._values, self.after_backward, self._weights
        norm = math.hypot(*[norms[at] for at in indices if at in norms])
        found = {"param_norm": norm}
        if grad_norm is not None:
            if norm:
                found["grad_param_ratio"] = grad_norm / norm
            known = [at for at in trainable if at in gradients and at in norms]
            found["grad_strength"] = math.hypot(*[norms[at] * gradients[at] for at in known])
        if trainable and self._norms.stepped:
            changes = [self._changes.get(at, 0.0) for at in trainable]
            found["update_norm"] = math.hypot(*changes)
            found["moved"] = (len(changes) - changes.count(0.0)) / len(changes)
            ever = [every[at].ever_moved for at in trainable]
            found["moved_ever"] = self._share(trainable, ever)
            still = [at for at in trainable if not every[at].was_away]
            if not still:
                found["away_ever"] = 1.0
            elif self._norms.compared.issuperset(still):
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
        sizes = [self._weights[at].parameter.numel() for at in indices]
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
