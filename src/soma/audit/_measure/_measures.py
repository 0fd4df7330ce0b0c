"""`Measures`: takes the numbers of outputs and of gradients, wherever they are.

On a CPU they are at hand at once, `_output_on_cpu.py`; on other devices everything stays there
until the step ends, `_on_device.py`.
"""

import math

import torch
from torch import Tensor

from soma.audit._measure._boards import Boards, Row
from soma.audit._measure._layout import Sums
from soma.audit._measure._on_device import activation_on_device, gradient_on_device
from soma.audit._measure._output_on_cpu import careful_output, quick_output
from soma.audit._measure._row_norms import LARGE, PIECE, SMALL, RowNorms
from soma.audit._measure._sample import sampled
from soma.audit._measure._tensors import flat


class Measures(RowNorms):
    """Takes numbers of plain tensors, as rows that may be on their way from a device."""

    def __init__(self) -> None:
        super().__init__()
        self.boards = Boards()

    def activation(self, x: Tensor, flat_share: Tensor | None, sums: Sums | None = None) -> Row:
        """Return the numbers of an output as `Activation` orders them.

        Args:
            x: the output, as plain numbers.
            flat_share: the share of it where its activation is flat.
            sums: what is known of it already.
        """
        if x.numel() == 0:
            return Row(
                (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.nan, math.nan) + (math.nan,) * 2
            )
        if x.device.type == "cpu":
            share = math.nan if flat_share is None else flat_share.item()
            return Row((*(quick_output(x, sums, self) or careful_output(x, self)), share))
        return self.boards.put_all(activation_on_device(x, flat_share))

    def size(self, x: Tensor) -> Row:
        """Return the numbers of an output of which no more than its norm is asked.

        Of a large one a sample tells it.
        """
        if x.device.type == "cpu" and x.numel():
            some = sampled(x)
            row = flat(x) if some is None else some.reshape(-1)
            squares = sum(one.dot(one).item() for one in torch.split(row, PIECE))
            if SMALL**2 < squares < LARGE**2:
                norm, unknown = math.sqrt(squares * x.numel() / row.numel()), (math.nan,)
                return Row((float(x.numel()), 0.0, 0.0, *unknown * 3, norm, *unknown * 5))
        return self.activation(x, None)

    def gradient(self, x: Tensor) -> Row:
        """Return the numbers of a gradient as `Gradient` orders them."""
        if x.numel() == 0:
            return Row((0.0, 0.0, 0.0, 0.0))
        if x.device.type == "cpu":
            norm, largest = self.norm(flat(x))
            bad = 0.0 if math.isfinite(largest) else float((~x.isfinite()).sum())
            return Row((float(x.numel()), bad, norm, largest))
        return self.boards.put_all(gradient_on_device(x))
