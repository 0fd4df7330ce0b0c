"""`Reader`: makes a reading of each tensor that a module returns, once, however many return it."""

from typing import TYPE_CHECKING

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
from soma.audit._step._hooks import GradientSeen
from soma.audit._step._passes import Pass, Reading, Taken

if TYPE_CHECKING:
    from soma.audit._step._recorder import Recorder


class Reader:
    """Looks at outputs, at what activations are given, and at gradients."""

    def __init__(self, recorder: "Recorder", config: ChannelConfig | None) -> None:
        self.config = config
        self.measures = Measures()
        self.pools: dict[int, Pool] = {}  # rows of the units that have groups
        self._recorder = recorder

    def output(
        self, at_pass: Pass, spot: Spot | None, value: object, taken: Taken
    ) -> list[tuple[str, Reading]]:
        """Read every tensor of an output."""
        tensors = list(numeric_tensors(value))
        parts = [(suffix, self._read(at_pass, spot, one, taken)) for suffix, one in tensors]
        if spot is not None and len(tensors) == 1:
            self._rows(spot, tensors[0][1], taken)
        return parts

    def activation_input(
        self, at_pass: Pass, activation: nn.Module, given: Tensor, taken: Taken
    ) -> None:
        """Read what an activation is given."""
        key = id(activation)
        if taken.whole and (rows := open_rows(activation, given)) is not None:
            at_pass.open_rows[key] = rows
        if not self.is_snapshot(taken):
            return
        known = at_pass.known(given)
        if known is not None and known.activation is not None:
            at_pass.inputs[key] = known.activation
        elif (x := plain(given)) is not None:
            at_pass.inputs[key] = self.measures.size(x)

    def gradient(self, reading: Reading, task: int, gradient: Tensor) -> Row | None:
        """Read a gradient that has come to a tensor; return its numbers, None if it has none."""
        if (x := plain(gradient)) is None:
            return None
        row = self.measures.gradient(x)
        reading.gradients.append((task, row))
        if reading.axis is not None and x.numel():
            sums = channel_gradient(x, reading.axis, self.measures.scratch)
            reading.channel_gradients.append((task, sums))
        return row

    def is_snapshot(self, taken: Taken) -> bool:
        """Whether channels are looked at in a step."""
        return self.config is not None and taken.whole and not self._number(taken)[1]

    def _number(self, taken: Taken) -> tuple[int, int]:
        """Return the number of a step's snapshot, and how many steps it is past it."""
        assert self.config is not None
        return divmod(taken.number, self.config.snapshot_every)

    def _read(self, at_pass: Pass, spot: Spot | None, tensor: Tensor, taken: Taken) -> Reading:
        found = at_pass.known(tensor)
        if found is None:
            found = Reading(tensor)
            at_pass.readings[id(tensor)] = found
            if tensor.requires_grad:
                hook = GradientSeen(self._recorder, found)
                handle = tensor.register_hook(hook)  # type: ignore[no-untyped-call]
                if tensor.is_leaf:
                    at_pass.handles.append(handle)
            if (x := plain(tensor)) is not None:
                share = None
                if spot is not None and spot.activation is not None and x.numel():
                    rows = at_pass.open_rows.pop(id(spot.activation), None)
                    share = flat_share(spot.activation, x, rows)
                if spot is not None and self.is_snapshot(taken):
                    self._channels(found, spot, tensor)
                sums = None if found.channels is None else found.channels.sums
                found.activation = self.measures.activation(x, share, sums)
        if spot is not None and self.is_snapshot(taken):
            self._channels(found, spot, tensor)
        return found

    def _channels(self, found: Reading, spot: Spot, tensor: Tensor) -> None:
        if found.channels is None and (x := self._with_channels(tensor)) is not None:
            assert self.config is not None
            found.axis = self.config.axis_of(x.dim())
            assert found.axis is not None
            found.channels = channel_output(x, found.axis, self.measures.scratch)
        if found.channels is not None:
            spot.channel_axis, spot.channels = found.axis, found.channels.channels

    def _with_channels(self, tensor: Tensor) -> Tensor | None:
        """Return plain numbers of a tensor in which channels can be told apart."""
        if self.config is None or self.config.axis_of(tensor.dim()) is None:
            return None
        if tensor.layout is not torch.strided or tensor.is_nested:
            return None
        x = plain(tensor)
        return x if x is not None and x.numel() else None

    def _rows(self, spot: Spot, tensor: Tensor, taken: Taken) -> None:
        """Take rows of an output, for what looks at several channels together."""
        wants_spectrum = self.is_snapshot(taken) and _is_rare(self._number(taken)[0])
        if not (wants_spectrum or (spot.groups and taken.whole)):
            return
        if (x := self._with_channels(tensor)) is None:
            return
        assert self.config is not None
        axis = self.config.axis_of(x.dim())
        assert axis is not None
        rows = spread_rows(x, axis)
        if spot.groups:
            self.pools.setdefault(spot.at, Pool()).add(rows)
        if wants_spectrum and spot.at not in taken.spectra and len(rows) > 2:
            taken.spectra[spot.at] = spectrum(rows, self.measures.boards)


def _is_rare(snapshot: int) -> bool:
    """Whether eigenvalues are taken: often at first, then in one snapshot of sixteen."""
    return snapshot % 16 == 0 or snapshot & (snapshot - 1) == 0
