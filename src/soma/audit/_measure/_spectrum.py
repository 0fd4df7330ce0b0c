"""Effective rank and correlation of the channels of an output.

Both come from some rows of one output; the rows themselves are not kept.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from soma.audit._measure._boards import Boards, Row

MOST_CHANNELS = 64  # in a correlation matrix


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The numbers of one output, possibly on their way."""

    effective_rank: Row
    correlation: Row  # the rows of the matrix one after the other
    channels: tuple[int, ...]  # that the matrix is of


def spectrum(x_NC: Tensor, boards: Boards) -> Spectrum:
    """Return effective rank and correlation of columns."""
    x_NC = x_NC - x_NC.mean(0)
    scale = x_NC.abs().max()
    x_NC = x_NC / torch.where(scale > 0, scale, 1)
    every = -(-x_NC.shape[1] // MOST_CHANNELS)
    channels = tuple(range(0, x_NC.shape[1], every))
    return Spectrum(
        boards.put(effective_rank(x_NC).reshape(1)),
        boards.put(_correlation(x_NC[:, channels]).reshape(-1)),
        channels,
    )


def effective_rank(x_NC: Tensor) -> Tensor:
    """Return the exponential of the entropy of the eigenvalues of centred columns' covariance."""
    smaller = x_NC.T @ x_NC if x_NC.shape[1] <= x_NC.shape[0] else x_NC @ x_NC.T
    if not bool(smaller.isfinite().all()):
        return torch.full((), torch.nan, device=x_NC.device)
    values = torch.linalg.eigvalsh(smaller).clamp(min=0)
    shares = values / values.sum()
    rank: Tensor = torch.special.entr(shares).sum().exp()
    return rank


def _correlation(x_NC: Tensor) -> Tensor:
    """Return the correlation of centred columns; NaN for those that are constant."""
    norms = torch.linalg.vector_norm(x_NC, dim=0)
    units = x_NC / torch.where(norms > 0, norms, torch.nan)
    return (units.T @ units).clamp(-1, 1)
