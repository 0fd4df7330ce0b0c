"""`EndedStep`: a step that has ended, whose numbers may still be on their way from a device."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from soma.audit._measure._boards import Boards, Row
from soma.audit._measure._channels import ChannelOutput, channel_rows, pooled
from soma.audit._measure._similarity import debiased_cka
from soma.audit._spots import Spot
from soma.audit._step._trace import Call, Reading, StepTrace


@dataclass(slots=True)
class ChannelRow:
    """The numbers of all channels of a spot: largest output, deviation and gradient of each."""

    row: Row
    count: int  # channels
    samples: int  # values of each


@dataclass(slots=True)
class EndedStep:
    """A step that has ended, with all that `Settler` needs to settle it."""

    step: StepTrace
    skipped: bool  # no optimizer has used its gradients
    trainable: list[bool]  # by parameter, as the step ended
    channels: dict[int, ChannelRow]  # by spot
    similarity: dict[int, tuple[list[tuple[str, str]], Row]]  # by spot, of pairs of groups


def rows_of_channels(step: StepTrace, boards: Boards) -> dict[int, ChannelRow]:
    """Put the numbers by channel of all spots on their boards, a row for each spot."""
    outputs: dict[int, ChannelOutput] = {}
    gradients: dict[int, list[Tensor]] = {}
    for at, calls in calls_of(step).items():
        readings = [call.parts[0][1] for call in calls if call.parts]
        seen = [one.channels for one in readings if one.channels is not None]
        if seen and len({one.channels for one in seen}) == 1:
            outputs[at] = pooled(seen)
            gradients[at] = [
                gradient
                for one in readings
                for backward, gradient in one.channel_gradients
                if one.channels is not None and step.reached_parameters(backward)
            ]
    found = {}
    rows = channel_rows(list(outputs.values())) if outputs else ((), ())
    for (at, output), largest, deviation in zip(outputs.items(), *rows, strict=True):
        came = gradients[at]
        parts = [largest, deviation]
        if came:
            parts.append(came[0] if len(came) == 1 else torch.stack(came).sum(0))
        row = boards.put(torch.cat(parts))
        found[at] = ChannelRow(row, output.channels, output.samples)
    return found


def rows_of_groups(spot: Spot, rows: Tensor, boards: Boards) -> tuple[list[tuple[str, str]], Row]:
    """Put the similarity of each pair of a spot's groups on a board; return the pairs too.

    Raises:
        IndexError: a group names a channel that the output has not.
    """
    groups = spot.groups
    most = rows.shape[1]
    for name, members in groups.items():
        if members and max(members) >= most:
            raise IndexError(
                f"group `{name}` of `{spot.id}` names channel {max(members)}; its output has {most}"
            )
    pairs = list(combinations(groups, 2))
    found = [debiased_cka(rows[:, groups[a]], rows[:, groups[b]]) for a, b in pairs]
    return pairs, boards.put_all(found)


def gradients_of(readings: Iterable[Reading], step: StepTrace) -> list[Row]:
    """Return the gradients of tensors, without those of backwards that reached no parameter."""
    return [
        row
        for one in readings
        for backward, row in one.gradients
        if step.reached_parameters(backward)
    ]


def calls_of(step: StepTrace) -> dict[int, list[Call]]:
    """Return the calls of each spot over all passes of a step."""
    if len(step.passes) == 1:
        return step.passes[0].calls
    found: dict[int, list[Call]] = {}
    for this_pass in step.passes:
        for at, calls in this_pass.calls.items():
            found.setdefault(at, []).extend(calls)
    return found
