"""`Reader`: makes a reading of each tensor that a module returns, once, however many return it."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from soma.audit._measure._activations import flat_share, open_rows
from soma.audit._measure._boards import Row
from soma.audit._measure._channels import channel_gradient, channel_output
from soma.audit._measure._measures import Measures
from soma.audit._measure._similarity import Pool, spread_rows
from soma.audit._measure._spectrum import spectrum
from soma.audit._measure._tensors import numeric_tensors, plain
from soma.audit._scope import ChannelConfig
from soma.audit._spots import Spot
from soma.audit._step._trace import Pass, Reading, StepTrace

# Of a reading: takes the gradient of its tensor.
GradientHook = Callable[[Reading], Callable[[Tensor], None]]


class Reader:
    """Looks at outputs, at what activations are given, and at gradients.

    Args:
        config: which channels are told apart; None: none.
        gradient_hook: makes the hook on a tensor that takes its gradient.
    """

    def __init__(self, config: ChannelConfig | None, gradient_hook: GradientHook) -> None:
        self.config = config
        self.measures = Measures()
        self.pools: dict[int, Pool] = {}  # rows of the units that have groups
        self._gradient_hook = gradient_hook

    def output(
        self, this_pass: Pass, spot: Spot | None, value: object, step: StepTrace
    ) -> list[tuple[str, Reading]]:
        """Read every tensor of an output."""
        tensors = list(numeric_tensors(value))
        parts = [(suffix, self._read(this_pass, spot, one, step)) for suffix, one in tensors]
        if spot is not None and len(tensors) == 1:
            self._rows(spot, tensors[0][1], step)
        return parts

    def activation_input(
        self, this_pass: Pass, activation: nn.Module, given: Tensor, step: StepTrace
    ) -> None:
        """Read what an activation is given."""
        key = id(activation)
        if step.whole and (rows := open_rows(activation, given)) is not None:
            this_pass.open_rows[key] = rows
        if not self.is_snapshot(step):
            return
        known = this_pass.known(given)
        if known is not None and known.activation is not None:
            this_pass.inputs[key] = known.activation
        elif (x := plain(given)) is not None:
            this_pass.inputs[key] = self.measures.size(x)

    def gradient(self, reading: Reading, backward: int, gradient: Tensor) -> Row | None:
        """Read a gradient that has come to a tensor; return its numbers, None if it has none."""
        if (x := plain(gradient)) is None:
            return None
        row = self.measures.gradient(x)
        reading.gradients.append((backward, row))
        if reading.axis is not None and x.numel():
            sums = channel_gradient(x, reading.axis, self.measures.scratch)
            reading.channel_gradients.append((backward, sums))
        return row

    def is_snapshot(self, step: StepTrace) -> bool:
        """Whether channels are looked at in a step."""
        return self.config is not None and step.whole and not self._number(step)[1]

    def _number(self, step: StepTrace) -> tuple[int, int]:
        """Return the number of a step's snapshot, and how many steps it is past it."""
        assert self.config is not None
        return divmod(step.number, self.config.snapshot_every)

    def _read(self, this_pass: Pass, spot: Spot | None, tensor: Tensor, step: StepTrace) -> Reading:
        found = this_pass.known(tensor)
        if found is None:
            found = this_pass.add(tensor)
            if tensor.requires_grad:
                handle = tensor.register_hook(self._gradient_hook(found))  # type: ignore[no-untyped-call]
                if tensor.is_leaf:
                    this_pass.handles.append(handle)
            if (x := plain(tensor)) is not None:
                share = None
                if spot is not None and spot.activation is not None and x.numel():
                    rows = this_pass.open_rows.pop(id(spot.activation), None)
                    share = flat_share(spot.activation, x, rows)
                if spot is not None and self.is_snapshot(step):
                    self._channels(found, spot, tensor)
                sums = None if found.channels is None else found.channels.sums
                found.activation = self.measures.activation(x, share, sums)
        if spot is not None and self.is_snapshot(step):
            self._channels(found, spot, tensor)
        return found

    def _channels(self, found: Reading, spot: Spot, tensor: Tensor) -> None:
        if found.channels is None and (known := self._with_channels(tensor)) is not None:
            x, found.axis = known
            found.channels = channel_output(x, found.axis, self.measures.scratch)
        if found.channels is not None:
            spot.channel_axis, spot.channels = found.axis, found.channels.channels

    def _with_channels(self, tensor: Tensor) -> tuple[Tensor, int] | None:
        """Return plain numbers of a tensor, and the axis of its channels; None: it has none."""
        if self.config is None or (axis := self.config.axis_of(tensor.dim())) is None:
            return None
        if tensor.layout is not torch.strided or tensor.is_nested:
            return None
        x = plain(tensor)
        return (x, axis) if x is not None and x.numel() else None

    def _rows(self, spot: Spot, tensor: Tensor, step: StepTrace) -> None:
        """Take rows of an output, for what looks at several channels together."""
        wants_spectrum = self.is_snapshot(step) and _is_rare(self._number(step)[0])
        if not (wants_spectrum or (spot.groups and step.whole)):
            return
        if (known := self._with_channels(tensor)) is None:
            return
        rows = spread_rows(*known)
        if spot.groups:
            self.pools.setdefault(spot.index, Pool()).add(rows)
        if wants_spectrum and spot.index not in step.spectra and len(rows) > 2:
            step.spectra[spot.index] = spectrum(rows, self.measures.boards)


def _is_rare(snapshot: int) -> bool:
    """Whether eigenvalues are taken: often at first, then in one snapshot of sixteen."""
    return snapshot % 16 == 0 or snapshot & (snapshot - 1) == 0
