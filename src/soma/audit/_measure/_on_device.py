"""The numbers of a tensor on a GPU or the like, as 0-d tensors that stay there."""

import math

import torch
from torch import Tensor


def _wide(x: Tensor) -> torch.dtype:
    return torch.float32 if x.device.type == "mps" else torch.float64


def gradient_on_device(x: Tensor) -> list[Tensor]:
    """Return the numbers of a gradient as `Gradient` orders them."""
    bad = (~x.isfinite()).sum()
    norm = torch.linalg.vector_norm(x, dtype=_wide(x))
    return [torch.full_like(bad, x.numel()), bad, norm, x.abs().max()]


def activation_on_device(x: Tensor, flat_share: Tensor | None) -> list[Tensor]:
    """Return the numbers of an output as `Activation` orders them."""
    wide, finite = _wide(x), x.isfinite()
    kept = torch.where(finite, x, 0)
    bad = (~finite).sum()
    count = torch.full_like(bad, x.numel())
    done = (count - bad).clamp(min=1)
    total = kept.sum(dtype=wide)
    norm = torch.linalg.vector_norm(kept, dtype=wide)
    about = torch.where(finite, x - (total / done).to(x.dtype), 0)
    nothing = torch.full((), math.nan, device=x.device, dtype=wide)
    varies = nothing
    if x.dim() > 1 and x.shape[0] > 1:
        means = x.sum(0, dtype=wide) / x.shape[0]
        varies = (1 - x.shape[0] * means.square().sum() / norm.square()).clamp(min=0)
    low, high = torch.aminmax(x)
    return [
        count,
        bad,
        (x == -math.inf).sum(),
        (x == 0).sum(),
        total,
        kept.abs().sum(dtype=wide),
        norm,
        torch.linalg.vector_norm(about, dtype=wide).square(),
        low,
        high,
        varies,
        nothing if flat_share is None else flat_share,
    ]
