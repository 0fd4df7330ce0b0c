"""What an audit has measured, as plain numbers: all that a verdict may look at.

`soma.audit` fills these from live tensors, a run directory keeps them, and `judge` reads them
where there is no torch. Lengths of series never depend on the size of a model's tensors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

UnitId = (
    str  # `encoder`, `encoder/trunk.0`, and of outputs in containers `encoder[0]`, `encoder.key`
)

Status = Literal["measured", "frozen by choice", "no parameters"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One audited module, or one tensor of a module's output container."""

    id: UnitId
    node: str  # the graph's node, or the name that a module was given
    path: str  # below the node; "" is the node itself
    class_name: str
    source: str  # where the class is defined, `model.py:42`; "" unknown
    order: int  # of its first call among all units; -1: never called
    parameters: int  # elements, submodules included
    trainable: int  # of them, those that ask for a gradient
    own_trainable: int  # of them, those that no submodule has
    activation: str | None  # `relu`, `tanh`, `softmax`: what its output went through; None: none
    feeds_output: bool  # its output is the network's own output, or all that is after it is shape
    shares_output: bool = False  # and that output has other parts beside it, as of a tuple
    children: tuple[UnitId, ...] = ()
    channels: int | None = None
    channel_axis: int | None = None
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    unobserved: str | None = None  # why nothing of it could be measured, as `compiled`
    weights_of: UnitId | None = (
        None  # never called itself: the unit that is called with its weights
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One optimizer step, as a whole."""

    step: int  # from 0
    whole: bool  # every measure was taken; else gradient norms and NaN watch only
    skipped: bool  # a gradient scaler left it out
    loss: float | None  # as given to `backward`, unscaled, summed over accumulation
    grad_norm: float  # of all trainable parameters, as backward left it, unscaled
    grad_norm_at_step: float  # after clipping
    output_grad_norm: float  # of the loss to the network's outputs
    output_norm: float  # of the network's outputs
    stale: bool  # gradients of an earlier step were still there when backward began


@dataclass(slots=True, kw_only=True)
class Series:
    """One number of one unit over the steps where it was measured."""

    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSnapshot:
    """Numbers of each channel of a unit, over the samples of one step."""

    step: int
    largest: Sequence[float]  # largest absolute output
    deviation: Sequence[float]  # standard deviation of the output
    gradient: Sequence[float]  # sum of the absolute gradients
    # of an activation's unit: root mean square of what it was given, over all channels
    input_rms: float | None = None
    samples: int = 0  # values that each channel's numbers are over; 0: unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the first number that is not finite was made."""

    step: int
    unit: UnitId | None  # None: outside every audited module, as in the loss
    operation: str  # `log`, `div`, `Linear`; "" unknown
    phase: Literal["forward", "backward", "loss", "data", "weights"]
    value: Literal["nan", "inf"]
    detail: str  # for people: what was seen, what went in


@dataclass(slots=True, kw_only=True)
class Measurements:
    """Everything that an audit has measured so far."""

    units: dict[UnitId, Unit] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    # unit -> name of the number -> its series; names: see `METRICS`
    series: dict[UnitId, dict[str, Series]] = field(default_factory=dict)
    channels: dict[UnitId, list[ChannelSnapshot]] = field(default_factory=dict)
    # unit -> pair of groups, as `("audio", "text")` -> linear CKA, debiased
    similarity: dict[UnitId, dict[tuple[str, str], Series]] = field(default_factory=dict)
    # unit -> the last correlation of its channels; NaN for those that are constant
    correlation: dict[UnitId, list[list[float]]] = field(default_factory=dict)
    correlation_channels: dict[UnitId, list[int]] = field(default_factory=dict)  # its channels
    origins: list[Origin] = field(default_factory=list)
    every: int = 1  # after the first 64 steps, one in so many is measured whole
    notes: list[str] = field(default_factory=list)


# Of a parameter of 65,536 elements or more on a CPU, `param_norm`, `update_norm`, `update_ratio`
# and `moved` come from a sample of 32,768, where that has told the truth in eight steps in a row;
# one step in sixteen looks at all of it again.
METRICS = {
    "act_mean_abs": "mean of the absolute output",
    "act_std": "standard deviation of the output",
    "act_min": "smallest output",
    "act_max": "largest output",
    "act_norm": "norm of the output",
    "act_zero_frac": "share of outputs that are zero",
    "act_bad_frac": "share of outputs that are not finite",
    "act_masked_frac": "share of outputs that are -inf",
    "saturated_frac": "share of outputs where the activation's slope is below 5 % of its peak",
    "batch_variance_ratio": "variance over the batch, over the mean square",
    "effective_rank": "directions that the channels use: exp of the entropy of the eigenvalues",
    "out_grad_norm": "norm of the loss gradient at the output",
    "out_grad_max": "largest absolute loss gradient at the output",
    "out_grad_bad_frac": "share of those gradients that are not finite",
    "param_norm": "norm of the parameters before the step",
    "param_grad_norm": "norm of their gradients as backward left them, unscaled",
    "param_grad_bad_frac": "share of those gradients that are not finite",
    "param_grad_norm_at_step": "the same after clipping",
    "grad_param_ratio": "gradient norm over parameter norm",
    "grad_strength": "root of the sum of squares of norm times gradient norm of each parameter",
    "update_norm": "norm of the change that the step made",
    "update_ratio": "change over norm of a parameter, the median weighted by their sizes",
    "calls": "forward calls in the step",
    "calls_unrecorded": "forward calls with gradients off, in a step that has no others",
    "optimized": "1 if an optimizer that stepped holds some of its parameters; kept beside those",
    "grads": "trainable parameters that got a gradient, as a share",
    "moved": "trainable parameters of which a bit changed in the step, as a share",
    "grads_ever": "trainable elements in parameters that got a gradient so far, as a share",
    "pushed_ever": "trainable elements in parameters that got a gradient but 0 so far, as a share",
    "moved_ever": "trainable elements in parameters of which a bit changed so far, as a share",
    "away_ever": "trainable elements in parameters that were elsewhere at the start of a step than "
    "at that of the step before, as a share of those so far",
    "stale": "1 if the step used gradients that an earlier step had used already",
}
